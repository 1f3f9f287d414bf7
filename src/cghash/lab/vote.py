"""The majority vote of the k nearest, where the items of equal distance stand in random order.

Some tie groups are **whole** among the k nearest, and the **cut** group gives `taken` of its m items, at
random. Let b_c items of label c be in the whole groups and m_c in the cut group, of which the sample takes
j_c. The counts of a sample have the probability Π_c C(m_c, j_c) / C(m, taken), so that sums over all samples
are coefficients of products of polynomials Σ_j C(m_c, j) x^j: no sample is enumerated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from .ranking import Ranking

__all__ = ["MOST_VOTES", "win_probability"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_VOTES = 500  # the coefficients stay below e^k: float64 holds them up to k = 700


@dataclass(frozen=True)
class _Ballot:
    """What a label may get: arrays of one shape, one number for a label of a query; 0 where there is none."""

    whole: Ints  # b, votes of the whole groups
    cut: Ints  # m_c, items in the cut group
    first: Ints  # number of the first whole group with such an item, k if in none
    lead: Ints  # such items in that group

    def __getitem__(self, key: tuple[Ints, ...] | int) -> _Ballot:
        return _Ballot(self.whole[key], self.cut[key], self.first[key], self.lead[key])

    def lead_at(self, votes: int, k: int) -> Ints:
        """Items in the first group with any, when the label gets so many votes."""
        return np.where(self.first == k, votes, self.lead)


def win_probability(ranking: Ranking, database: Ints, queries: Ints, k: int) -> Floats:
    """Probability that the k nearest vote for the label of the query, the nearest of the tied labels winning.

    Parameters
    ----------
    ranking : of q queries and n items
    database, queries : (n,) and (q,) labels as numbers from 0; -1 for a query's label that no item has
    k : number of votes, 1 to n

    Examples
    --------
    >>> ranking = Ranking.of(np.array([[1, 2, 2, 2]]))
    >>> win_probability(ranking, np.array([0, 0, 1, 1]), np.array([0]), 3).round(4).tolist()
    [0.6667]
    """
    cut_group = ranking.groups_at([k - 1])[:, 0]  # (q,)
    taken, size = k - ranking.starts[cut_group], ranking.sizes[cut_group]
    keys, ballot = _count(ranking, cut_group, database, k)
    own, others = _split(keys, ballot, queries, int(database.max()) + 1)
    depth = int(taken.max())  # highest power of x that counts
    odds = taken / size  # x is scaled by it, which keeps the coefficients between 1 and e^k
    coefficients = _binomials(others.cut, odds[None], depth)  # (depth + 1, L, q)
    own_coefficients = _binomials(own.cut, odds, depth)  # (depth + 1, q)
    wins = np.zeros(len(queries))
    for votes in range(1, k + 1):
        drawn = votes - own.whole  # (q,) the own label's items in the sample
        if np.any((drawn >= 0) & (drawn <= taken)):
            rest = _others_lose(own, others, coefficients, votes, k)  # (depth + 1, q)
            wins += _pick(own_coefficients, drawn) * _pick(rest, taken - drawn)
    chance: Floats = wins / _pick(_binomials(size, odds, depth), taken)
    return np.clip(chance, 0.0, 1.0)  # outside only by rounding


def _pick(polynomials: Floats, power: Ints) -> Floats:
    """Coefficient of one power in each of the (depth + 1, q) polynomials, 0 for powers they lack: (q,)."""
    present = (power >= 0) & (power < len(polynomials))
    chosen = np.take_along_axis(polynomials, np.where(present, power, 0)[None], axis=0)[0]
    return np.where(present, chosen, 0.0)


def _others_lose(own: _Ballot, others: _Ballot, coefficients: Floats, votes: int, k: int) -> Floats:
    """Sum over samples of other labels, by size, of P(the own label wins with so many votes): (depth + 1, q).

    When Z items of tied labels share its first group with N of its own, it wins with probability
    N/(N + Z) = ∫₀¹ N u^(N − 1 + Z) du, where each tied label is a factor u^(its items). The integrand is a
    polynomial of degree below k: Gauss's rule with k/2 nodes is exact.
    """
    u, node_weights = _gauss((k + 1) // 2)
    own_lead = own.lead_at(votes, k)
    product = np.zeros((len(coefficients), len(u), own_lead.size))  # powers of x, nodes, queries
    product[0] = node_weights * own_lead * u ** np.maximum(own_lead - 1, 0)
    for c in range(len(others.whole)):
        tie = _tie_factor(own, others[c], u, votes, k)
        product = _times(product, coefficients[:, c], others[c], tie, votes)
    sums: Floats = product.sum(axis=1)
    return sums


@cache
def _gauss(n_nodes: int) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss's rule on [0, 1]: (v, 1) each."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return (nodes[:, None] + 1.0) / 2.0, weights[:, None] / 2.0


def _tie_factor(own: _Ballot, other: _Ballot, u: Floats, votes: int, k: int) -> Floats:
    """What a tie with the other label leaves of the own label's chance, at each node: (v, q)."""
    same = u ** other.lead_at(votes, k)
    return np.where(other.first == own.first, same, (other.first > own.first).astype(np.float64))


def _times(product: Floats, coefficients: Floats, other: _Ballot, tie: Floats, votes: int) -> Floats:
    """Multiply by the polynomial of a label that gets fewer votes, or as many and loses the tie."""
    result = np.zeros_like(product)
    for drawn in range(min(votes, len(product) - 1, int(other.cut.max(initial=0))) + 1):
        total = other.whole + drawn  # (q,)
        factor = np.where(total == votes, tie, (total < votes).astype(np.float64))  # (v, q)
        result[drawn:] += coefficients[drawn] * factor * product[: len(product) - drawn]
    return result


def _binomials(n: Ints, odds: Floats, depth: int) -> Floats:
    """C(n, j)·odds^j for j = 0 … depth, along a new first axis."""
    rows = [np.ones(n.shape)]
    for j in range(depth):
        rows.append(rows[-1] * np.maximum(n - j, 0) * odds / (j + 1))
    return np.stack(rows)


def _count(ranking: Ranking, cut_group: Ints, database: Ints, k: int) -> tuple[Ints, _Ballot]:
    """Count the items of each label up to the cut group: keys row·(number of labels) + label, and ballots."""
    n_labels = int(database.max()) + 1
    n_keys = ranking.n_queries * n_labels
    cut = np.bincount(_keys(ranking, *_cut_places(ranking, cut_group), database, n_labels), minlength=n_keys)
    group = ranking.groups_at(np.arange(k - 1))  # (q, k - 1)
    row, position = np.nonzero(group < cut_group[:, None])  # the whole groups end before position k - 1
    number = (group - group[:, :1])[row, position]
    key = _keys(ranking, row, position, database, n_labels)
    whole = np.bincount(key, minlength=n_keys)
    first = np.full(n_keys, k)
    np.minimum.at(first, key, number)
    lead = np.bincount(key[number == first[key]], minlength=n_keys)
    keys = np.flatnonzero(whole + cut)
    return keys, _Ballot(whole, cut, first, lead)[(keys,)]


def _cut_places(ranking: Ranking, cut_group: Ints) -> tuple[Ints, Ints]:
    """Row and position of each item of the cut groups."""
    sizes, starts = ranking.sizes[cut_group], ranking.starts[cut_group]
    row = np.repeat(np.arange(ranking.n_queries), sizes)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return row, starts[row] + nth


def _keys(ranking: Ranking, row: Ints, position: Ints, database: Ints, n_labels: int) -> Ints:
    return row * n_labels + database[ranking.order[row, position]]


def _split(keys: Ints, ballot: _Ballot, queries: Ints, n_labels: int) -> tuple[_Ballot, _Ballot]:
    """Ballot of each query's own label (q,), and those of the others (L, q)."""
    row, label = keys // n_labels, keys % n_labels
    mine = label == queries[row]
    own = _scatter(ballot[(np.flatnonzero(mine),)], (row[mine],), (len(queries),))
    row = row[~mine]
    slot = np.arange(len(row)) - np.searchsorted(row, row)  # keys are sorted: its number within the row
    n_slots = int(slot.max(initial=-1)) + 1
    return own, _scatter(ballot[(np.flatnonzero(~mine),)], (slot, row), (n_slots, len(queries)))


def _scatter(ballot: _Ballot, place: tuple[Ints, ...], shape: tuple[int, ...]) -> _Ballot:
    spread = [np.zeros(shape, dtype=np.int64) for _ in range(4)]
    for values, field in zip(spread, (ballot.whole, ballot.cut, ballot.first, ballot.lead), strict=True):
        values[place] = field
    return _Ballot(*spread)
