"""The demo's experiment: codes of handwritten digits, learned and not, against Euclidean distance."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .._arrays import Floats, Ints
from .._validation import check_whole
from ..codes import weighted_hamming
from ..criteria import average_precision, knn_error, mean_over_queries, precision_at, precision_recall
from ..exceptions import FewerBitsWarning, InvalidInputError
from ..hasher import CGHash
from ..learning.families.linear import LinearFunctions
from ..peers import LSH, PCAH
from ..peers.base import Peer
from .demo_results import DemoResults, Digit, Example, Fit, Row

__all__ = ["BEST", "COMPARED", "EUCLIDEAN", "LINEAR", "PAPER", "PCA", "RANDOM", "Split", "load_split", "run"]


EUCLIDEAN, PCA, RANDOM = "Euclidean", "Sign of PCA", "Random projections"
BEST, LINEAR, PAPER = "CGHash, RBF", "CGHash, linear", "CGHash, as in the paper"
COMPARED = (EUCLIDEAN, PCA, BEST)  # in the examples

SETTINGS: dict[str, dict[str, Any]] = {
    BEST: {"hash_function": "rbf"},
    LINEAR: {},
    PAPER: {"method": "paper", "sampling": "neighbors"},
}
TOP, VOTES, SHOWN, POINTS, N_QUERIES, N_MASKS = 50, 3, 10, 60, 500, 20
STEP = 8  # bits between the points of the quality curves


@dataclass(frozen=True)
class Split:
    """Images to search, which are also those to learn from, and images to search for."""

    database: Floats  # (n, 64)
    labels: Ints  # (n,)
    queries: Floats  # (q, 64)
    query_labels: Ints  # (q,)


def load_split(n_queries: int = N_QUERIES, seed: int = 0) -> Split:
    """scikit-learn's 1797 digits, parted so that each digit has its share on both sides."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    database, queries, labels, query_labels = train_test_split(X, y, test_size=n_queries, stratify=y, random_state=seed)
    return Split(database, labels, queries, query_labels)


def run(
    n_bits: Sequence[int] = (32, 64),
    seed: int = 0,
    split: Split | None = None,
    say: Callable[[str], None] = lambda words: None,
) -> DemoResults:
    """Learn, rank and measure.

    Parameters
    ----------
    n_bits : lengths of the codes in the table; each model is learned once, at the longest, and truncated
    seed : of the split, of the fits and of the random projections
    split : the digits by default
    say : is told what is going on
    """
    lengths = _check_lengths(n_bits)
    began = time.perf_counter()
    with threadpool_limits(1, user_api="blas"):  # the matrices are small: more threads only wait for each other
        return _Experiment(split or load_split(seed=seed), lengths, seed, say).results(began)


def _check_lengths(n_bits: Sequence[int]) -> list[int]:
    if not len(n_bits):
        raise InvalidInputError("n_bits must hold at least one length, got none")
    return sorted({check_whole(m, 1, "n_bits") for m in n_bits})


class _Experiment:
    """Codes of every method; each code is ranked and measured once."""

    def __init__(self, split: Split, lengths: list[int], seed: int, say: Callable[[str], None]) -> None:
        self.split, self.lengths, self.seed, self.say = split, lengths, seed, say
        self.relevant = split.query_labels[:, None] == split.labels  # (q, n)
        self.top = min(TOP, len(split.labels))
        self.rows: list[Row] = []
        self.nearest: dict[str, Ints] = {}  # of each method's best row: (q, SHOWN)
        self.by_bits: dict[str, list[tuple[int, float]]] = {}

    def results(self, began: float) -> DemoResults:
        self._add_row(EUCLIDEAN, None, _squared_distances(self.split), self.split.database.shape[1])
        self._measure_unlearned(PCA, PCAH(self.lengths[-1]))
        self._measure_unlearned(RANDOM, LSH(self.lengths[-1], random_state=self.seed))
        models = {name: self._learn(name) for name in reversed(SETTINGS)}
        return DemoResults(
            n_database=len(self.split.labels),
            n_queries=len(self.split.query_labels),
            seed=self.seed,
            top=self.top,
            rows=self.rows,
            fits=[_fit_record(name, models[name]) for name in SETTINGS],
            by_bits=self.by_bits,
            examples=choose_examples(self.split, self.nearest, self.seed),
            masks=_masks(models[LINEAR], self.split.database.std(axis=0)),
            seconds=time.perf_counter() - began,
        )

    def _measure_unlearned(self, name: str, peer: Peer) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewerBitsWarning)  # the table shows how many there are
            peer.fit(self.split.database)
        for m in self._all_lengths():
            shorter = peer.truncate(min(m, peer.n_bits_))
            self._measure(name, m, shorter, shorter.weights_)

    def _learn(self, name: str) -> CGHash:
        self.say(f"learning {self.lengths[-1]} bits: {name}")
        model = CGHash(self.lengths[-1], random_state=self.seed, **SETTINGS[name])
        model.fit(self.split.database, self.split.labels)
        for m in self._all_lengths():
            shorter = model.truncate(min(m, model.n_bits_))
            self._measure(name, m, shorter, shorter.weights_)
        return model

    def _all_lengths(self) -> list[int]:
        return sorted({*range(STEP, self.lengths[-1], STEP), *self.lengths})

    def _measure(self, name: str, asked: int, codes: Any, weights: Floats) -> None:
        """Add the codes to the quality curve, and to the table where their length was asked for."""
        D = weighted_hamming(codes.transform(self.split.queries), codes.transform(self.split.database), weights)
        if asked in self.lengths:
            value = self._add_row(name, codes.n_bits_, D, -(-codes.n_bits_ // 8)).map
        else:
            value = mean_over_queries(average_precision(D, self.relevant))
        curve = self.by_bits.setdefault(name, [])
        if not curve or curve[-1][0] < codes.n_bits_:
            curve.append((codes.n_bits_, value))

    def _add_row(self, name: str, n_bits: int | None, D: Floats, n_bytes: int) -> Row:
        row = self._row(name, n_bits, D, n_bytes)
        if all(row.map > other.map for other in self.rows if other.method == name):
            self.nearest[name] = _nearest(D)
        self.rows.append(row)
        return row

    def _row(self, name: str, n_bits: int | None, D: Floats, n_bytes: int) -> Row:
        _, precision, recall = precision_recall(D, self.relevant, POINTS)
        return Row(
            name,
            n_bits,
            n_bytes,
            map=mean_over_queries(average_precision(D, self.relevant)),
            top=mean_over_queries(precision_at(D, self.relevant, self.top)),
            knn_error=mean_over_queries(knn_error(D, self.split.labels, self.split.query_labels, VOTES)),
            precision=precision.tolist(),
            recall=recall.tolist(),
        )


def _squared_distances(split: Split) -> Floats:
    """‖q − x‖² (q, n); pixels are small whole numbers, so that it is exact."""
    Q, X = split.queries, split.database
    return np.asarray((Q * Q).sum(axis=1)[:, None] + (X * X).sum(axis=1) - 2.0 * Q @ X.T)


def _nearest(D: Floats) -> Ints:
    """The nearest items, by distance and then by number: (q, SHOWN)."""
    return np.argsort(D, axis=1, kind="stable")[:, :SHOWN]


def _fit_record(name: str, model: CGHash) -> Fit:
    history = model.result_.history
    return Fit(
        name,
        model.result_.message,
        model.result_.seconds,
        objective=history["objective"].tolist(),
        bound=history["bound"].tolist(),
        satisfied=history["satisfied"].tolist(),
        weights=model.weights_.tolist(),
    )


def _masks(model: CGHash, spread: Floats) -> list[list[float]]:
    """Coefficient × spread of each pixel in the heaviest linear functions, each scaled to at most 1 in size."""
    assert isinstance(model.functions_, LinearFunctions)
    heaviest = np.argsort(-model.weights_, kind="stable")[:N_MASKS]
    coef = model.functions_.coef[heaviest] * spread
    scaled: list[list[float]] = (coef / np.maximum(np.abs(coef).max(axis=1, keepdims=True), 1e-300)).tolist()
    return scaled


def choose_examples(split: Split, nearest: dict[str, Ints], seed: int) -> list[Example]:
    """Queries to show, by rule.

    The three different digits for which CGHash finds most right items beyond Euclidean distance and sign of PCA
    together, the query for which it loses most, and one drawn at random.
    """
    right = {name: (split.labels[nearest[name]] == split.query_labels[:, None]).sum(axis=1) for name in COMPARED}
    gain = 2 * right[BEST] - right[EUCLIDEAN] - right[PCA]  # (q,)
    order = np.argsort(-gain, kind="stable")
    _, first = np.unique(split.query_labels[order], return_index=True)
    shown = {int(q): "CGHash gains most" for q in order[np.sort(first)[:3]]}
    if gain[order[-1]] < 0:
        shown[int(order[-1])] = "CGHash loses most"
    shown.setdefault(int(np.random.default_rng(seed).integers(len(gain))), "drawn at random")
    return [_example(split, nearest, q, why) for q, why in shown.items()]


def _example(split: Split, nearest: dict[str, Ints], q: int, why: str) -> Example:
    lists = {name: [_digit(split.labels[i], split.database[i]) for i in nearest[name][q]] for name in COMPARED}
    return Example(why, _digit(split.query_labels[q], split.queries[q]), lists)


def _digit(label: int, pixels: Floats) -> Digit:
    return Digit(int(label), pixels.astype(int).tolist())
