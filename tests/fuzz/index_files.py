"""Index files and their logs.

The first byte of an input says what the rest is (a file, a log), whether checksums are made right (so that what lies
behind them is reached) and whether the file is mapped.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import struct
import zlib
from functools import cache
from pathlib import Path

from running import Format, scratch

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = [FIXTURES / f"index-v1-{name}.cghash" for name in ("plain", "ids-removed", "log", "tables")]
LOG = FIXTURES / "index-v1-log.cghash.log"
AS_LOG, MENDED, MAPPED = 1, 2, 4
HEAD, ENTRY, PAGE = 24, 80, 4096  # bytes of a file's header before its table, of an entry, of a page


def one_input(data: bytes) -> None:
    """Load, search, verify; anything but FormatError escapes."""
    if not data:
        return
    mode, content = data[0], bytearray(data[1:])
    path, log = scratch() / "i", scratch() / "i.log"
    if mode & AS_LOG:
        shutil.copyfile(FILES[2], path)
        log.write_bytes(mended_log(content) if mode & MENDED else content)
    else:
        log.unlink(missing_ok=True)
        path.write_bytes(mended_file(content) if mode & MENDED else content)
    use(path, bool(mode & MAPPED))


def use(path: Path, mapped: bool) -> None:
    import numpy as np

    from cghash import WeightedHammingIndex
    from cghash.exceptions import FormatError

    index = WeightedHammingIndex.load(path, mapped, writable="memory", n_jobs=1)
    assert len(index) <= 64 * (path.stat().st_size + 4096)
    if index._table.blocks.n_prepared:  # search goes by the tables, few as the codes are
        index._table.blocks.adopt(index._table.blocks.prepared(), True)
    distances, ids = index.search(np.zeros((2, index.n_bytes), dtype=np.uint8), 3)
    assert distances.shape == ids.shape == (2, 3)
    index.range_search(np.zeros((1, index.n_bytes), dtype=np.uint8), 1.0)
    known = [i for i in index.ids.tolist()[:50] if i >= 0 and i in index]
    assert index.reconstruct(known).shape == (len(known), index.n_bytes)
    if index._table.ids.next_id < 2**62:
        index.add(np.zeros((3, index.n_bytes), dtype=np.uint8))
    index.remove(sorted(set(known))[:2])
    index.compact()
    with contextlib.suppress(FormatError):
        WeightedHammingIndex.verify(path)


def mended_file(content: bytearray) -> bytearray:
    """The same with the size, the sections' checksums and the header's as they must be."""
    content.extend(bytes(-len(content) % PAGE))
    if len(content) < HEAD:
        return content
    struct.pack_into("<Q", content, 16, len(content))
    n = min(struct.unpack_from("<I", content, 12)[0], 50)
    for at in range(HEAD, min(HEAD + n * ENTRY, len(content) - ENTRY + 1), ENTRY):
        offset, length = struct.unpack_from("<QQ", content, at + 56)
        struct.pack_into("<I", content, at + 72, zlib.crc32(content[offset : offset + -(-length // PAGE) * PAGE]))
    end = -(-(HEAD + n * ENTRY + 4) // PAGE) * PAGE
    if end <= len(content):
        struct.pack_into("<I", content, end - 4, zlib.crc32(content[: end - 4]))
    return content


def mended_log(content: bytearray) -> bytearray:
    """The same with the checksums of header and records as they must be."""
    if len(content) >= 32:
        struct.pack_into("<I", content, 28, zlib.crc32(content[:28]))
    at = 32
    while at + 20 <= len(content):
        struct.pack_into("<I", content, at + 12, zlib.crc32(content[at : at + 12]))
        end = at + 16 + struct.unpack_from("<Q", content, at)[0]
        if end + 4 > len(content):
            break
        struct.pack_into("<I", content, end, zlib.crc32(content[at:end]))
        at = end + 4
    return content


@cache
def seeds(wide: bool = False) -> list[bytes]:
    """The fixtures, a file with tables as they are today, and, past what libFuzzer can handle, one with large ones."""
    paths = [*FILES, with_tables("small", [8, 8])] + ([with_tables("wide", [])] if wide else [])
    files = [bytes([mode]) + path.read_bytes() for path in paths for mode in (0, MENDED, MENDED | MAPPED, MAPPED)]
    return files + [bytes([AS_LOG | mode]) + LOG.read_bytes() for mode in (0, MENDED, MENDED | MAPPED)]


def with_tables(name: str, key_bits: list[int]) -> Path:
    """A file whose tables hold three of four bytes; without `key_bits` they take a quarter of a megabyte each."""
    import numpy as np

    from cghash import WeightedHammingIndex

    rng = np.random.default_rng(0)
    index = WeightedHammingIndex(32, rng.random(32) * (rng.permutation(32) < 24))
    index.add(rng.integers(0, 256, (300, 4), dtype=np.uint8))
    index._table.blocks.prepare(index._table.whole, None, None, 1e9, True, 1, key_bits)
    index.save(scratch() / name)
    return scratch() / name


def changed(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, most of them where headers are, or a piece cut out, doubled or moved."""
    content = bytearray(data or bytes(1))
    at = rng.choice([rng.randrange(min(400, len(content))), rng.randrange(len(content)), rng.randrange(4096, 4600)])
    at %= len(content)
    kind = rng.randrange(4)
    if kind == 0:
        content[at] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
    elif kind == 1:
        content = content.ljust(at + 8, bytes(1))
        struct.pack_into("<Q", content, at, rng.choice([0, 1, 2**31, 2**63, 2**64 - 1]))
    elif kind == 2:
        del content[at : at + rng.choice([1, 8, 4096])]
    else:
        content[at:at] = content[rng.randrange(len(content)) :][: rng.choice([1, 8, 80, 4096])]
    return bytes(content)


FORMATS = [Format("index", lambda: seeds(wide=True), one_input, changed, ("cghash.index",))]
