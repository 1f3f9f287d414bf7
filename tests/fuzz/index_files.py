"""Fuzz index files and logs: whatever the bytes, loading ends in an index that can be used, or in a FormatError.

    python tests/fuzz/index_files.py [seconds]

By coverage where atheris is installed, else by random mutations of the fixtures. The first byte of an input says what
the rest is (a file, a log), whether checksums are made right (so that what lies behind them is reached) and whether the
file is mapped. `make fuzz` runs it.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = [FIXTURES / f"index-v1-{name}.cghash" for name in ("plain", "ids-removed", "log", "tables")]
LOG = FIXTURES / "index-v1-log.cghash.log"
FINDINGS = Path("out") / "fuzz"
AS_LOG, MENDED, MAPPED = 1, 2, 4
HEAD, ENTRY, PAGE = 24, 80, 4096  # bytes of a file's header before its table, of an entry, of a page


@cache
def folder() -> Path:
    """Where inputs are written to be loaded."""
    return Path(tempfile.mkdtemp(prefix="cghash-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))


def one_input(data: bytes) -> None:
    """Load, search, verify; anything but FormatError escapes."""
    if not data:
        return
    mode, content = data[0], bytearray(data[1:])
    path, log = folder() / "i", folder() / "i.log"
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

    try:
        index = WeightedHammingIndex.load(path, mapped, n_jobs=1)
    except FormatError:
        return
    assert len(index) <= 64 * (path.stat().st_size + 4096)
    if index._blocks.n_prepared:  # search goes by the tables, few as the codes are
        index._blocks.adopt(index._blocks.prepared(), True)
    distances, ids = index.search(np.zeros((2, index.n_bytes), dtype=np.uint8), 3)
    assert distances.shape == ids.shape == (2, 3)
    index.range_search(np.zeros((1, index.n_bytes), dtype=np.uint8), 1.0)
    known = [i for i in index.ids.tolist()[:50] if i >= 0 and i in index]
    assert index.reconstruct(known).shape == (len(known), index.n_bytes)
    if index._ids.next_id < 2**62:
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
    index._blocks.prepare(index._whole, None, None, 1e9, True, 1, key_bits)
    index.save(folder() / name)
    return folder() / name


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods of a module; the loader of an editable install hides them from atheris."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    for holder in [module, *(value for value in own if isinstance(value, type))]:
        for value in list(vars(holder).values()):
            found = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
            found = getattr(found, "__wrapped__", found)
            if isinstance(found, FunctionType) and found.__module__ == module.__name__:
                yield found


def by_coverage(seconds: int) -> None:
    import atheris  # type: ignore[import-not-found, unused-ignore]

    import cghash.index.opening  # noqa: F401

    for name, module in list(sys.modules.items()):
        if name.startswith("cghash.index"):
            for function in functions_of(module):
                function.__code__ = atheris.instrument_func(function).__code__
    corpus = folder() / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds()):
        (corpus / str(number)).write_bytes(seed)
    FINDINGS.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", "-max_len=65536", "-timeout=20", "-rss_limit_mb=2048"]
    options = [*limits, f"-artifact_prefix={FINDINGS}/", "-print_final_stats=1", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one_input)
    atheris.Fuzz()


def by_chance(seconds: int) -> None:
    rng, end, n = random.Random(0), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        one_input(mutated(rng))
        n += 1
    print(f"{n} inputs, no finding")


def mutated(rng: random.Random) -> bytes:
    """A seed with some bytes changed, most of them where headers are, or with a piece cut out, doubled or moved."""
    data = bytearray(rng.choice(seeds(wide=True)))
    for _ in range(rng.randint(1, 6)):
        at = rng.choice([rng.randrange(min(400, len(data))), rng.randrange(len(data)), rng.randrange(4096, 4600)])
        at %= len(data)
        kind = rng.randrange(4)
        if kind == 0:
            data[at] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        elif kind == 1:
            struct.pack_into("<Q", data := data.ljust(at + 8, b"\0"), at, rng.choice([0, 1, 2**31, 2**63, 2**64 - 1]))
        elif kind == 2:
            del data[at : at + rng.choice([1, 8, 4096])]
            data = data or bytearray(1)
        else:
            data[at:at] = data[rng.randrange(len(data)) :][: rng.choice([1, 8, 80, 4096])]
    return bytes(data)


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    try:
        import atheris  # type: ignore[import-not-found, unused-ignore] # noqa: F401
    except ImportError:
        by_chance(seconds)
    else:
        by_coverage(seconds)


if __name__ == "__main__":
    main()
