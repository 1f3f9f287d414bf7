"""Algorithm 1 of the paper: hash functions by column generation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .._arrays import Bools, Floats
from ..exceptions import ConvergenceWarning, NothingToLearnError
from .backend import ColumnSums, PairWeights
from .families.base import Family, Functions, Priced
from .losses import Loss
from .master import Master, MasterSolution, feasible_share, master_for, reach, relative_gap
from .regularizers import Regularizer
from .result import ColumnRecord, FitResult

_ATTEMPTS = 3  # of a search by heuristics, before it is believed that there is nothing more
_TIGHTEST = 1e-8  # relative gap of a master problem below which it is not solved again


@dataclass
class State:
    """What Algorithm 1 knows after some columns; a checkpoint holds just this."""

    functions: Functions | None = None
    weights: list[Floats] = field(default_factory=list)  # after each column
    records: list[ColumnRecord] = field(default_factory=list)


@dataclass(frozen=True)
class Problem:
    """What is to be learned from triplets: loss, regulariser, and the family to choose functions from."""

    loss: Loss
    regularizer: Regularizer
    family: Family


class ColumnGeneration:
    """Runs Algorithm 1 on a problem, column by column.

    Parameters
    ----------
    problem : Problem
    columns, pairs : ColumnSums and PairWeights
        What a backend knows of the triplets.
    n_bits : int
        ℓ, the number of hash functions to learn at most.
    tol : float
        A violation up to this counts as optimal.
    seed : int
        Column j's random numbers depend on (seed, j) alone, so a resumed run draws the same.
    time_limit : float
        Seconds after which no further column is begun.
    """

    def __init__(
        self,
        problem: Problem,
        columns: ColumnSums,
        pairs: PairWeights,
        n_bits: int,
        *,
        tol: float = 1e-6,
        seed: int = 0,
        time_limit: float = np.inf,
    ) -> None:
        self.problem, self.n_bits, self.tol = problem, n_bits, tol
        self.seed, self.time_limit = seed, time_limit
        self.columns, self.pairs = columns, pairs
        self.master: Master = master_for(columns, problem.regularizer.upper)
        self._costs: list[float] = []
        self._bits: set[bytes] = set()

    def run(
        self, state: State, after_column: Callable[[State], None] | None = None, began: float | None = None
    ) -> FitResult:
        """Continue from `state`, which grows column by column, until a reason to stop.

        The time limit counts from `began`, a reading of `time.perf_counter`, by default from now.
        """
        began = time.perf_counter() if began is None else began
        final_violation = float("nan")
        solution = self._replay(state)
        try:
            while True:
                started = time.perf_counter()
                if state.records and started - began > self.time_limit:
                    status = "time_limit"
                    break
                priced = self._price(solution, state)  # step 1
                status, new = self._choose(priced, state)
                final_violation = self._best_gain(priced) - self.problem.regularizer.flat
                self._certify(state, solution, priced)
                if status == "again":
                    solution = self._solve_closer(solution)
                    self._correct(state, solution)
                    continue
                if new is None:
                    break
                between = time.perf_counter()
                self._add(state, priced.candidates[new], priced.bits[new])  # steps 2 and 3
                solution = self.master.solve(self._cost(), np.append(solution.w, 0.0))  # step 4
                seconds = (between - started, time.perf_counter() - between)
                self._record(state, solution, priced, new, seconds)
                if after_column is not None:
                    after_column(state)
        except KeyboardInterrupt:
            if not state.records:
                raise
            status, final_violation = "interrupted", float("nan")
            self._forget_unfinished(state)
        return self._result(state, status, final_violation, time.perf_counter() - began)

    # The steps of Algorithm 1

    def _price(self, solution: MasterSolution, state: State) -> Priced:
        """Step 1: search for the hash function with the largest gain at the current multipliers (eq. 11).

        A search by heuristics may fail where functions exist: it is tried again with other draws.
        """
        regularizer, family = self.problem.regularizer, self.problem.family
        self.pairs.set_slopes(solution.slopes, regularizer.duplet / max(1, len(regularizer.duplets)))
        priced = Priced([], [], [], max_gain=0.0, positive_gains=0.0)
        if not self.pairs.n_live:
            return priced
        for attempt in range(1 if family.exact else _ATTEMPTS):
            rng = np.random.default_rng([self.seed, len(state.records), attempt])
            priced = family.price(self.pairs, rng, state.functions if regularizer.bounded else None)
            if self._fresh(priced) is not None:
                break
        return priced

    def _fresh(self, priced: Priced) -> int | None:
        """The best candidate that promises something and is not there yet."""
        flat = self.problem.regularizer.flat
        # an exact family leaves out what is taken: under l∞ another function with the same bits has its own weight
        twice = self.problem.family.exact and self.problem.regularizer.bounded
        for i, (bits, gain) in enumerate(zip(priced.bits, priced.gains, strict=True)):
            if gain - flat > self.tol and (twice or self.columns.key(bits) not in self._bits):
                return i
        return None

    def _choose(self, priced: Priced, state: State) -> tuple[str, int | None]:
        """Decide whether to stop, to solve the master problem more exactly, or which candidate to add."""
        column, fresh = len(state.records), self._fresh(priced)
        if column == 0 and fresh is None:
            raise NothingToLearnError(self._nothing(priced))
        if fresh is not None and column >= self.n_bits:
            return "n_bits", None
        if fresh is not None:
            return "add", fresh
        stale = self._best_gain(priced) - self.problem.regularizer.flat > self.tol
        if stale and not self.problem.regularizer.bounded and self.master.tol > _TIGHTEST:
            return "again", None
        return ("optimal" if self.problem.family.exact and not stale else "no_function"), None

    def _add(self, state: State, function: Functions, bits: Bools) -> None:
        """Steps 2 and 3: keep the function, and its column over all triplets."""
        self._append(bits)
        state.functions = function if state.functions is None else state.functions.joined(function)

    def _append(self, bits: Bools) -> None:
        self.columns.append(bits)
        self._costs.append(self.problem.regularizer.cost(bits))
        self._bits.add(self.columns.key(bits))
        self.master.added(bits, self._costs[-1])

    # Bookkeeping

    def _replay(self, state: State) -> MasterSolution:
        """The master problem's solution after the columns of a state; a new state has none."""
        solution = self._at(np.zeros(0), 0.0)
        for j, record in enumerate(state.records):
            assert state.functions is not None
            self._append(self.problem.family.training_bits(state.functions.one(j)))
            if self.master.stateful:
                solution = self.master.solve(self._cost(), np.append(solution.w, 0.0))
                while self.master.tol > max(record.tolerance_master, _TIGHTEST):
                    solution = self._solve_closer(solution)
        if state.records and not self.master.stateful:
            solution = self._at(state.weights[-1], state.records[-1].bound_master)
            self.master.tol = state.records[-1].tolerance_master
        return solution

    def _at(self, w: Floats, bound: float) -> MasterSolution:
        """What is known at given weights, without solving."""
        value, slopes = self.columns.slopes(w)
        return MasterSolution(w, value + float(self._cost() @ w), bound, slopes, 0, True)

    def _solve_closer(self, solution: MasterSolution) -> MasterSolution:
        """The same master problem to a hundredth of its gap."""
        self.master.tol = max(_TIGHTEST, self.master.tol / 100)
        return self.master.solve(self._cost(), solution.w)

    def _correct(self, state: State, solution: MasterSolution) -> None:
        """Put a closer solution of the last master problem in the place of the one before."""
        state.weights[-1] = solution.w
        record = state.records[-1]
        record.objective, record.bound_master = solution.objective, solution.bound
        record.evaluations_master += solution.n_evaluations
        record.tolerance_master = self.master.tol
        record.satisfied, record.live_triplets = self.columns.counts(solution.w)

    def _forget_unfinished(self, state: State) -> None:
        """After an interrupt: keep only columns whose weights were solved."""
        done = len(state.records)
        del state.weights[done:]
        if state.functions is not None and len(state.functions) > done:
            state.functions = state.functions.head(done)

    def _certify(self, state: State, solution: MasterSolution, priced: Priced) -> None:
        """Write the dual bound of the full problem, known from the last pricing, into the last record."""
        if not state.records:
            return
        bound = full_bound(self.columns, solution, self.problem, priced, self._cost())
        record = state.records[-1]
        if self.problem.family.exact and len(state.records) > 1:
            bound = max(bound, state.records[-2].bound)
        record.objective = solution.objective
        record.bound = min(bound, solution.objective)
        record.gap = relative_gap(record.objective, record.bound)

    def _record(
        self, state: State, solution: MasterSolution, priced: Priced, new: int, seconds: tuple[float, float]
    ) -> None:
        regularizer = self.problem.regularizer
        promised = priced.gains[new]
        satisfied, live = self.columns.counts(solution.w)
        state.weights.append(solution.w)
        state.records.append(
            ColumnRecord(
                gain=promised + regularizer.duplet * regularizer.spread(priced.bits[new]),
                violation=promised - regularizer.flat,
                objective=solution.objective,
                bound=0.0,
                gap=1.0,
                satisfied=satisfied,
                live_triplets=live,
                live_items=self.pairs.n_live,
                evaluations_pricing=priced.n_evaluations,
                evaluations_master=solution.n_evaluations,
                bytes_pricing=priced.bytes_read,
                seconds_pricing=seconds[0],
                seconds_master=seconds[1],
                bound_master=solution.bound,
                tolerance_master=self.master.tol,
            )
        )
        if not solution.converged:
            warnings.warn(
                f"the master problem of column {len(state.records)} stopped at a relative gap of "
                f"{solution.gap:.2g}; a larger C makes it easier",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _result(self, state: State, status: str, final_violation: float, seconds: float) -> FitResult:
        problem = self.problem
        return FitResult(
            status=status,
            exact=problem.family.exact,
            loss=str(getattr(problem.loss, "name", type(problem.loss).__name__)),
            regularizer="linf" if problem.regularizer.bounded else "l1",
            family=state.functions.family if state.functions is not None else "",
            n_triplets=self.columns.n_triplets,
            n_pairs=self.columns.n_slots,
            columns=state.records,
            final_violation=final_violation,
            zero_weights=int(np.sum(state.weights[-1] <= 0.0)),
            seconds=seconds,
        )

    def _best_gain(self, priced: Priced) -> float:
        """The largest gain that was found, less what duplets cost."""
        return priced.max_gain if priced.max_gain is not None else max(priced.gains, default=0.0)

    def _nothing(self, priced: Priced) -> str:
        best, flat = self._best_gain(priced), self.problem.regularizer.flat
        if best > self.tol:
            return f"C must be below {best:.3g}, the largest gain that was found, got {flat:.3g}"
        if self.problem.regularizer.duplet:
            return (
                "no hash function of this family gains more on the triplets than its distances of the duplets cost: "
                "C must be smaller under l1, and the duplets must agree with the triplets"
            )
        return (
            "no hash function of this family satisfies more triplets than it breaks: are all items alike? "
            "Or do the comparisons contradict each other?"
        )

    def _cost(self) -> Floats:
        return np.array(self._costs)


def full_bound(
    columns: ColumnSums,
    solution: MasterSolution,
    problem: Problem,
    priced: Priced,
    cost: Floats,
) -> float:
    """Dual bound of the problem over the whole family (eq. 9, 17), from the multipliers of a master's solution.

    Proven when pricing is exact (with duplets under l1: for weights up to `reach`); else it speaks of the functions
    found so far and of the new candidates.
    """
    gain = -columns.adjoint(solution.slopes)
    new = max(priced.gains, default=0.0)
    smooth = getattr(problem.loss, "smooth", True)
    regularizer = problem.regularizer
    rest = float(np.asarray(problem.loss.conjugate(np.zeros(1)))[0])
    found = max(new, priced.max_gain or 0.0)
    if regularizer.bounded:
        within = float(np.sum(np.maximum(gain - cost, 0.0)))  # of the columns so far
        candidates = sum(max(g, 0.0) for g in priced.gains)
        beyond = candidates if priced.positive_gains is None else max(0.0, priced.positive_gains - within)
        base = columns.dual_value(solution.w, 1.0) - regularizer.upper * within if smooth else solution.bound
        return max(base - regularizer.upper * beyond, -rest)
    if regularizer.duplet:  # costs differ and may be 0, where no θ helps: weights up to `reach`, as in master.py
        violation = max(found, float(np.max(gain - cost, initial=0.0)))
        base = columns.dual_value(solution.w, 1.0) if smooth else solution.bound
        return max(base - reach(solution.w) * violation, -rest)
    scale = feasible_share(gain, cost)
    if found > regularizer.flat:
        scale = min(scale, regularizer.flat / found)
    if smooth:
        return columns.dual_value(solution.w, scale)
    return scale * solution.bound - (1.0 - scale) * rest
