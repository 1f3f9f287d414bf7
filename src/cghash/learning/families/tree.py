"""Decision trees as hash functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from ..._arrays import Bools, Floats, Int32s
from ...exceptions import FormatError
from ..cpu.features import Scaler, fit_scaler, standardized
from .base import ArrayFunctions, Functions
from .classifier import ClassifierFamily


@dataclass(frozen=True)
class TreeFunctions(ArrayFunctions):
    """Trees as arrays of nodes, all padded to the same number; node 0 is the root, a leaf or padding its own child.

    An item goes left where x[feature] ≤ threshold, in the units of the input.
    """

    family: ClassVar[str] = "tree"
    whole: ClassVar[tuple[str, ...]] = ("feature", "left", "right", "answer")
    feature: Int32s  # (ℓ, nodes)
    threshold: Floats  # (ℓ, nodes)
    left: Int32s  # (ℓ, nodes)
    right: Int32s  # (ℓ, nodes)
    answer: NDArray[np.uint8]  # (ℓ, nodes)

    def bits(self, X: Any, n_threads: int = 1) -> Bools:
        out = np.empty((X.shape[0], len(self)), dtype=bool)
        rows = np.arange(X.shape[0])
        for j in range(len(self)):
            node = np.zeros(X.shape[0], dtype=np.int32)
            while True:
                goes_left = X[rows, self.feature[j, node]] <= self.threshold[j, node]
                following = np.where(goes_left, self.left[j, node], self.right[j, node])
                if np.array_equal(following, node):
                    break
                node = following
            out[:, j] = self.answer[j, node] > 0
        return out

    def joined(self, other: Self) -> Self:
        nodes = max(self.feature.shape[1], other.feature.shape[1])
        return super(TreeFunctions, self._padded(nodes)).joined(other._padded(nodes))

    def _padded(self, nodes: int) -> Self:
        have, here = self.feature.shape[1], np.arange(nodes, dtype=np.int32)
        padded = {name: np.pad(a, ((0, 0), (0, nodes - have))) for name, a in self.arrays().items()}
        for child in (padded["left"], padded["right"]):
            child[:, have:] = here[have:]  # leaves, which no walk reaches
        return type(self)(**padded)

    def takes(self, n_features: int) -> bool:
        return bool(np.all(self.feature < n_features))

    def check(self) -> None:
        if any(a.ndim != 2 or a.shape != self.feature.shape for a in self.arrays().values()):
            raise FormatError("the arrays of tree functions must all have shape (ℓ, nodes)")
        if any(a.dtype.kind not in "iu" for a in (self.feature, self.left, self.right)) or np.any(self.feature < 0):
            raise FormatError("the features and nodes of tree functions must be whole numbers from 0")
        nodes = self.feature.shape[1]
        here = np.arange(nodes)
        if not nodes or any(np.any(child < 0) or np.any(child >= nodes) for child in (self.left, self.right)):
            raise FormatError("tree functions name nodes that are not there")
        # children come after their parent, except for leaves, which stand still: no walk can go round
        leaf = (self.left == here) & (self.right == here)
        if np.any(~leaf & ((self.left <= here) | (self.right <= here))):
            raise FormatError("tree functions hold a walk that never ends")


def tree_functions(tree: Any, scaler: Scaler, positive: int) -> TreeFunctions:
    """One function from a scikit-learn tree over scaled items; the class in column `positive` means bit 1."""
    leaf = tree.children_left < 0
    feature = np.where(leaf, 0, tree.feature).astype(np.int32)
    here = np.arange(tree.node_count)
    share = tree.value[:, 0, :]
    answer = share[:, positive] > share.sum(axis=1) / 2
    return TreeFunctions(
        feature[None],
        np.where(leaf, 0.0, scaler.to_input_values(tree.threshold, feature))[None],
        np.where(leaf, here, tree.children_left).astype(np.int32)[None],
        np.where(leaf, here, tree.children_right).astype(np.int32)[None],
        answer.astype(np.uint8)[None],
    )


class TreeFamily(ClassifierFamily):
    """Decision trees, searched by minorise–maximise; grown as `template` says."""

    def __init__(self, template: DecisionTreeClassifier | None = None) -> None:
        super().__init__(DecisionTreeClassifier(max_depth=4) if template is None else template)

    def prepare(self, X: Any, rng: np.random.Generator, n_threads: int) -> None:
        self.items, self.scaler = X, fit_scaler(X)
        self.X = standardized(X, self.scaler).matrix  # scikit-learn's trees see float32, and no step below 1e-7

    def fit_one(self, X: Any, labels: Bools, weights: Floats, seed: int) -> Functions:
        tree = clone(self.classifier).set_params(random_state=seed)
        tree.fit(X, labels.astype(np.int8), sample_weight=weights)
        return tree_functions(tree.tree_, self.scaler, positive=1)
