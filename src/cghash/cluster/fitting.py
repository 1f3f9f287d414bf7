"""Learn codes from items that no machine need hold: partitions compare their own items, and sums travel."""

from __future__ import annotations

import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._arrays import Ints
from ..checkpoints import Checkpoint, deciding
from ..estimator import margin_sample
from ..exceptions import CGHashWarning, InvalidInputError, NothingToLearnError
from ..hasher import CGHash
from ..learning.column_generation import Problem
from ..learning.cpu.features import bytes_pay, scaler_of
from ..learning.families.rbf import N_LANDMARKS, SAMPLE, WIDTH, gamma_for
from ..learning.losses import loss_of
from ..learning.regularizers import regularizer_of
from ..storage import digest
from .clients import connected
from .datasets import Dataset
from .learning.actors import ActorPool
from .learning.backend import ClusterColumns, ClusterFamily, ClusterPairs
from .learning.feature_maps import FeatureMap, LinearFeatureMap, RBFFeatureMap
from .learning.fit_partitions import History, Plan, Source

FAMILIES = ("linear", "rbf")


def fit(
    dataset: Dataset,
    model: CGHash,
    client: Any = None,
    *,
    near: Dataset | None = None,
    far: Dataset | None = None,
    in_memory: bool = True,
) -> CGHash:
    """Learn codes from a data set in partitions; gives a fitted copy of the model.

    Every partition compares its own items, by their labels or, without, by their neighbours: it should be a fair
    sample of all, so a data set in some order must be shuffled before. With `near` and `far`, row i of the three data
    sets is a triplet: items of `dataset` are nearer to those of `near` than to those of `far`.

    The same partitions give the same codes, however many workers there are and whatever happens to them. A fit with a
    `checkpoint` goes on where it was when the same call is made again.

    Parameters
    ----------
    dataset : Dataset
    model : CGHash, whose `hash_function` is "linear" or "rbf" and whose loss is smooth
    client : a `distributed.Client`, the address of a scheduler, or None for processes of this machine
    near, far : Dataset, in partitions of the same sizes, optional
    in_memory : False keeps no items in memory: one partition at a time is read anew for each sum

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> data = Dataset.from_arrays(X, y, rows=600)
    >>> fit(data, CGHash(8, random_state=0)).n_bits_
    8
    """
    began = time.perf_counter()
    model = _checked(model)
    sources = _sources(dataset, near, far)
    saved = Checkpoint(model.checkpoint)
    drawn = int(check_random_state(model.random_state).randint(2**31 - 1))
    seed = saved.seed(drawn, fixed=model.random_state is not None)
    with connected(client) as workers:
        pool = ActorPool(workers, Plan(model, seed, in_memory), sources)
        try:
            _run(pool, model, saved, _fingerprint(model, sources), began)
        finally:
            pool.dismiss()
    return model


def _run(pool: ActorPool, model: CGHash, saved: Checkpoint, fingerprint: str, began: float) -> None:
    about = pool.each("about")
    n_items, n_triplets, n_slots = (sum(one[name] for one in about) for name in ("n_items", "n_triplets", "n_slots"))
    if not n_triplets:
        raise NothingToLearnError(
            "no partition has an item with both a near and a far one to compare it with: partitions must be larger, "
            "or the data set shuffled so that each is a fair sample"
        )
    idle = sum(one["n_triplets"] == 0 for one in about)
    if idle:
        warnings.warn(
            f"{idle} of {len(about)} partitions hold nothing to compare: are the items in some order? "
            "`cghash.cluster.shuffle` puts them in none",
            CGHashWarning,
            stacklevel=3,
        )
    compared = time.perf_counter()
    sizes = [one["n_items"] for one in about]
    feature_map = _feature_map(pool, model, about, n_items)
    sample = _rows(pool, sizes, margin_sample(n_items))
    pool.change(History(feature_map, n_triplets), "begin", feature_map, n_triplets)
    columns = ClusterColumns(pool, loss_of(model.loss), n_triplets, n_slots)
    pairs = ClusterPairs(pool, columns, n_items, feature_map.n_features)
    family = ClusterFamily(pool, feature_map, refined=model.method == "refined")
    first = pool.sources[0]
    unlabelled = first.near is None and not first.items.has_labels
    C = model._resolved_c(unlabelled)
    problem = Problem(columns.loss, regularizer_of(model.regularizer, C, None), family)
    prepared = time.perf_counter()
    model.n_features_in_ = first.items.n_features
    result = model._learn(problem, (columns, pairs), saved, lambda: fingerprint, pool.plan.seed, began)
    model._measure_margins(sample, unlabelled)
    result.seconds_triplets, result.seconds_family = compared - began, prepared - compared


def _feature_map(pool: ActorPool, model: CGHash, about: list[dict[str, Any]], n_items: int) -> FeatureMap:
    """What all partitions must agree on, from one or two sums over them."""
    if model.hash_function == "rbf":
        return _rbf_feature_map(pool, [one["n_items"] for one in about])
    mean = pool.total("item_sum")[0] / n_items
    variance = pool.total("square_sum", mean)[0] / n_items
    low, high = np.min([one["low"] for one in about], axis=0), np.max([one["high"] for one in about], axis=0)
    exact = pool.sources[0].items.dtype == "float64"
    scaler = scaler_of(mean, variance, low, high, exact)
    return LinearFeatureMap(scaler, bytes_pay(n_items * mean.size, scaler) and all(pool.each("are_bytes")))


def _rbf_feature_map(pool: ActorPool, sizes: list[int]) -> RBFFeatureMap:
    rng = np.random.default_rng([pool.plan.seed, 2**31])
    landmarks = np.asarray(_drawn(pool, sizes, N_LANDMARKS, rng), dtype=np.float64)
    sample = _drawn(pool, sizes, SAMPLE, rng)
    plain = RBFFeatureMap(landmarks, gamma_for(sample, landmarks, WIDTH))
    mean = pool.total("bump_sum", plain)[0] / sum(sizes)
    centred = RBFFeatureMap(landmarks, plain.gamma, mean)
    size = float(np.sqrt(pool.total("bump_square", centred)[0] / sum(sizes))) or 1.0
    return RBFFeatureMap(landmarks, plain.gamma, mean, size)


def _drawn(pool: ActorPool, sizes: list[int], count: int, rng: np.random.Generator) -> Any:
    """Items drawn from all partitions without replacement (count, d)."""
    n = sum(sizes)
    return _rows(pool, sizes, np.sort(rng.choice(n, min(count, n), replace=False)))


def _rows(pool: ActorPool, sizes: list[int], chosen: Ints) -> Any:
    """Items (count, d) of ascending rows over all partitions."""
    starts = np.cumsum([0, *sizes])
    rows = [chosen[(chosen >= a) & (chosen < b)] - a for a, b in pairwise(starts)]
    return np.concatenate(pool.each("rows", rows))


def _checked(model: CGHash) -> CGHash:
    if not isinstance(model, CGHash):
        raise InvalidInputError(f"model must be a CGHash, got {model!r}")
    model = clone(model)
    model._check_parameters()
    if model.hash_function not in FAMILIES:
        raise InvalidInputError(
            f"hash_function must be one of {list(FAMILIES)} on a cluster, got {model.hash_function!r}"
        )
    if not getattr(loss_of(model.loss), "smooth", True):
        raise InvalidInputError(f"loss must be smooth on a cluster, such as 'squared_hinge', got {model.loss!r}")
    return model


def _sources(dataset: Dataset, near: Dataset | None, far: Dataset | None) -> list[Source]:
    if (near is None) != (far is None):
        raise InvalidInputError("near and far must be given together: a triplet needs both")
    if near is None or far is None:
        return [Source(i, part) for i, part in enumerate(dataset.partitions)]
    for name, other in (("near", near), ("far", far)):
        shape = [(part.n_rows, part.n_features) for part in other.partitions]
        if shape != [(part.n_rows, part.n_features) for part in dataset.partitions]:
            raise InvalidInputError(
                f"{name} must have partitions of the same sizes as dataset, {dataset!r}, got {other!r}"
            )
    together = zip(dataset.partitions, near.partitions, far.partitions, strict=True)
    return [Source(i, *parts) for i, parts in enumerate(together)]


def _fingerprint(model: CGHash, sources: list[Source]) -> str:
    """What makes two fits the same: partitions in their order, and the parameters that change the outcome."""
    parts = [part for source in sources for part in (source.items, source.near, source.far) if part is not None]
    words = [repr(sorted(deciding(model).items())), *(f"{part.fingerprint} {part.n_rows}" for part in parts)]
    return digest([np.frombuffer(word.encode(), np.uint8) for word in words])
