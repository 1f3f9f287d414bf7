"""Who does the work: a Dask cluster that runs already, or processes of this machine; and what may happen to them."""

from __future__ import annotations

import gc
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any

from .._validation import check_whole
from ..exceptions import ClusterError, InvalidInputError
from ..stores.base import require

LOOPBACK = "127.0.0.1"
_SECONDS = 10.0  # to reach a scheduler
_FOR_WORKERS = 30.0  # seconds to wait for a worker where there is none
_LOOK = 1.0  # seconds between two looks at which workers live
_MOMENT = 5e-4  # seconds: far less than a call takes
_AHEAD = 1000  # tasks that a scheduler knows of at a time

_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
# Dask has every array's memory given back to the system, and taken anew for the next: a third of the time of encoding
_MEMORY_IS_KEPT = {"MALLOC_TRIM_THRESHOLD_": 1 << 28, "MALLOC_MMAP_THRESHOLD_": 1 << 28}  # bytes


@contextmanager
def connected(client: Any = None, *, n_workers: int | None = None) -> Iterator[Any]:
    """A client of Dask, for as long as it is needed.

    Processes of this machine start a fresh Python, so a script that begins them must do its work under
    ``if __name__ == "__main__":``, as with `multiprocessing`; notebooks and the command line need nothing.

    Parameters
    ----------
    client : a `distributed.Client`, which stays open; the address of a scheduler, such as tcp://10.0.0.1:8786; or None:
        processes of this machine, one thread each, which nothing beyond the loopback interface can reach
    n_workers : processes, where there is no cluster yet; default: one a core

    Examples
    --------
    >>> with connected(n_workers=1) as client:
    ...     client.submit(sum, [1, 2, 3]).result()
    6
    """
    distributed = require("distributed", "dask")
    if n_workers is not None and client is not None:
        raise InvalidInputError(f"n_workers is for a cluster of this machine, but client is {client!r}")
    with ExitStack() as opened:
        if isinstance(client, distributed.Client):
            found = client
        elif isinstance(client, str):
            found = opened.enter_context(_reached(distributed, client))
        elif client is None:
            cluster = opened.enter_context(_local(distributed, n_workers))
            # workers of this machine can be called without the scheduler between: a third less to wait for a short call
            with _nothing_collected():
                near = distributed.Client(cluster, set_as_default=False, timeout=_SECONDS, direct_to_workers=True)
            found = opened.enter_context(_closed_at_last(near))
        else:
            raise InvalidInputError(
                f"client must be a distributed.Client, the address of a scheduler or None, got {client!r}"
            )
        workers_of(found)
        yield found


def in_any_order(
    client: Any, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """(number, result) of each call of a function with some arguments, as workers finish them.

    A worker that dies is no error: Dask has its calls made by another.
    """
    from distributed import as_completed

    waiting = enumerate(calls)
    numbers: dict[Any, int] = {}  # of the calls that are not finished

    def submitted(most: int) -> list[Any]:
        new = {client.submit(function, *call, pure=False): number for number, call in islice(waiting, most)}
        numbers.update(new)
        return list(new)

    with faults(client), _cancelled_at_last(client, numbers):
        pending = as_completed(submitted(_AHEAD), loop=client.loop)
        for future in pending:
            yield numbers.pop(future), future.result()
            pending.update(submitted(1))


def at_home(
    client: Any, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], homes: Sequence[str]
) -> Iterator[tuple[int, Any]]:
    """The same, where each call has a worker that should make it, if it lives."""
    from distributed import as_completed

    numbers: dict[Any, int] = {}
    with faults(client), _cancelled_at_last(client, numbers):
        for number, (call, home) in enumerate(zip(calls, homes, strict=True)):
            where = {"workers": [home], "allow_other_workers": True}
            numbers[client.submit(function, *call, pure=False, **where)] = number
        pending = as_completed(list(numbers), loop=client.loop)
        looked = time.monotonic()
        while numbers:
            if pending.has_ready():
                future = next(pending)
                if future in numbers:  # else it was submitted again
                    yield numbers.pop(future), future.result()
            elif time.monotonic() - looked < _LOOK:
                time.sleep(_MOMENT)
            else:
                looked = time.monotonic()
                if homes and not set(homes) & set(workers_of(client)):
                    # there was no worker at all: Dask keeps calls that name a dead one for it to come back
                    homes, left = (), list(numbers.values())
                    numbers.clear()
                    numbers.update({client.submit(function, *calls[i], pure=False): i for i in left})
                    pending.update(list(numbers))


@contextmanager
def _cancelled_at_last(client: Any, numbers: dict[Any, int]) -> Iterator[None]:
    """Cancel the calls that are left when there was an error, or when nobody wants the rest."""
    try:
        yield
    finally:
        if numbers and client.status == "running":
            client.cancel(list(numbers), force=True)


@contextmanager
def faults(client: Any) -> Iterator[None]:
    """What can happen to a cluster, as a ClusterError in plain words."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    where = address_of(client)
    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"{error.allowed_failures + 1} workers of {where} died one after another over the same task: "
            "perhaps a partition needs more memory than a worker may have"
        ) from error
    except (CancelledError, CommClosedError) as error:
        raise ClusterError(
            f"the scheduler at {where} was lost, or the work was cancelled there; what was finished is kept"
        ) from error


def workers_of(client: Any) -> list[str]:
    """The addresses of the workers that are there; one is waited for."""
    from distributed.core import RPCClosed

    last = time.monotonic() + _FOR_WORKERS
    with faults(client):
        try:
            while client.status in ("running", "connecting"):
                if found := sorted(client.nthreads()):
                    return found
                if time.monotonic() > last:
                    raise ClusterError(f"the scheduler at {address_of(client)} has no workers")
                time.sleep(_MOMENT)
        except (RPCClosed, TimeoutError) as error:
            raise CancelledError from error
        raise CancelledError


def address_of(client: Any) -> str:
    """Where a client's scheduler is, for messages."""
    return str(getattr(client.scheduler, "address", None) or "an unknown address")


@contextmanager
def _reached(distributed: Any, address: str) -> Iterator[Any]:
    try:
        with _nothing_collected():
            client = distributed.Client(address, set_as_default=False, timeout=_SECONDS)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError; ValueError: not an address
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ClusterError(f"the scheduler at {address} cannot be reached: {words}") from error
    with _closed_at_last(client):
        yield client


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """While a client or a cluster starts, nothing is collected.

    A client that nobody closed is closed as it is collected, for which it takes the lock that starting a loop holds. In
    the loop that starts, it would wait for that lock, and the start for the loop.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def _closed_at_last(client: Any) -> Iterator[Any]:
    """Close a client at the end, and ignore what Dask raises while it closes: its scheduler may be gone."""
    client.__enter__()
    try:
        yield client
    finally:
        try:
            client.__exit__(None, None, None)
        except Exception:
            # else Dask closes it once more as it is collected, for which it takes the lock that starting a loop holds:
            # collected in a loop that starts, neither goes on
            client.status = "closed"


@contextmanager
def _local(distributed: Any, n_workers: int | None) -> Iterator[Any]:
    from dask import config

    n_workers = check_whole(os.cpu_count() if n_workers is None else n_workers, 1, "n_workers")
    environment = config.get(_ENVIRONMENT, default={}) | _MEMORY_IS_KEPT
    try:
        with config.set({_ENVIRONMENT: environment}), _nothing_collected():
            cluster = distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                host=LOOPBACK,
                dashboard_address=f"{LOOPBACK}:0",
                silence_logs=logging.CRITICAL,
            )
    except RuntimeError as error:
        raise ClusterError(
            'worker processes could not be started; a script must do its work under `if __name__ == "__main__":`'
        ) from error
    with cluster:
        yield cluster
