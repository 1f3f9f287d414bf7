"""The majority vote of the k nearest, where the items of equal distance stand in random order.

Each of the k nearest votes for its kind: its label, or the set of its labels where it has several. Some tie groups
are **whole** among the k nearest, and the **cut** group gives `taken` of its m items, at random. Let b_c items of kind
c be in the whole groups and m_c in the cut group, of which the sample takes j_c. The counts of a sample have the
probability Π_c C(m_c, j_c) / C(m, taken), so that sums over all samples are coefficients of products of polynomials
Σ_j C(m_c, j) x^j: no sample is enumerated.

An item with several labels votes once, for the set of them. If it voted for each of them, the counts of two labels
would depend on each other through the items that have both, and there would be no such product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from .._arrays import Bools, Floats, Ints
from .ranking import Head

__all__ = ["MOST_VOTES", "right_probability"]


MOST_VOTES = 500  # the coefficients stay below e^k: float64 holds them up to k = 700
_BLOCK = 1 << 20  # numbers that a step of the polynomials' products may hold


@dataclass(frozen=True)
class _Ballot:
    """What a kind may get: arrays of one shape, one number for a kind of a query; 0 where there is none."""

    whole: Ints  # b, votes of the whole groups
    cut: Ints  # m_c, items in the cut group
    first: Ints  # number of the first whole group with such an item, k if in none
    lead: Ints  # such items in that group

    def __getitem__(self, key: tuple[Ints, ...] | int) -> _Ballot:
        return _Ballot(*(field[key] for field in self.fields))

    @property
    def fields(self) -> tuple[Ints, ...]:
        return self.whole, self.cut, self.first, self.lead

    def lead_at(self, votes: int, k: int) -> Ints:
        """Items in the first group with any, when the kind gets so many votes."""
        return np.where(self.first == k, votes, self.lead)


def right_probability(head: Head, gains: Floats, k: int) -> Floats:
    """Probability that the k nearest elect a kind that the query gains from, the nearest of the tied kinds winning.

    Parameters
    ----------
    head : of q queries and at least k items
    gains : (q, number of kinds) above 0 where the query shares a label
    k : number of votes, 1 to n

    Examples
    --------
    >>> one = np.ones(3, dtype=int)
    >>> head = Head(0 * one, np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([1, 1, 2]), 1)
    >>> right_probability(head, np.array([[1.0, 0.0]]), 3).round(4).tolist()
    [0.6667]
    """
    start, end = head.starts, head.starts + head.sizes
    cut = (start < k) & (k <= end)  # (g,) one group of each row
    taken, size = k - start[cut], head.sizes[cut]  # (q,)
    row, kind, ballot = _count(head, cut, k)
    winner = np.flatnonzero(gains[row, kind] > 0)  # those whose election would be right
    chance = np.zeros(head.n_queries)
    n_kinds = np.bincount(row, minlength=head.n_queries)  # of each query
    step = max(1, _BLOCK // ((k + 1) * max(int(n_kinds.max(initial=1)), k)))
    for first in range(0, len(winner), step):
        some = winner[first : first + step]
        own, others = ballot[(some,)], _others(ballot, row, n_kinds, some)
        wins = _win_probability(own, others, taken[row[some]], size[row[some]], k)
        chance += np.bincount(row[some], weights=wins, minlength=head.n_queries)
    return np.clip(chance, 0.0, 1.0)  # outside only by rounding


def _win_probability(own: _Ballot, others: _Ballot, taken: Ints, size: Ints, k: int) -> Floats:
    """Probability that the own kind (v,) is elected against the others (L, v), `taken` of `size` being drawn: (v,)."""
    depth = int(taken.max())  # highest power of x that counts
    odds = taken / size  # x is scaled by it, which keeps the coefficients between 1 and e^k
    coefficients = _binomials(others.cut, odds[None], depth)  # (depth + 1, L, v)
    own_coefficients = _binomials(own.cut, odds, depth)  # (depth + 1, v)
    wins = np.zeros(len(taken))
    for votes in range(1, k + 1):
        drawn = votes - own.whole  # (v,) the own kind's items in the sample
        if np.any((drawn >= 0) & (drawn <= taken)):
            rest = _others_lose(own, others, coefficients, votes, k)  # (depth + 1, v)
            wins += _pick(own_coefficients, drawn) * _pick(rest, taken - drawn)
    chance: Floats = wins / _pick(_binomials(size, odds, depth), taken)
    return chance


def _pick(polynomials: Floats, power: Ints) -> Floats:
    """Coefficient of one power in each of the (depth + 1, q) polynomials, 0 for powers they lack: (q,)."""
    present = (power >= 0) & (power < len(polynomials))
    chosen = np.take_along_axis(polynomials, np.where(present, power, 0)[None], axis=0)[0]
    return np.where(present, chosen, 0.0)


def _others_lose(own: _Ballot, others: _Ballot, coefficients: Floats, votes: int, k: int) -> Floats:
    """Sum over samples of other kinds, by size, of P(the own kind wins with so many votes): (depth + 1, q).

    When Z items of tied kinds share its first group with N of its own, it wins with probability
    N/(N + Z) = ∫₀¹ N u^(N − 1 + Z) du, where each tied kind is a factor u^(its items). The integrand is a
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
    """What a tie with the other kind leaves of the own kind's chance, at each node: (v, q)."""
    same = u ** other.lead_at(votes, k)
    return np.where(other.first == own.first, same, (other.first > own.first).astype(np.float64))


def _times(product: Floats, coefficients: Floats, other: _Ballot, tie: Floats, votes: int) -> Floats:
    """Multiply by the polynomial of a kind that gets fewer votes, or as many and loses the tie."""
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


def _count(head: Head, cut: Bools, k: int) -> tuple[Ints, Ints, _Ballot]:
    """Query, kind and ballot of each kind of the whole groups and the cut one, by query."""
    cut_number = np.flatnonzero(cut)[head.row] if head.n_queries else head.row  # (e,)
    voting = np.flatnonzero(head.number <= cut_number)
    n_kinds = int(head.kind.max(initial=0)) + 1
    key, place = np.unique(head.row[voting] * n_kinds + head.kind[voting], return_inverse=True)
    in_cut = (head.number == cut_number)[voting]
    group = np.where(in_cut, k, head.group[voting])
    first = np.full(len(key), k)
    np.minimum.at(first, place, group)

    def total(chosen: Bools) -> Ints:
        counts = np.bincount(place[chosen], weights=head.count[voting][chosen], minlength=len(key))
        return counts.astype(np.int64)

    leads = ~in_cut & (group == first[place])
    return key // n_kinds, key % n_kinds, _Ballot(total(~in_cut), total(in_cut), first, total(leads))


def _others(ballot: _Ballot, row: Ints, n_kinds: Ints, own: Ints) -> _Ballot:
    """Ballots of all other kinds of the query of each own one: (L, v), zeros where there are fewer."""
    begin = (np.cumsum(n_kinds) - n_kinds)[row[own]]  # (v,)
    size = n_kinds[row[own]] - 1
    slot = np.arange(int(size.max(initial=0)))[:, None]  # (L, 1)
    place = begin + slot
    place += place >= own  # passes over the own one
    there = slot < size
    place = np.where(there, place, 0)
    return _Ballot(*(np.where(there, field[place], 0) for field in ballot.fields))
