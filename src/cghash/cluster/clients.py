"""Who does the work: a Dask cluster that runs already, or processes of this machine; and what may happen to them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any

from .._validation import check_whole
from ..exceptions import ClusterError, InvalidInputError
from ..stores.base import require

LOOPBACK = "127.0.0.1"
_SECONDS = 10.0  # to reach a scheduler, and for it to have a worker
_AHEAD = 1000  # tasks that a scheduler knows of at a time


@contextmanager
def connected(client: Any = None, *, n_workers: int | None = None) -> Iterator[Any]:
    """A client of Dask, for as long as it is needed.

    Parameters
    ----------
    client : a `distributed.Client`, which stays open; the address of a scheduler, such as tcp://10.0.0.1:8786; or None:
        processes of this machine, one thread each, which nothing beyond the loopback interface can reach
    n_workers : processes, where there is no cluster yet; default: one a core

    The processes start a fresh Python, so a script that begins them must do its work under
    `if __name__ == "__main__":`, as with `multiprocessing`; notebooks and the command line need nothing.

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
            found = opened.enter_context(distributed.Client(cluster, set_as_default=False, timeout=_SECONDS))
        else:
            raise InvalidInputError(
                f"client must be a distributed.Client, the address of a scheduler or None, got {client!r}"
            )
        workers_of(found)
        yield found


def in_any_order(
    client: Any,
    function: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    workers: Sequence[str] | None = None,
) -> Iterator[tuple[int, Any]]:
    """(number, result) of each call of a function with some arguments, as workers finish them.

    A worker that dies is no error: Dask has its calls made by another. `workers` are the addresses of those who should
    make the calls, if they can.
    """
    from distributed import as_completed

    waiting = enumerate(calls)
    numbers: dict[Any, int] = {}  # of the calls that are not finished

    def submitted(most: int) -> list[Any]:
        new = []
        for number, call in islice(waiting, most):
            where = {} if workers is None else {"workers": [workers[number]], "allow_other_workers": True}
            new.append(client.submit(function, *call, pure=False, **where))
            numbers[new[-1]] = number
        return new

    with faults(client):
        pending = as_completed(submitted(_AHEAD), loop=client.loop)
        try:
            for future in pending:
                yield numbers.pop(future), future.result()
                pending.update(submitted(1))
        finally:
            if numbers and client.status == "running":  # an error, or nobody wants the rest
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
    with faults(client):
        try:
            client.wait_for_workers(1, timeout=_SECONDS)
            return sorted(client.nthreads())
        except TimeoutError as error:
            raise ClusterError(f"the scheduler at {address_of(client)} has no workers") from error


def address_of(client: Any) -> str:
    """Where a client's scheduler is, for messages."""
    return str(getattr(client.scheduler, "address", None) or "an unknown address")


@contextmanager
def _reached(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, set_as_default=False, timeout=_SECONDS)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError; ValueError: not an address
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ClusterError(f"the scheduler at {address} cannot be reached: {words}") from error
    with client:
        yield client


@contextmanager
def _local(distributed: Any, n_workers: int | None) -> Iterator[Any]:
    n_workers = check_whole(os.cpu_count() if n_workers is None else n_workers, 1, "n_workers")
    try:
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
