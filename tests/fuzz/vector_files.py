"""Folders of vector indexes: `about.json` and the file of vectors; codes and models have formats of their own.

The first byte of an input says which of the two the rest is, and whether the rows' checksums are made right.
"""

from __future__ import annotations

import random
import shutil
import zlib
from functools import cache
from pathlib import Path

import mutations
from running import Format, scratch

AS_ROWS, MENDED = 1, 2
DIM, SIZE = 6, 6 + 4  # of vectors, and bytes of their rows
MARK = "0" * 32


@cache
def folder() -> Path:
    """An index of int8 vectors."""
    from dataclasses import replace

    import numpy as np

    from cghash import VectorIndex
    from cghash.peers import SignBits

    X = np.random.default_rng(0).normal(size=(80, DIM))
    index = VectorIndex(SignBits(DIM).fit(X), vectors="int8", candidates=7)
    index._about = replace(index._about, mark=MARK)
    index.add(X)
    index.save(scratch() / "good.vectors")
    return scratch() / "good.vectors"


def one_input(data: bytes) -> None:
    """Load, search, change, verify; anything but errors of ours escapes."""
    if not data:
        return
    mode, content = data[0], data[1:]
    path = scratch() / "v.vectors"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(folder(), path)
    if mode & AS_ROWS:
        (path / "vectors-0.bin").write_bytes(mended(content) if mode & MENDED else content)
    else:
        (path / "about.json").write_bytes(content)
    use(path)


def mended(content: bytes) -> bytes:
    """The same rows with the checksums that they must have."""
    seed = zlib.crc32(MARK.encode())
    rows = [content[at : at + DIM] for at in range(0, len(content) - SIZE + 1, SIZE)]
    return b"".join(row + zlib.crc32(row, seed).to_bytes(4, "little") for row in rows)


def use(path: Path) -> None:
    import numpy as np

    from cghash import VectorIndex

    with VectorIndex.load(path, writable=True, n_jobs=1) as index:
        distances, ids = index.search(np.ones((2, DIM)), 3)
        assert distances.shape == ids.shape == (2, 3)
        assert set(ids.ravel().tolist()) <= {-1, *range(80)}
        index.add(np.ones((2, DIM)))
        index.update(np.ones((1, DIM)), [0])
        index.remove([1])
        index.compact()
        assert len(index.reconstruct(index.ids)) == len(index) == 81
    VectorIndex.verify(path)


def seeds() -> list[bytes]:
    about, rows = (folder() / "about.json").read_bytes(), (folder() / "vectors-0.bin").read_bytes()
    return [bytes([0]) + about, bytes([AS_ROWS]) + rows, bytes([AS_ROWS | MENDED]) + rows]


def changed(data: bytes, rng: random.Random) -> bytes:
    """JSON changed as JSON, rows as bytes."""
    if data and data[0] & AS_ROWS:
        return mutations.bytes_changed(data, rng)
    return data[:1] + mutations.json_changed(data[1:], rng)


FORMATS = [Format("vectors", seeds, one_input, changed, ("cghash.index",))]
