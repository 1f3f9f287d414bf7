"""Triplet sets: product blocks and the triplets that they stand for."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash.exceptions import InvalidInputError, NothingToLearnError
from cghash.learning.triplets import from_lists, from_rows, join

pytestmark = [pytest.mark.core, pytest.mark.portable]


def total_weight(triplets):
    return float(np.sum(triplets.weights * np.diff(triplets.near_ptr) * np.diff(triplets.far_ptr)))


def test_rows_come_back_as_they_went_in():
    rows = np.array([[3, 1, 0], [0, 1, 2], [3, 1, 0], [0, 2, 1]])  # a repeated one, a contrary one
    triplets = from_rows(rows, n_items=4)
    np.testing.assert_array_equal(triplets.to_rows(), rows)
    assert (triplets.n_triplets, triplets.n_slots) == (4, 8)
    np.testing.assert_allclose(triplets.weights, 0.25)


def test_weights_keep_their_proportions_and_sum_to_one():
    triplets = from_rows([[0, 1, 2], [1, 0, 2], [2, 1, 0]], 3, weights=[1, 0, 3])
    np.testing.assert_allclose(triplets.weights, [0.25, 0.0, 0.75])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_any_integer_type_names_items(dtype):
    rows = from_rows(np.array([[0, 1, 2]], dtype=dtype), 3).to_rows()
    assert rows.dtype == np.int64
    np.testing.assert_array_equal(rows, [[0, 1, 2]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((0, 3), int), "triplets must not be empty"),
        ([[0, 1]], r"shape \(m, 3\) \(anchor, near, far\), got shape \(1, 2\)"),
        ([0, 1, 2], r"got shape \(3,\)"),
        ([[0.0, 1.0, 2.0]], r"float64; they look whole: pass astype\(int\)"),
        ([[0.0, 1.5, 2.0]], "integer row numbers, got dtype float64$"),
        ([[0.0, np.nan, 2.0]], "integer row numbers, got dtype float64$"),
        ([["a", "b", "c"]], "integer row numbers"),
        ([[True, False, True]], "integer row numbers, got dtype bool"),
        ([[0, 1, 2], [0, 1, 5]], r"from 0 to 4, got \[0, 1, 5\] in row 1"),
        ([[0, 1, -1]], r"from 0 to 4, got \[0, 1, -1\] in row 0"),
        (np.array([[0, 1, 2**63 + 1]], dtype=np.uint64), "from 0 to 4"),
        ([[0, 1, 2], [3, 3, 1]], r"3 different items in each row, got \[3, 3, 1\] in row 1"),
        ([[0, 1, 0]], "different items"),
        ([[0, 1, 1]], "different items"),
    ],
)
def test_rows_that_are_no_triplets_are_refused(rows, message):
    with pytest.raises(InvalidInputError, match=message):
        from_rows(rows, n_items=5)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(*[st.integers(-2, 6)] * 3), min_size=1, max_size=4))
def test_rows_of_three_different_items_and_only_those_are_triplets(rows):
    if all(len(set(row)) == 3 and min(row) >= 0 and max(row) < 5 for row in rows):
        np.testing.assert_array_equal(from_rows(rows, 5).to_rows(), rows)
    else:
        with pytest.raises(InvalidInputError, match="triplets"):
            from_rows(rows, 5)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"shape \(2,\).*got shape \(1,\)"),
        ([[1.0, 1.0]], "shape"),
        ([1.0, -0.5], "not negative, got -0.5 in row 1"),
        ([np.nan, 1.0], "finite and not negative, got nan in row 0"),
        ([1.0, np.inf], "finite"),
        ([0.0, 0.0], "at least one positive weight"),
    ],
)
def test_weights_that_weigh_nothing_sensible_are_refused(weights, message):
    with pytest.raises(InvalidInputError, match="triplet_weights") as error:
        from_rows([[0, 1, 2], [1, 2, 0]], 3, weights)
    assert error.match(message)


@pytest.mark.parametrize("weights", [[1e308, 1e308], [5e-324, 0.0]], ids=["sum overflows", "subnormal"])
def test_extreme_weights_still_sum_to_one(weights):
    assert from_rows([[0, 1, 2], [1, 2, 0]], 3, weights).weights.sum() == pytest.approx(1.0)


@st.composite
def lists(draw):
    n = draw(st.integers(1, 6))

    def one_side():
        width = draw(st.integers(1, 4))
        return np.array([[draw(st.integers(-1, 9)) for _ in range(width)] for _ in range(n)])

    return one_side(), one_side()


@settings(max_examples=100, deadline=None)
@given(lists())
def test_blocks_stand_for_the_product_of_their_lists(case):
    near, far = case
    expected = [
        (anchor, i, j)
        for anchor, (nears, fars) in enumerate(zip(near, far, strict=True))
        for i, j in product(nears[nears >= 0], fars[fars >= 0])
    ]
    if not expected:
        with pytest.raises(NothingToLearnError, match="both a near and a far item"):
            from_lists(near, far, 10)
        return
    triplets = from_lists(near, far, 10)
    np.testing.assert_array_equal(triplets.to_rows(), expected)
    assert triplets.n_triplets == len(expected)
    assert total_weight(triplets) == pytest.approx(1.0)
    check_slots(triplets)


def check_slots(triplets):
    """Slots name an anchor and its item; a triplet's slots give the triplet, and all weights sum to 1."""
    anchors, items = triplets.slots()
    near, far, p = triplets.triplet_slots()
    assert len(anchors) == len(items) == triplets.n_slots
    np.testing.assert_array_equal(anchors[near], anchors[far])
    np.testing.assert_array_equal(np.stack([anchors[near], items[near], items[far]], 1), triplets.to_rows())
    assert len(np.unique(np.stack([near, far]), axis=1).T) == triplets.n_triplets  # each once
    assert p.sum() == pytest.approx(1.0)


def test_slots_of_ragged_blocks_by_hand():
    none = [-1, -1]
    triplets = from_lists(np.array([none, none, [4, 5], [6, -1]]), np.array([none, none, [7, -1], [8, 9]]), 10)
    anchors, items = triplets.slots()
    assert anchors.tolist() == [2, 2, 2, 3, 3, 3]
    assert items.tolist() == [4, 5, 7, 6, 8, 9]
    near, far, p = triplets.triplet_slots()
    assert near.tolist() == [0, 1, 3, 3]
    assert far.tolist() == [2, 2, 4, 5]
    np.testing.assert_allclose(p, 0.25)


def test_joined_sets_keep_their_triplets_and_share_the_weight_equally():
    one = from_rows([[0, 1, 2]], 4)
    two = from_lists(np.array([[1, 2]]), np.array([[3]]), 4)
    both = join([one, two])
    np.testing.assert_array_equal(both.to_rows(), [[0, 1, 2], [0, 1, 3], [0, 2, 3]])
    np.testing.assert_allclose(both.triplet_slots()[2], [0.5, 0.25, 0.25])
    check_slots(both)
    assert join([one]) is one
