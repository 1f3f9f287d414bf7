"""CGHash, the estimator: parameters in, binary codes out."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from . import _validation as check
from ._arrays import Floats, Ints
from ._items import features_kept, validated_items
from ._kernels import n_threads
from ._parameters import Parameters
from ._progress import of_a_fit
from ._tensors import in_host_memory, is_on_gpu
from .checkpoints import Checkpoint, deciding, fingerprint_of
from .estimator import MOST_BITS, CodeEstimator, margin_sample, mean_margins
from .exceptions import FewerBitsWarning, FormatError, InvalidInputError
from .learning import supervision
from .learning.backend import Backend, ColumnSums, Nearest, PairWeights
from .learning.column_generation import ColumnGeneration, Problem, State
from .learning.cpu.backend import CpuBackend
from .learning.cpu.columns import Columns
from .learning.families import Family, Functions, family_of
from .learning.losses import LOSSES, loss_of
from .learning.regularizers import REGULARIZERS, regularizer_of
from .learning.result import ColumnRecord, FitResult
from .learning.triplets import TripletSet

METHODS = ("refined", "paper")
DEFAULT_C = {"l1": 1e-2, "linf": 0.1}
QUERY_CUT = 0.5  # mean |margins|, of models that learned from labels or triplets
UNLABELLED_C = {"l1": 0.1, "linf": 0.1}


class CGHash(Parameters, CodeEstimator):
    """Learn binary codes from relative comparisons, by column generation.

    Parameters
    ----------
    n_bits : int, default=64
        ℓ, how many hash functions to learn at most.
    loss : {"squared_hinge", "hinge", "logistic", "exponential"} or object, default="squared_hinge"
        Convex loss of a triplet's margin; an object needs the methods `value`, `derivative` and `conjugate`.
    regularizer : {"l1", "linf"}, default="l1"
        Norm of the weights. Duplets turn l1 into a weighted l1.
    C : float, default=None
        Weight of the l1 norm against the mean loss of the triplets, or, under linf, the largest weight C′ of a
        bit. None is 0.01 under l1, or 0.1 where neighbours stand for labels, and 0.1 under linf.
    hash_function : {"linear", "stump", "tree", "rbf", "rbf-kmeans"} or classifier, default="linear"
        Family of the hash functions; a classifier must take `sample_weight`. The landmarks of "rbf" are drawn from the
        items, those of "rbf-kmeans" are centres of k-means.
    sampling : {"mixed", "neighbors", "classes"}, default=None
        Which triplets labels make: the K nearest relevant × the K nearest irrelevant items, as in the paper
        ("neighbors"), K × K drawn from whole classes ("classes"), or both ("mixed"). Without labels: each item's K
        nearest against the next K, against K drawn from the rest, or both. None is "mixed" with labels and "classes"
        without.
    n_neighbors : int, default=10
        K, how many near and how many far items each item is compared with.
    method : {"refined", "paper"}, default="refined"
        How linear and RBF functions are searched for; "paper" climbs the tanh relaxation from the best of random draws
        and switches every later improvement off. The triplets are what `sampling` says.
    tol : float, default=1e-6
        A violation up to this counts as optimal.
    time_limit : float, default=None
        Seconds after which no further bit is begun. Finding the triplets counts, but is not cut short, and there is
        always a first bit.
    checkpoint : path, default=None
        File that holds the state after each bit; the same call after a kill goes on from it.
    n_jobs : int, default=None
        Threads of the kernels; None and -1 are all cores.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress on stderr, 2 a line for each bit.

    Attributes
    ----------
    functions_ : the learned hash functions
    weights_ : (`n_bits_`,) weight of each bit in the distance
    weights_path_ : list of (j,) weights after each column
    n_bits_ : int, bits that were learned
    mean_margins_ : (`n_bits_`,) mean |margin| of training items, in which `query` measures margins; None where the
        functions have none
    query_cut_ : float, how many of these a bit counts at most for a query: 0.5 where labels or triplets were learned
        from, inf where neighbours were
    result_ : FitResult, how the fit went and what it proves

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CGHash(n_bits=16, random_state=0).fit(X[:500], y[:500])
    >>> model.encode(X[500:]).shape
    (1297, 2)
    """

    mean_margins_: Floats | None
    query_cut_: float

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        triplets: Any = None,
        triplet_weights: Any = None,
        duplets: Any = None,
        device: Any = None,
        on_bit: Callable[[int, ColumnRecord], None] | None = None,
    ) -> Self:
        """Learn hash functions and weights.

        Parameters
        ----------
        X : (n, d) items; dense, or CSR for linear functions; from a tensor on a GPU they are learned there
        y : (n,) labels or (n, L) multi-label indicator matrix, optional
            Without y and triplets, an item's Euclidean neighbours are its relevant items.
        triplets : (t, 3) int row numbers, or TripletSet, optional
            Comparisons (anchor, near, far): the anchor is nearer to `near` than to `far`.
        triplet_weights : (t,) non-negative, optional
        duplets : (k, 2) int row numbers, optional
            Pairs that should get near codes.
        device : {"cuda", "cuda:0", …, "cpu"} or torch.device, default=None
            Learn on this device, with torch: linear and RBF functions of dense items under a built-in smooth loss.
            None is the CPU's own kernels, unless X is a tensor on a GPU.
        on_bit : callable, optional
            Is called after each bit with the number of bits so far and the record of the last; a KeyboardInterrupt
            that it raises ends the fit there, with the bits so far.
        """
        began = time.perf_counter()
        self._check_parameters()
        backend = self._backend(X, device)
        with features_kept(self), ExitStack() as during:
            # 1. the items, where the backend computes
            X = self._checked_items(X, backend)
            during.enter_context(backend.memory(X, self._family(), self._count_slots(X, triplets), self.n_bits))
            items = backend.put(X)
            # 2. who is near and who is far
            saved = Checkpoint(self.checkpoint)
            drawn = int(check_random_state(self.random_state).randint(2**31 - 1))
            seed = saved.seed(drawn, fixed=self.random_state is not None)
            pairs = None if duplets is None else check.check_rows(duplets, 2, X.shape[0], "duplets", "two items")
            comparisons = self._triplets(items, y, triplets, triplet_weights, seed, backend.nearest)
            compared = time.perf_counter()
            # 3. loss, regulariser, and the family to choose functions from
            problem = self._problem(pairs, unlabelled=y is None and triplets is None, backend=backend)
            problem.family.prepare(items, np.random.default_rng([seed, 2**31]), n_threads(self.n_jobs))
            prepared = time.perf_counter()
            # 4. the columns, and signed weights of pairs
            sums = backend.sums(comparisons, problem, self.n_bits)
            # 5. Algorithm 1, from what a checkpoint holds
            decides = comparisons, problem.regularizer.duplets, deciding(self)
            result = self._learn(
                problem, sums, saved, lambda: fingerprint_of(in_host_memory(X), *decides), seed, began, on_bit
            )
            # 6. what `query` compares margins with
            sample = in_host_memory(X[margin_sample(X.shape[0])])
            self._measure_margins(sample, unlabelled=y is None and triplets is None)
        result.seconds_triplets, result.seconds_family = compared - began, prepared - compared
        return self

    def transform(self, X: Any) -> NDArray[np.uint8]:
        """The bits (n, `n_bits_`) of items, as 0 and 1."""
        check_is_fitted(self)
        return self.functions_.bits(self._items(X), n_threads(self.n_jobs)).astype(np.uint8)

    def score(self, X: Any, y: Any = None, *, triplets: Any = None, triplet_weights: Any = None) -> float:
        """Share of triplets over X that the learned distance satisfies; triplets as in `fit`."""
        check_is_fitted(self)
        X = self._items(X)
        bits = self.functions_.bits(X, n_threads(self.n_jobs))
        comparisons = self._triplets(X, y, triplets, triplet_weights, seed=0)
        columns = Columns(comparisons, LOSSES["hinge"], n_threads(self.n_jobs), self.n_bits_)
        for column in bits.T:
            columns.append(column)
        return columns.counts(self.weights_)[0]

    def truncate(self, m: int) -> Self:
        """The model of the first m bits, with the weights that they had then."""
        check_is_fitted(self)
        if check.check_whole(m, 1, "m") > self.n_bits_:
            raise InvalidInputError(f"m must be at most n_bits_ = {self.n_bits_}, got {m}")
        shorter = copy(self)
        columns = self.result_.columns[:m]
        zeros = int(np.sum(self.weights_path_[m - 1] <= 0))
        values = {**vars(self.result_), "columns": columns, "zero_weights": zeros}
        if m < self.n_bits_:
            values |= {"status": "n_bits", "final_violation": float("nan")}
        shorter._keep(State(self.functions_.head(m), self.weights_path_[:m], columns), FitResult(**values), quiet=True)
        shorter.mean_margins_ = None if self.mean_margins_ is None else self.mean_margins_[:m]
        shorter.query_cut_ = self.query_cut_
        return shorter

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that loads without unpickling anything."""
        from .model_files import save_model

        check_is_fitted(self)
        save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote."""
        from .model_files import load_model

        return load_model(cls, path)  # type: ignore[no-any-return]

    # How the parts are put together

    def _learn(
        self,
        problem: Problem,
        sums: tuple[ColumnSums, PairWeights],
        saved: Checkpoint,
        fingerprint: Callable[[], str],
        seed: int,
        began: float,
        on_bit: Callable[[int, ColumnRecord], None] | None = None,
    ) -> FitResult:
        """Run Algorithm 1 from what a checkpoint holds, and keep what comes out."""
        state = saved.begin(fingerprint, seed, self.n_bits)
        if state.functions is not None:
            self._check_continued(state.functions, problem.family)
        with of_a_fit(self.n_bits, self.verbose) as progress:

            def after_column(state: State) -> None:
                saved.write(state)
                progress(state)
                if on_bit is not None:
                    on_bit(len(state.records), state.records[-1])

            # the loop's matrices are small or go through our own kernels: waiting BLAS threads only get in the way
            with threadpool_limits(1, user_api="blas"):
                result = self._algorithm(problem, seed, sums).run(state, after_column, began)
        result.seconds = time.perf_counter() - began
        self._keep(state, result)
        return result

    def _check_continued(self, functions: Functions, family: Family) -> None:
        """Refuse a checkpoint whose functions cannot stand before those that this fit finds."""
        kind = self.hash_function.removesuffix("-kmeans") if isinstance(self.hash_function, str) else "tree"
        shapes = [getattr(place, "landmarks", np.empty(0)).shape for place in (functions, family)]
        alike = shapes[0] == shapes[1] or not hasattr(family, "landmarks")
        if functions.family != kind or not functions.takes(self.n_features_in_) or not alike:
            raise FormatError(
                f"checkpoint {os.fspath(self.checkpoint or '')!r} must hold {kind} functions of {self.n_features_in_} "
                f"features for this fit, got {functions.family} functions of others; remove it or name another path"
            )

    def _check_parameters(self) -> None:
        if check.check_whole(self.n_bits, 1, "n_bits") > MOST_BITS:
            raise InvalidInputError(f"n_bits must be at most {MOST_BITS}, got {self.n_bits}")
        check.check_whole(self.n_neighbors, 1, "n_neighbors")
        if self.sampling is not None:
            check.check_choice(self.sampling, supervision.SAMPLINGS, "sampling")
        check.check_choice(self.method, METHODS, "method")
        check.check_positive(self.tol, "tol", zero=True)
        if self.time_limit is not None and self.time_limit != np.inf:
            check.check_positive(self.time_limit, "time_limit", zero=True)
        check.check_jobs(self.n_jobs)
        check.check_whole(int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, 0, "verbose")
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | os.PathLike):
            raise InvalidInputError(f"checkpoint must be a path, got {self.checkpoint!r}")
        self._family()
        loss_of(self.loss)
        check.check_choice(self.regularizer, REGULARIZERS, "regularizer")
        regularizer_of(self.regularizer, self._resolved_c(), None)
        if self.checkpoint is not None and not isinstance(self.hash_function, str):
            self._check_savable()

    def _check_savable(self) -> None:
        from sklearn.tree import DecisionTreeClassifier

        if type(self.hash_function) is not DecisionTreeClassifier:
            raise InvalidInputError("checkpoint cannot hold arbitrary classifiers; use a named family or no checkpoint")

    def _resolved_c(self, unlabelled: bool = False) -> float:
        if self.C is None:
            return (UNLABELLED_C if unlabelled else DEFAULT_C).get(self.regularizer, 1.0)
        return check.check_positive(self.C, "C")

    def _items(self, X: Any) -> Any:
        return self._validated(X, reset=False)

    def _margins(self, X: Any) -> Floats | None:
        return None if self.mean_margins_ is None else self.functions_.margins(X, n_threads(self.n_jobs))

    def _shares(self, margins: Floats) -> Floats:
        assert self.mean_margins_ is not None, "there are no margins without their means"
        return np.minimum(margins / self.mean_margins_, self.query_cut_)

    def _measure_margins(self, sample: Any, unlabelled: bool) -> None:
        """Keep the mean |margin| of each bit, over some of the training items."""
        self.query_cut_ = np.inf if unlabelled else QUERY_CUT
        with threadpool_limits(1, user_api="blas"):
            margins = self.functions_.margins(sample, n_threads(self.n_jobs))
        self.mean_margins_ = None if margins is None else mean_margins(margins)

    def _validated(self, X: Any, reset: bool) -> Any:
        sparse = "csr" if self.hash_function == "linear" else False
        least = 2 if reset else 1
        return validated_items(
            self,
            X,
            reset=reset,
            accept_sparse=sparse,
            ensure_min_samples=least,
        )

    def _backend(self, X: Any, device: Any) -> Backend:
        """Where to learn: on the device asked for, else where a tensor on a GPU lies, else on the CPU."""
        if device is None and not is_on_gpu(X):
            return CpuBackend(n_threads(self.n_jobs))
        from .device.learning.backend import DeviceBackend

        return DeviceBackend(X.device if device is None else device, self._family(), loss_of(self.loss))

    def _checked_items(self, X: Any, backend: Backend) -> Any:
        if not backend.holds(X):
            X = self._validated(X, reset=True)
        else:
            X = backend.checked(X)
            self.n_features_in_ = int(X.shape[1])
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        check.check_size(X)
        return X

    def _count_slots(self, X: Any, triplets: Any) -> int:
        """About how many pair slots the triplets will have."""
        if isinstance(triplets, TripletSet):
            return triplets.n_slots
        if triplets is not None:
            with suppress(TypeError):
                return 2 * len(triplets)
            return 0  # what has no rows is refused later
        return 2 * int(X.shape[0]) * self.n_neighbors * (1 if self.sampling in ("neighbors", "classes") else 2)

    def _triplets(
        self, X: Any, y: Any, triplets: Any, weights: Any, seed: int, nearest: Nearest = CpuBackend.nearest
    ) -> TripletSet:
        rng = np.random.default_rng([seed, 2**31 + 1])
        how = self.sampling, self.n_neighbors, rng, n_threads(self.n_jobs), nearest
        return supervision.comparisons_of(X, y, triplets, weights, *how)

    def _problem(self, duplets: Ints | None, unlabelled: bool, backend: Backend) -> Problem:
        regularizer = regularizer_of(self.regularizer, self._resolved_c(unlabelled), duplets)
        return Problem(loss_of(self.loss), regularizer, backend.family(self._family()))

    def _family(self) -> Family:
        return family_of(self.hash_function, refined=self.method == "refined")

    def _algorithm(self, problem: Problem, seed: int, sums: tuple[ColumnSums, PairWeights]) -> ColumnGeneration:
        time_limit = np.inf if self.time_limit is None else self.time_limit
        return ColumnGeneration(problem, *sums, self.n_bits, tol=self.tol, seed=seed, time_limit=time_limit)

    def _keep(self, state: State, result: FitResult, quiet: bool = False) -> None:
        assert state.functions is not None
        self.functions_ = state.functions
        self.mean_margins_, self.query_cut_ = None, QUERY_CUT
        self.weights_path_ = state.weights
        self.weights_ = state.weights[-1]
        self.n_bits_ = self._n_features_out = len(state.functions)
        self.result_ = result
        if self.n_bits_ < self.n_bits and result.status in ("optimal", "no_function") and not quiet:
            warnings.warn(
                f"learned {self.n_bits_} of the {self.n_bits} bits asked for: {result.message}. "
                "A smaller C, more triplets (n_neighbors) or a richer hash_function gives more bits",
                FewerBitsWarning,
                stacklevel=4,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.hash_function == "linear"
        tags.transformer_tags.preserves_dtype = []
        return tags
