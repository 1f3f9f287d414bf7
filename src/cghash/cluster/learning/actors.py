"""Which worker holds which partitions of a fit, and their answers together; a lost partition is made again elsewhere.

A fit makes thousands of short calls, so each worker has an actor of Dask's: it is called directly, a few milliseconds
sooner than a task that the scheduler must place.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ...exceptions import ClusterError
from ..clients import address_of, faults
from .fit_partitions import FitPartition, History, Plan, Source
from .tree_sums import Node, Sums, added_up, leaves, total

_SECONDS = 60.0  # to wait for a worker where there is none
_STEP = 2.0  # after which it is looked whether a worker still lives
_ROUNDS = 20  # in which every partition must have answered
_UNREACHED, _LOST = "Unable to contact Actor's worker", "Worker holding Actor was lost"  # as Dask says it


@dataclass(frozen=True)
class Call:
    """A method of partitions, and which of them it is for."""

    step: int  # that a partition must have come to
    method: str
    arguments: tuple[Any, ...]
    changes: bool  # whether it takes a partition to the next step
    summed: bool
    n_partitions: int
    numbers: tuple[int, ...] = ()
    lost: tuple[Source, ...] = ()  # partitions to be made first, by what happened before
    history: History | None = None


@dataclass
class Answer:
    """What one actor answers."""

    missing: list[int] = field(default_factory=list)
    values: dict[int, Any] = field(default_factory=dict)  # of each partition, where sums were not asked for
    sums: dict[Node, Sums] = field(default_factory=dict)


class WorkerActor:
    """The partitions of a fit that one worker holds."""

    def __init__(self, plan: Plan) -> None:
        from distributed import get_worker
        from threadpoolctl import ThreadpoolController

        self.plan, self.n_threads = plan, get_worker().state.nthreads
        self.blas = ThreadpoolController()  # looks for libraries, which is slow: once
        self.partitions: dict[int, FitPartition] = {}

    def perform(self, call: Call) -> Answer:
        """Call a method of some partitions."""
        answer = Answer()
        with self.blas.limit(limits=1, user_api="blas"):
            for source in call.lost:
                assert call.history is not None
                partition = self.partitions[source.number] = FitPartition(source, self.plan, self.n_threads)
                partition.restore(call.history)
                partition.step = call.step
            for number in call.numbers:
                found = self.partitions.get(number)
                if found is None or found.step != call.step:
                    answer.missing.append(number)
                    continue
                answer.values[number] = getattr(found, call.method)(*call.arguments)
                found.step += call.changes
        if call.summed:
            answer.sums, answer.values = added_up(leaves(answer.values), call.n_partitions), {}
        return answer

    def forget(self, numbers: list[int]) -> None:
        for number in numbers:
            self.partitions.pop(number, None)


class ActorPool:
    """The actors of a fit, one a worker: `total` and `each` call a method of every partition, `change` changes them."""

    def __init__(self, client: Any, plan: Plan, sources: list[Source]) -> None:
        self.client, self.plan, self.sources = client, plan, sources
        self.history, self.step = History(), 0
        self._actors: dict[str, tuple[Any, Any]] = {}  # by worker: the actor, and what keeps it alive
        self._gone: set[str] = set()  # workers that did not answer
        self._holder: dict[int, str] = {}
        self._distribute()

    def total(self, method: str, *arguments: Any) -> Sums:
        """Sums over all partitions."""
        return self._summed(self._ask(method, arguments, summed=True))

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """What each partition answers, in their order."""
        values: dict[int, Any] = {}
        for answer in self._ask(method, arguments, summed=False):
            values |= answer.values
        return [values[number] for number in range(len(self.sources))]

    def change(self, history: History, method: str, *arguments: Any) -> Sums:
        """Call a method that leads to `history`."""
        answers = self._ask(method, arguments, summed=True, changes=True)
        self.history, self.step = history, self.step + 1
        return self._summed(answers)

    def rebalance(self) -> None:
        """Hand partitions from workers that hold too many to workers that hold too few, such as new ones."""
        before = dict(self._holder)
        self._distribute()
        for worker, (actor, _) in self._actors.items():
            moved = [number for number, where in before.items() if where == worker != self._holder[number]]
            if moved:
                with suppress(RuntimeError):  # its worker has died, and all that it held with it
                    actor.forget(moved)

    def dismiss(self) -> None:
        """Free what the workers hold; those that are gone hold nothing."""
        actors, self._actors = self._actors, {}
        for actor, kept in actors.values():
            with suppress(OSError, RuntimeError):
                actor.forget(list(range(len(self.sources)))).result(timeout=_SECONDS)
            kept.release()

    def _summed(self, answers: list[Answer]) -> Sums:
        known: dict[Node, Sums] = {}
        for answer in answers:
            known |= answer.sums
        return total(known, len(self.sources))

    def _ask(self, method: str, arguments: tuple[Any, ...], summed: bool, changes: bool = False) -> list[Answer]:
        call = Call(self.step, method, arguments, changes, summed, len(self.sources))
        answers, waiting, lost = [], list(range(len(self.sources))), False
        for _ in range(_ROUNDS):
            new, waiting = self._round(call, waiting, lost)
            answers += new
            if not waiting:
                return answers
            self._distribute()
            lost = True
        raise ClusterError(f"the workers of {address_of(self.client)} lost the same shares of the fit again and again")

    def _round(self, call: Call, waiting: list[int], lost: bool) -> tuple[list[Answer], list[int]]:
        """Ask the holders of some partitions, making them first where they are lost; also who is still waited for."""
        asked = []
        for worker in sorted({self._holder[number] for number in waiting}):
            numbers = tuple(number for number in waiting if self._holder[number] == worker)
            one = replace(call, numbers=numbers)
            if lost:
                one = replace(one, lost=tuple(self.sources[n] for n in numbers), history=self.history)
            asked.append((worker, numbers, self._call(worker, one)))
        answers, missing = [], []
        for worker, numbers, future in asked:
            try:
                answers.append(self._result(worker, future))
                missing += answers[-1].missing
            except (OSError, RuntimeError) as error:
                if not _lost_worker(error):
                    raise
                self._gone.add(worker)
                self._actors.pop(worker, None)
                missing += numbers
        return answers, sorted(missing)

    def _result(self, worker: str, future: Any) -> Any:
        """What a call gave; Dask would wait for ever for a worker that vanished and left its connection open."""
        while True:
            try:
                return future.result(timeout=_STEP)
            except TimeoutError:
                if future.done():
                    raise  # the call's own
                if worker not in self._known():
                    raise RuntimeError(_LOST) from None

    def _call(self, worker: str, call: Call) -> Any:
        try:
            return self._actor(worker).perform(call)
        except RuntimeError as error:
            if not _lost_worker(error):
                raise
            return _Lost(error)

    def _actor(self, worker: str) -> Any:
        if worker not in self._actors:
            with faults(self.client), self.client.as_current():
                kept = self.client.submit(WorkerActor, self.plan, actor=True, workers=[worker], pure=False)
                self._actors[worker] = self._started(worker, kept), kept
        return self._actors[worker][0]

    def _started(self, worker: str, kept: Any) -> Any:
        """The actor, once it is there; Dask itself would wait for a worker that died before."""
        while True:
            try:
                return kept.result(timeout=_STEP)
            except TimeoutError:
                if worker not in self._known():
                    kept.cancel()
                    raise RuntimeError(_LOST) from None

    def _distribute(self) -> None:
        """Give every partition to a worker that lives, consecutive ones to one, as many to each as to any other."""
        workers, n = self._living(), len(self.sources)
        most = -(-n // len(workers))
        if len(self._holder) < n:  # the first time
            self._holder = {number: workers[number // most] for number in range(n)}
            return
        held = Counter(worker for worker in self._holder.values() if worker in workers)
        for number, worker in self._holder.items():
            if worker in workers and held[worker] <= most:
                continue
            least = min(workers, key=lambda one: (held[one], one))
            held[worker] -= 1
            held[least] += 1
            self._holder[number] = least

    def _living(self) -> list[str]:
        """The workers, those that did not answer left out; where there are none, new ones are waited for."""
        last = time.monotonic() + _SECONDS
        with faults(self.client):
            while True:
                known = self._known()
                self._gone &= known  # who is no longer known need not be remembered
                if known - self._gone:
                    return sorted(known - self._gone)
                if time.monotonic() > last:
                    raise ClusterError(f"the scheduler at {address_of(self.client)} has no workers")
                time.sleep(_STEP / 10)

    def _known(self) -> set[str]:
        """The workers that the scheduler knows of."""
        try:
            return set(self.client.nthreads())
        except OSError as error:
            raise ClusterError(
                f"the scheduler at {address_of(self.client)} was lost; a fit with a checkpoint goes on from it"
            ) from error


class _Lost:
    """A call that could not be made."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self, timeout: float) -> Any:
        raise self.error


def _lost_worker(error: Exception) -> bool:
    """Whether an actor's call failed because its worker is gone; its own errors are the user's to see."""
    unreached = isinstance(error, OSError) and error.errno is None and str(error) == _UNREACHED
    return unreached or (isinstance(error, RuntimeError) and str(error).startswith(_LOST))
