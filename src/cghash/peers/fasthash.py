"""FastHash: codes by graph cuts, boosted trees as hash functions.

Lin, Shen, Shi, van den Hengel, Suter: Fast supervised hashing with decision trees for high-dimensional data. CVPR 2014.
A bit is learned in two steps. Step 1 infers the bit of every training item from the loss of KSH, (k·y − b·b')² over the
first k bits of pairs, y = 1 where items share a label and −1 elsewhere: a binary quadratic problem, solved block by
block by graph cuts (graph_cuts.py). Step 2 learns boosted decision trees for the bit, h(x) = sgn Σ_t α_t f_t(x),
where a tree sees the heaviest items alone (weight trimming) and tries some of the features at a split. The bits that h
gives, not those of step 1, stand in the loss of the following bits, which so make up for its errors.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from .._arrays import Array, Floats, Ints, rows_in_blocks
from ..exceptions import FormatError
from ..learning.cpu.features import fit_scaler, standardized
from ..learning.families.tree import TreeFunctions, tree_functions
from .base import Peer, whole
from .graph_cuts import blocks_of, infer_bits
from .labels import LabelGroups, Residue

_SEEN = 0.95  # of the weight, by a tree
_ROWS = 512  # items that walk together: what they read stays in the cache
_VOTE = 2.0**-30  # votes are multiples of it, so that their sums are exact in any order


@dataclass(eq=False, repr=False)
class FastHash(Peer):
    """FastHash: boosted decision trees, taught by bits that graph cuts infer from the labels.

    Parameters
    ----------
    n_bits : int, default=64
    n_trees : int, default=100
        Trees of a bit.
    max_depth : int, default=6
        Of a tree.
    n_tried : int, default=64
        Features tried at a split, each at one threshold; all, where there are fewer.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    feature_, threshold_, left_, right_, answer_ : (n_bits, n_trees, nodes) the trees
        An item goes left where x[feature] ≤ threshold; a leaf is its own child.
    votes_ : (n_bits, n_trees) α

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.3]]
    >>> bits = FastHash(1, n_trees=3, random_state=0).fit_transform(X, [0, 0, 0, 1, 1, 1]).ravel()
    >>> bits[0] == bits[1] == bits[2] != bits[3] == bits[4] == bits[5]
    np.True_
    """

    supervision = "required"
    prefixes = True
    checks: ClassVar = dict.fromkeys(("n_trees", "max_depth", "n_tried"), whole(1))

    n_bits: int = 64
    _: KW_ONLY
    n_trees: int = 100
    max_depth: int = 6
    n_tried: int = 64
    random_state: Any = None

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        scaler = fit_scaler(X)
        A = np.ascontiguousarray(standardized(X, scaler).matrix, dtype=np.float32)  # as scikit-learn's trees see items
        groups, blocks = LabelGroups.of(labels), blocks_of(labels, rng)
        H = np.empty((len(X), self.n_bits))
        learned = []
        for k in range(self.n_bits):
            z = infer_bits(Residue(groups, H[:, :k]), blocks, rng)  # step 1
            boosted = boost(A, z, self.n_trees, self.max_depth, self.n_tried, rng)  # step 2
            H[:, k] = boosted.signs
            learned.append(boosted)
        self.votes_ = np.array([boosted.votes for boosted in learned])
        functions = [tree_functions(tree, scaler, positive=0) for boosted in learned for tree in boosted.trees]
        for name, array in stacked(functions).items():
            setattr(self, f"{name}_", array.reshape(self.n_bits, self.n_trees, -1))
        return self.n_bits

    def _margins(self, X: Any) -> Floats:
        columns = [self._scores(X, k) for k in range(len(self.votes_[: self.n_bits_]))]
        return np.stack(columns, axis=1)

    def _scores(self, X: Any, k: int) -> Floats:
        """Σ_t α_t f_t(x) of bit k: (n,)."""
        trees = TreeFunctions.from_arrays({f.name: getattr(self, f"{f.name}_")[k] for f in fields(TreeFunctions)})
        if not trees.takes(X.shape[1]) or self.votes_[k].shape != (len(trees),):
            raise FormatError(f"there must be a vote for each tree, and {X.shape[1]} features")
        return np.concatenate([self.votes_[k] @ answers(trees, X[rows]) for rows in rows_in_blocks(len(X), _ROWS)])


def answers(trees: TreeFunctions, X: Any) -> Floats:
    """What trees (T) answer for items X (n, d): −1 or 1, (T, n); the walks through all of them go step by step."""
    T, nodes = trees.feature.shape
    n = len(X)
    roots = nodes * np.arange(T)[:, None]
    feature, threshold = trees.feature.ravel().astype(np.int64) * n, trees.threshold.ravel()
    child = np.stack([trees.right + roots, trees.left + roots], axis=2).ravel()
    values, item = X.T.ravel(), np.arange(n)
    at = np.repeat(roots, n, axis=1)  # (T, n) node
    while True:
        goes_left = values.take(feature.take(at) + item) <= threshold.take(at)
        following = child.take(2 * at + goes_left)
        if np.array_equal(following, at):
            return np.where(trees.answer.ravel().take(at) > 0, 1.0, -1.0)
        at = following


@dataclass(frozen=True)
class Boosted:
    """Trees that answer a bit together."""

    trees: list[Any]  # scikit-learn's, whose values are above 0 where they answer 1
    votes: Floats  # (n_trees,)
    signs: Floats  # (n,) what they give for the items that they were learned from


def boost(A: Any, z: Floats, n_trees: int, max_depth: int, n_tried: int, rng: np.random.Generator) -> Boosted:
    """AdaBoost of trees over items A (n, d), for signs z (n,)."""
    n = len(z)
    w, score, trees, votes = np.full(n, 1 / n), np.zeros(n), [], []
    tried = min(n_tried, A.shape[1])
    for seed in rng.integers(2**31 - 1, size=n_trees):
        heavy = heaviest(w)
        # with two values the squared error splits as Gini's index does, and one value alone is no special case
        tree = DecisionTreeRegressor(max_depth=max_depth, max_features=tried, splitter="random", random_state=int(seed))
        tree.fit(A[heavy], z[heavy], sample_weight=w[heavy], check_input=False)
        given = np.where(tree.predict(A, check_input=False) > 0, 1.0, -1.0)
        wrong = given != z
        error = np.clip(w @ wrong, 0.5 / n, 1 - 0.5 / n)
        vote = np.round(np.log((1 - error) / error) / 2 / _VOTE) * _VOTE
        w = w * np.exp(np.where(wrong, vote, -vote))
        w /= w.sum()
        score += vote * given
        trees.append(tree.tree_)
        votes.append(vote)
    return Boosted(trees, np.array(votes), np.where(score > 0, 1.0, -1.0))


def heaviest(w: Floats) -> Ints:
    """The fewest items that hold the share of the weights w (n,) that trees see, in their order.

    Examples
    --------
    >>> heaviest(np.array([0.5, 0.01, 0.47, 0.02])).tolist()
    [0, 2]
    """
    order = np.argsort(-w, kind="stable")
    count = int(np.searchsorted(np.cumsum(w[order]), _SEEN * w.sum())) + 1
    return np.sort(order[:count])


def stacked(functions: list[TreeFunctions]) -> dict[str, Array]:
    """The arrays of trees of different sizes as one array each, (trees, nodes): added nodes are leaves not reached."""
    nodes = max(function.feature.shape[1] for function in functions)
    arrays: dict[str, Array] = {}
    for name, first in functions[0].arrays().items():
        own = [getattr(function, name)[0] for function in functions]
        row = np.arange(nodes) if name in ("left", "right") else np.zeros(nodes)
        arrays[name] = np.tile(row.astype(first.dtype), (len(functions), 1))
        for filled, values in zip(arrays[name], own, strict=True):
            filled[: len(values)] = values
    return arrays
