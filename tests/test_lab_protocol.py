"""Splits: who is trained on, who is searched, who asks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cghash.exceptions import InvalidInputError
from cghash.lab.experiments.protocol import folds, split_items

LABELS = np.repeat(np.arange(6), [10, 20, 30, 40, 50, 50])


def test_seen_split_gives_each_class_its_share_and_no_query_was_trained_on():
    split = split_items(LABELS, "seen", 0, 100, 100)
    assert np.array_equal(split.train, split.database)
    assert not set(split.train) & set(split.queries)
    assert np.bincount(LABELS[split.train]).tolist() == [5, 10, 15, 20, 25, 25]
    assert np.bincount(LABELS[split.queries]).tolist() == [5, 10, 15, 20, 25, 25]


def test_splits_of_other_numbers_differ_and_of_the_same_agree():
    one, again, other = (split_items(LABELS, "seen", seed, 100, 50) for seed in (0, 0, 1))
    assert np.array_equal(one.train, again.train)
    assert np.array_equal(one.queries, again.queries)
    assert set(one.train) != set(other.train)


def test_heldout_split_searches_what_was_not_trained_on():
    split = split_items(LABELS, "heldout", 0, 100, 40)
    parts = [set(rows) for rows in (split.train, split.database, split.queries)]
    assert [len(part) for part in parts] == [100, 60, 40]
    assert set.union(*parts) == set(range(200))
    with pytest.raises(InvalidInputError, match="must leave a database, got 100 and 100 of 200"):
        split_items(LABELS, "heldout", 0, 100, 100)
    for fold in folds(LABELS, "heldout", 2, 1000, 0):
        assert not set(fold.train) & set(fold.database)
        assert set(LABELS[fold.train]) == set(LABELS[fold.database]) == set(range(6))


def test_unseen_split_trains_on_no_class_that_is_searched():
    split = split_items(LABELS, "unseen", 3, None, None)
    trained, searched = set(LABELS[split.train]), set(LABELS[split.database])
    assert not trained & searched
    assert set(LABELS[split.queries]) == searched
    assert len(searched) == 2  # 27 % of 6 classes
    assert not set(split.queries) & set(split.database)


def test_unseen_split_of_several_labels_keeps_only_the_labels_left_out():
    rng = np.random.default_rng(0)
    y = (rng.random((300, 10)) < 0.15).astype(np.uint8)
    split = split_items(y, "unseen", 0, None, None)
    hidden = np.flatnonzero(split.labels[split.database].any(axis=0))
    assert len(hidden) == 3
    assert not y[split.train][:, hidden].any()
    assert split.labels[split.queries].any(axis=1).all()
    assert not np.delete(split.labels, hidden, axis=1).any()


def test_too_few_classes_or_items_are_said():
    with pytest.raises(InvalidInputError, match="4 classes or more, got 3"):
        split_items(np.repeat([0, 1, 2], 10), "unseen", 0, None, None)
    with pytest.raises(InvalidInputError, match="train must leave items to ask, got 200 of 200"):
        split_items(LABELS, "seen", 0, 200, None)
    with pytest.raises(InvalidInputError, match="at most 200 items together, got 250"):
        split_items(LABELS, "seen", 0, 100, 150)


def test_what_scikit_learn_cannot_part_is_said():
    split = split_items(LABELS, "seen", 0, 100, 50, "scikit-learn")
    assert (len(split.train), len(split.queries)) == (100, 50)
    with pytest.raises(InvalidInputError, match="for the protocol 'seen', got 'heldout'"):
        split_items(LABELS, "heldout", 0, None, None, "scikit-learn")
    with pytest.raises(InvalidInputError, match="train and test must part 200 items by class"):
        split_items(LABELS, "seen", 0, 300, None, "scikit-learn")


def test_folds_of_seen_classes_ask_each_item_once():
    asked = [split.queries for split in folds(LABELS, "seen", 3, 1000, 0)]
    assert sorted(np.concatenate(asked)) == list(range(len(LABELS)))
    for split in folds(LABELS, "seen", 3, 1000, 0):
        assert not set(split.train) & set(split.queries)
        assert set(LABELS[split.queries]) == set(range(6))


def test_folds_of_unseen_classes_are_made_of_whole_classes():
    for split in folds(LABELS, "unseen", 3, 120, 0):
        assert not set(LABELS[split.train]) & set(LABELS[split.database])
        assert set(LABELS[split.queries]) == set(LABELS[split.database])
        assert len(split.train) + len(split.database) + len(split.queries) <= 120


@given(
    st.lists(st.integers(0, 5), min_size=20, max_size=60),
    st.integers(0, 5),
    st.integers(2, 15),
    st.integers(1, 5),
    st.sampled_from(["seen", "heldout", "unseen"]),
)
def test_parts_of_a_split_never_overlap(labels, seed, n_train, n_test, protocol):
    y = np.array(labels)
    if protocol == "unseen" and len(set(labels)) < 4:
        return
    split = split_items(y, protocol, seed, n_train, n_test)
    assert len(set(split.train)) == len(split.train) <= n_train
    assert len(set(split.queries)) == len(split.queries) <= n_test
    assert not set(split.queries) & (set(split.train) | set(split.database))
