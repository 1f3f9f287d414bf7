"""How inputs are run: one by one under limits of memory and time, drawn at random or led by coverage."""

from __future__ import annotations

import faulthandler
import hashlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType

import mutations

FINDINGS = Path("out") / "fuzz"
ROOM = 3 << 30  # bytes of address space beyond what the program has when it begins
PATIENCE = 20  # seconds for an input
STUCK = 120  # seconds after which native code that does not come back ends the program


@dataclass(frozen=True)
class Format:
    """One format that we read.

    Parameters
    ----------
    name : for `--format`
    seeds : inputs that are good
    use : reads an input and uses what came; an error of ours is a refusal, any other a finding
    mutated : changes an input
    modules : which modules coverage is measured in, by the beginning of their names
    sample : how many inputs `make test` runs
    once : inputs that are run as they are, such as small files of what is large
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    use: Callable[[bytes], None]
    mutated: Callable[[bytes, random.Random], bytes] = mutations.bytes_changed
    modules: tuple[str, ...] = ()
    sample: int = 150
    once: Callable[[], Sequence[bytes]] = list


@dataclass
class Counts:
    """What came of the inputs of a format."""

    inputs: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    def row(self) -> dict[str, int]:
        """How many there were of each, in all of their kinds."""
        refused, failures = sum(self.refused.values()), sum(self.failures.values())
        usable = self.inputs - refused - failures
        return {"inputs": self.inputs, "usable": usable, "refused": refused, "failures": failures}


class TooLongError(BaseException):
    """An input took longer than it may; no handler of ordinary errors catches it."""


class TooMuchError(AssertionError):
    """An input made memory run out, whatever the error says that came of it."""


@cache
def scratch() -> Path:
    """Where inputs are written to be read."""
    return Path(tempfile.mkdtemp(prefix="cghash-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))


def tried(kind: Format, data: bytes) -> str | None:
    """Run one input: None where it could be used, the name of the error that refused it; anything else is raised."""
    from cghash.exceptions import CGHashError

    faulthandler.dump_traceback_later(STUCK, exit=True)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        kind.use(data)
    except CGHashError as error:
        if ran_out_of_memory(error):
            raise TooMuchError(f"memory ran out: {error}") from error
        return type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
    return None


def ran_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or what it came of, is that of memory."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return error is not None


def by_chance(kind: Format, seconds: float, inputs: int | None) -> Counts:
    """Mutated seeds, the same in every run, until the time is over or so many were run."""
    rng, end, counts = random.Random(0), time.monotonic() + seconds, Counts()
    current = FINDINGS / f"{kind.name}.current"  # stays where the program crashes
    current.parent.mkdir(parents=True, exist_ok=True)
    seeds = list(kind.seeds())
    for seed in (*seeds, *kind.once()):
        _counted(kind, seed, counts)
        if counts.inputs <= len(seeds) and sum(counts.refused.values()):
            raise SystemExit(f"{kind.name}: seed {counts.inputs - 1} is refused, and what is made of it tries nothing")
    while counts.inputs < inputs if inputs is not None else time.monotonic() < end:
        data = rng.choice(seeds)
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            data = kind.mutated(data, rng)
        current.write_bytes(data)
        _counted(kind, data, counts)
    current.unlink(missing_ok=True)
    return counts


def _counted(kind: Format, data: bytes, counts: Counts) -> None:
    counts.inputs += 1
    try:
        refusal = tried(kind, data)
    except (Exception, TooLongError) as error:
        where = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in where if "cghash" in frame.filename and "/tests/" not in frame.filename]
        place = (ours or where)[-1]
        known = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno} ({place.name}): {error!s:.120}"
        short = known.split("): ")[0]
        if not any(found.startswith(short) for found in counts.failures):
            path = FINDINGS / f"{kind.name}-{hashlib.sha256(short.encode()).hexdigest()[:8]}"
            path.write_bytes(data)
            traceback.print_exception(error, limit=-6)
            known = f"{known} -> {path}"
        else:
            known = next(found for found in counts.failures if found.startswith(short))
        counts.failures[known] += 1
    else:
        if refusal is not None:
            counts.refused[refusal] += 1


def limit_memory() -> None:
    """From now on the program may take so much more address space, and no more."""
    import resource

    words = Path("/proc/self/statm").read_text().split() if Path("/proc/self/statm").is_file() else ["0"]
    now = int(words[0]) * resource.getpagesize()
    if now:
        resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, now + ROOM))


def prepare() -> None:
    """Limits and silence; the folder of inputs is thrown away at the end."""

    def interrupt(*_: object) -> None:
        raise TooLongError(f"an input took more than {PATIENCE} s")

    signal.signal(signal.SIGALRM, interrupt)
    faulthandler.enable()
    warnings.simplefilter("ignore")


def clean() -> None:
    with suppress(OSError):
        shutil.rmtree(scratch())


def by_coverage(kind: Format, seconds: int) -> None:
    """Led by atheris towards lines that no input has reached; ends the program, at the first finding too."""
    import atheris

    seeds = kind.seeds()
    for name, module in list(sys.modules.items()):
        if name.startswith(kind.modules):
            for function in functions_of(module):
                function.__code__ = atheris.instrument_func(function).__code__
    corpus = scratch() / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed)
    FINDINGS.mkdir(parents=True, exist_ok=True)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        changed = atheris.Mutate(data, most) if data and rng.random() < 0.3 else kind.mutated(data, rng)
        return bytes(changed) if len(changed) <= most else data[:most]

    longest = max(65536, 2 * max(map(len, seeds)))
    limits = [f"-max_total_time={seconds}", f"-max_len={longest}", f"-timeout={PATIENCE}", "-rss_limit_mb=4096"]
    options = [*limits, f"-artifact_prefix={FINDINGS}/{kind.name}-", "-print_final_stats=1", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda data: tried(kind, data) and None, custom_mutator=mutate)
    atheris.Fuzz()


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods of a module; the loader of an editable install hides them from atheris."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    for holder in [module, *(value for value in own if isinstance(value, type))]:
        for value in list(vars(holder).values()):
            found = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
            found = getattr(found, "__wrapped__", found)
            if isinstance(found, FunctionType) and found.__module__ == module.__name__:
                yield found
