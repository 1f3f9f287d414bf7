"""Sums over partitions in one order, whoever computed which: up a binary tree whose leaves are the partitions.

A worker adds up what it holds as far as the tree goes, and the rest is added where all of it comes together: the last
bit of a sum does not depend on how many workers there are, and a worker that holds consecutive partitions sends a few
sums and not one for each.
"""

from __future__ import annotations

from typing import Any

Sums = tuple[Any, ...]  # of numbers and arrays, which are added one by one
Node = tuple[int, int]  # height above the leaves, place at that height


def leaves(values: dict[int, Sums]) -> dict[Node, Sums]:
    """Sums of single partitions, by number."""
    return {(0, place): value for place, value in values.items()}


def added_up(known: dict[Node, Sums], n: int) -> dict[Node, Sums]:
    """What is left of nodes of the tree over n leaves once every two of one parent are added up.

    Examples
    --------
    >>> added_up(leaves({0: (1.0,), 1: (2.0,), 2: (4.0,)}), n=4)
    {(0, 2): (4.0,), (1, 0): (3.0,)}
    >>> added_up(leaves({0: (1.0,), 1: (2.0,), 2: (4.0,)}), n=3)
    {(2, 0): (7.0,)}
    """
    rest, height = dict(known), 0
    while n > 1:
        for place in sorted(place for level, place in rest if level == height):
            parent = (height + 1, place // 2)
            if place ^ 1 >= n:  # an only child
                rest[parent] = rest.pop((height, place))
            elif place % 2 == 0 and (height, place + 1) in rest:
                both = rest.pop((height, place)), rest.pop((height, place + 1))
                rest[parent] = tuple(one + other for one, other in zip(*both, strict=True))
        height, n = height + 1, (n + 1) // 2
    return rest


def total(known: dict[Node, Sums], n: int) -> Sums:
    """The sum over all n leaves."""
    (root,) = added_up(known, n).values()
    return root
