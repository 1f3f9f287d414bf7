"""From answers to a model: what is asked, what is learned from it, and what the page says of both."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash import CGHash
from cghash.codes import pack
from cghash.estimator import load
from cghash.exceptions import InUseError, InvalidInputError
from cghash.index import WeightedHammingIndex
from cghash.learning.triplets import TripletSet
from cghash.workspace import Workspace, answer_triplets, create_workspace, worker
from cghash.workspace.answer_cache import AnswerCache, contradictions, from_list
from cghash.workspace.answer_triplets import spread, training_set
from cghash.workspace.fitting import check_parameters, first_model, learn
from cghash.workspace.jobs import Jobs
from cghash.workspace.quality import agreement, compared_rows, overlaps, retrieval, sampled_rows, split_of
from cghash.workspace.questions import PastQuestions, Questioner
from cghash.workspace.records import Answer, open_records
from cghash.workspace.versions import CodeSearch, VectorSearch, Versions, add_model

from .workspaces import wait_for

LINE = np.arange(12, dtype=np.float32)[:, None]  # items 0 to 11 on a line


def said(number, anchor, near, far, source="active"):
    return Answer(str(number), anchor, near, far, "left", source, id=number)


def codes_of(bits, weights):
    """A search by given bits (n, l), whatever model they came from."""
    bits, weights = np.asarray(bits, dtype=np.uint8), np.asarray(weights, dtype=np.float64)
    index = WeightedHammingIndex(bits.shape[1], weights)
    index.add(pack(bits))
    model = CGHash(bits.shape[1])
    model.n_bits_, model.weights_ = bits.shape[1], weights
    return CodeSearch(model, pack(bits), index)


# Lessons


def triplets_of(triplets: TripletSet):
    """Every triplet of a set with its weight, block by block."""
    told = Counter()
    for block, anchor in enumerate(triplets.anchors.tolist()):
        near = triplets.near[triplets.near_ptr[block] : triplets.near_ptr[block + 1]].tolist()
        far = triplets.far[triplets.far_ptr[block] : triplets.far_ptr[block + 1]].tolist()
        for pair in itertools.product(near, far):
            told[anchor, *pair] += triplets.weights[block]
    return told


def circle(X, item, around):
    """An item and its nearest others, by distance and then by row."""
    distances = np.linalg.norm(X.astype(float) - X[item].astype(float), axis=1)
    others = sorted((i for i in range(len(X)) if i != item), key=lambda i: (distances[i], i))
    return [item, *others[:around]]


def brute_spread(X, answers, around):
    """All triplets of the circles of each answer, but for items that stand on both sides or are compared with
    themselves; the three that were spoken of stay. Each answer has the same weight in all."""
    told = Counter()
    for anchor, near, far in answers:
        anchors, nears, fars = (circle(X, item, around) for item in (anchor, near, far))
        mine = [
            (a, p, n)
            for a in anchors
            for p in nears
            for n in fars
            if a not in (p, n)
            and (p == near or p not in fars)
            and (n == far or n not in nears)
            and p != far
            and n != near
        ]
        for triplet in mine:
            told[triplet] += 1 / (len(mine) * len(answers))
    return told


@st.composite
def collections_and_answers(draw):
    n = draw(st.integers(3, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, 2)).astype(np.float32)  # no two distances are equal
    answers = draw(st.lists(st.permutations(range(n)).map(lambda rows: tuple(rows[:3])), min_size=1, max_size=5))
    return X, answers, draw(st.integers(0, 4))


@given(collections_and_answers())
@settings(max_examples=40)
def test_spread_answers_are_the_triplets_of_their_circles(case):
    X, answers, around = case
    found = triplets_of(spread(X, np.array(answers), around=around))
    expected = brute_spread(X, answers, min(around, len(X) - 1))
    assert found.keys() == expected.keys()
    assert all(found[t] == pytest.approx(expected[t]) for t in expected)
    assert sum(found.values()) == pytest.approx(1)


def test_answers_without_neighbours_are_themselves():
    answers = np.array([[0, 4, 9], [3, 1, 7], [0, 4, 9]])
    assert triplets_of(spread(LINE, answers, around=0)) == {
        (0, 4, 9): pytest.approx(2 / 3),
        (3, 1, 7): pytest.approx(1 / 3),
    }


def test_an_item_of_both_circles_is_on_neither_side():
    """Near 4 brings 3, 5, 2 and 6; far 6 brings 5, 7, 4 and 8: what they share says nothing, and 4 and 6 stay."""
    found = triplets_of(spread(LINE, np.array([[0, 4, 6]]), around=4))
    assert {p for _, p, _ in found} == {4, 3, 2}
    assert {n for _, _, n in found} == {6, 7, 8}


def test_equal_items_are_in_each_others_circles_once():
    X = np.zeros((8, 2), dtype=np.float32)
    circles = answer_triplets._circles(X, np.arange(8), 3)
    for item, found in enumerate(circles.tolist()):
        assert found[0] == item
        assert len(set(found)) == 4


def test_vectors_count_as_so_many_answers(monkeypatch):
    monkeypatch.setattr(answer_triplets, "VECTORS_COUNT", 6)
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    answers = np.array([[0, 1, 2], [3, 4, 5]])
    alone, both = training_set(X, answers[:0]), training_set(X, answers)
    assert alone.triplets.weights @ sizes(alone.triplets) == pytest.approx(1)
    blocks = len(alone.triplets.anchors)
    weight = both.triplets.weights * sizes(both.triplets)
    assert weight[:blocks].sum() == pytest.approx(6 / 8)
    assert weight[blocks:].sum() == pytest.approx(2 / 8)


def sizes(triplets):
    return np.diff(triplets.near_ptr) * np.diff(triplets.far_ptr)


def test_a_lesson_of_a_large_collection_holds_what_was_spoken_of():
    X = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    answers = np.array([[499, 3, 250], [17, 499, 0]])
    lesson = training_set(X, answers, most=50)
    assert set(answers.ravel()) <= set(lesson.rows)
    assert 50 <= len(lesson.rows) <= 55
    assert (np.diff(lesson.rows) > 0).all()
    assert lesson.triplets.n_items == len(lesson.rows)
    mine = {tuple(lesson.rows[list(t)].tolist()) for t in triplets_of(lesson.triplets)}
    assert {tuple(t) for t in answers.tolist()} <= mine
    assert np.array_equal(training_set(X, answers, most=50).rows, lesson.rows)


# Contradictions


def can_all_hold(answers):
    """Whether some order of the pairs has the near pair of every answer before its far pair."""
    below = {}
    for answer in answers:
        anchor, near, far = answer.triplet
        below.setdefault(frozenset((anchor, far)), set()).add(frozenset((anchor, near)))
        below.setdefault(frozenset((anchor, near)), set())
    while below:
        first = [pair for pair, smaller in below.items() if not smaller & below.keys()]
        if not first:
            return False
        for pair in first:
            del below[pair]
    return True


ANSWERS = st.lists(st.permutations(range(5)).map(lambda rows: rows[:3]), max_size=9).map(
    lambda found: [said(number, *rows) for number, rows in enumerate(found, 1)]
)


@given(ANSWERS)
@settings(max_examples=200)
def test_answers_contradict_where_no_order_of_pairs_exists(answers):
    found = contradictions(answers)
    assert (found == []) == can_all_hold(answers)
    named = [number for one in found for number in one.numbers]
    assert len(named) == len(set(named))
    for one in found:
        among = one.answers
        assert not can_all_hold(among)
        # each of them is in some circle: there is a subset with it that falls apart without it
        for a in among:
            rest = [b for b in among if b is not a]
            assert any(
                not can_all_hold([a, *some]) and can_all_hold(some)
                for size in range(1, len(rest) + 1)
                for some in itertools.combinations(rest, size)
            )
    assert can_all_hold([a for a in answers if a.id not in named])


def test_two_opposite_answers_are_named():
    [found] = contradictions([said(1, 0, 1, 2), said(2, 3, 1, 2), said(3, 0, 2, 1)])
    assert (found.numbers, found.reason) == ([1, 3], "these two answers say opposite things")
    unsure = Answer("4", 0, 2, 1, "unsure", "active", id=4)
    assert contradictions([said(1, 0, 1, 2), unsure]) == []


# Answers from lists


@given(st.permutations(range(8)), st.integers(0, 7), st.sampled_from(["nearer", "farther"]))
def test_what_is_said_of_a_list_compares_with_what_stands_beside(shown, place, wanted):
    item, row = 20, shown[place]
    found = from_list(item, row, wanted, list(shown))
    beside = shown[max(0, place - 3) : place] if wanted == "nearer" else shown[place + 1 : place + 4]
    assert {frozenset(t) for t in found} == {frozenset((item, row, other)) for other in beside}
    assert all(t[0] == item for t in found)
    assert all(t[1 if wanted == "nearer" else 2] == row for t in found)


def test_the_item_itself_in_its_list_is_passed_over():
    assert from_list(1, 5, "nearer", [9, 1, 5]) == [(1, 5, 9)]
    assert from_list(1, 5, "nearer", [1, 5]) == []


# Quality


def test_agreement_by_hand():
    search = VectorSearch(LINE)
    assert agreement(search, [[0, 1, 2], [0, 5, 2], [5, 4, 6], [5, 6, 4]]) == (1 + 0 + 0.5 + 0.5) / 4
    assert agreement(search, []) is None
    codes = codes_of([[0, 0], [0, 1], [1, 0], [1, 1]], [2.0, 1.0])
    assert agreement(codes, [[0, 1, 2]]) == 1.0  # 1 against 2
    assert agreement(codes, [[0, 3, 2]]) == 0.0  # 3 against 2
    assert agreement(codes, [[1, 0, 3], [3, 1, 0]]) == 1.0  # 1 against 2, 2 against 3


def test_overlaps_by_hand():
    """Bits that order the line backwards: of 12 items, each query's ten nearest leave out one other item."""
    forwards, backwards = VectorSearch(LINE), VectorSearch(-LINE)
    assert overlaps(forwards, backwards, np.arange(12)).tolist() == [1.0] * 12
    shuffled = VectorSearch(LINE[::-1].copy())  # row r is where 11 - r was: distances are the same
    assert overlaps(forwards, shuffled, np.arange(12)).tolist() == [1.0] * 12
    folded = VectorSearch(np.where(LINE < 6, LINE, LINE + 100))
    # from 0: 1 to 10 against 1 to 5 and 6 to 10; from 6: the other half is far away, and its nearest is 5, then 4
    assert overlaps(forwards, folded, np.array([0, 6])).tolist() == [1.0, 1.0]
    ends = VectorSearch(np.where(LINE == 1, 1000, LINE))  # 1 is moved far away: 11 takes its place for 0
    assert overlaps(forwards, ends, np.array([0])).tolist() == [0.9]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 11])
def test_a_ranking_overlaps_wholly_with_itself_in_the_smallest_collection(n):
    search = VectorSearch(LINE[:n])
    expected = 1.0 if n > 1 else 0.0
    assert overlaps(search, search, np.arange(n)).tolist() == [expected] * n


def test_sampled_rows_are_different_and_the_same_each_time():
    rows = sampled_rows(100, 30)
    assert len(set(rows.tolist())) == 30
    assert (np.diff(rows) > 0).all()
    assert np.array_equal(rows, sampled_rows(100, 30))
    assert sampled_rows(5, 30).tolist() == [0, 1, 2, 3, 4]


def test_precision_is_measured_by_items_that_have_a_label():
    X = np.repeat(np.array([[0.0], [10.0], [10.1]], dtype=np.float32), 20, axis=0)
    labels = np.repeat(np.array(["a", "b", ""]), 20)
    queries, database = split_of(labels)
    assert (len(queries), len(database)) == (8, 32)
    assert not set(queries) & set(database)
    assert retrieval(VectorSearch(X), labels).map == 1.0
    assert retrieval(VectorSearch(X), None) is None
    assert retrieval(VectorSearch(X), np.array([""] * 60)) is None
    assert retrieval(VectorSearch(X), np.array([str(i) for i in range(60)])) is None
    assert retrieval(VectorSearch(X[:4]), labels[:4]) is None


# Questions


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(1)
    return rng.normal(size=(600, 8)).astype(np.float32)


def searches(X):
    rng = np.random.default_rng(2)
    yield VectorSearch(X)
    yield codes_of(X @ rng.normal(size=(X.shape[1], 12)) > 0, rng.random(12) + 0.1)
    yield codes_of(np.zeros((len(X), 8)), np.ones(8))  # all codes are equal


NONE = PastQuestions()


REPEATED = np.concatenate([np.zeros((300, 2)), np.random.default_rng(0).normal(size=(20, 2))]).astype(np.float32)


@pytest.mark.parametrize(
    "X",
    [*(LINE[:n] for n in (3, 4, 5, 12)), *(np.zeros((n, 1), dtype=np.float32) for n in (3, 4, 12)), REPEATED],
    ids=lambda X: f"{len(X)}, {len(np.unique(X, axis=0))} of them different",
)
def test_questions_are_about_three_items_also_where_there_are_few_or_all_are_equal(X):
    for search in searches(X):
        for q in Questioner(X, seed=0).questions(search, NONE, 20):
            assert len({q.anchor, q.left, q.right}) == 3
            assert {q.anchor, q.left, q.right} <= set(range(len(X)))


@pytest.mark.parametrize("n", [1, 2])
def test_two_items_leave_nothing_to_ask(n):
    assert Questioner(LINE[:n]).questions(VectorSearch(LINE[:n]), NONE, 3) == []


def test_every_sixth_question_tests_and_keys_are_different(cloud):
    found = Questioner(cloud, seed=0).questions(VectorSearch(cloud), NONE, 600)
    tests = sum(q.source == "test" for q in found)
    assert abs(tests - 100) < 4 * np.sqrt(600 * 5 / 36)
    assert len({q.key for q in found}) == 600


def test_left_and_right_are_drawn(cloud):
    questioner = Questioner(cloud, seed=0)
    distances = [
        np.linalg.norm(cloud[q.anchor] - cloud[q.left]) < np.linalg.norm(cloud[q.anchor] - cloud[q.right])
        for q in questioner.questions(VectorSearch(cloud), NONE, 300)
    ]
    assert 90 < sum(distances) < 210


def test_test_questions_do_not_depend_on_the_model(cloud):
    """The same seed asks the same tests whichever model is in use, as long as it is asked for tests alone."""
    first, *others = (
        [questioner.test() for _ in range(50)]
        for search in searches(cloud)
        for questioner in [Questioner(cloud, seed=5)]
        if questioner.active(search, []) is not None
        for questioner in [Questioner(cloud, seed=5)]
    )
    assert all(other == first for other in others)


def test_test_questions_prefer_what_lies_near_and_reach_everything(cloud):
    questioner = Questioner(cloud, seed=0)
    ranks = []
    for _ in range(400):
        anchor, left, right = questioner.test()
        order = np.argsort(np.linalg.norm(cloud - cloud[anchor], axis=1), kind="stable")
        ranks += [int(np.flatnonzero(order == item)[0]) for item in (left, right)]
    # log-uniform over 600: half lie below the square root of 600, a third below its cube root
    assert abs(np.mean(np.array(ranks) <= 24.5) - 0.5) < 0.1
    assert max(ranks) > 400


def test_active_questions_have_smaller_margins_than_random_ones(cloud):
    rng = np.random.default_rng(0)
    random = np.array([rng.permutation(600)[:3] for _ in range(200)])
    for search in itertools.islice(searches(cloud), 2):
        questioner = Questioner(cloud, seed=0)
        active = np.array([questioner.active(search, []) for _ in range(200)])
        assert np.abs(search.margins(active)).mean() < 0.5 * np.abs(search.margins(random)).mean()


def test_active_questions_do_not_ask_between_duplicates():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(40, 3)), 5, axis=0).astype(np.float32)
    questioner = Questioner(X, seed=0)
    for _ in range(50):
        _, left, right = questioner.active(VectorSearch(X), [])
        assert not np.array_equal(X[left], X[right])


def test_anchors_keep_away_from_those_asked_before():
    """Two far clusters, all questions so far about the first: the next is about the second."""
    X = np.concatenate([np.zeros((50, 2)), np.full((50, 2), 100.0)]).astype(np.float32)
    X += np.random.default_rng(0).normal(size=X.shape).astype(np.float32)
    asked = np.array([[3, 4, 5], [7, 8, 9]])
    questioner = Questioner(X, seed=0)
    anchors = [questioner.active(VectorSearch(X), asked[:, 0].tolist())[0] for _ in range(20)]
    assert min(anchors) >= 50
    waiting = [
        q.anchor
        for q in questioner.questions(VectorSearch(X), PastQuestions(asked.tolist()), 1, skip=[60])
        if q.source == "active"
    ]
    assert all(anchor != 60 for anchor in waiting)


def test_a_question_is_not_asked_twice_while_there_are_others():
    X = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)  # 60 questions in all
    questioner = Questioner(X, seed=0)
    found = questioner.questions(VectorSearch(X), NONE, 30)
    different = {(q.anchor, *sorted((q.left, q.right))) for q in found}
    assert len(different) == 30


# What the page says of the answers


def test_the_book_knows_what_came_and_what_was_taken_back():
    records = open_records(":memory:", "here")
    book = AnswerCache(records)
    assert book.contradicting(0, 5) == (0, [])
    first, second = records.add_answers([said(1, 0, 1, 2), said(2, 0, 2, 1)])
    summary = book.summary(VectorSearch(LINE), first.id)
    assert (summary["answers"], summary["since_model"]) == (2, 1)
    assert summary["agreement"] == {"test": {"share": None, "count": 0}, "training": {"share": 0.5, "count": 2}}
    assert summary["contradictions"] == 1
    total, [both] = book.contradicting(0, 5)
    assert (total, both.answers, both.reason) == (1, [first, second], "these two answers say opposite things")
    assert book.contradicting(1, 5) == (1, [])
    records.undo(second.id)
    summary = book.summary(VectorSearch(LINE), first.id)
    assert (summary["answers"], summary["since_model"], summary["contradictions"]) == (1, 0, 0)
    records.add_answers([said(3, 5, 4, 9, "test"), Answer("4", 1, 2, 3, "unsure", "active"), said(5, 6, 5, 1, "list")])
    summary = book.summary(VectorSearch(LINE), 0)
    counts = {name: summary[name] for name in ("answers", "unsure", "active", "test", "list", "imported")}
    assert counts == {"answers": 3, "unsure": 1, "active": 1, "test": 1, "list": 1, "imported": 0}
    assert summary["agreement"]["test"] == {"share": 1.0, "count": 1}
    assert summary["since_model"] == 2  # of what is learned from: the test and the unsure one are not


def test_an_answer_committed_after_a_later_one_is_seen():
    """Two servers on one PostgreSQL: the second's transaction has the smaller number and ends later."""
    known = [said(number, number, 20, 21) for number in (1, 2, 3, 4)]
    visible = []

    class Slow:
        def count_answers(self):
            return len(visible), 0

        def answers(self):
            return sorted(visible, key=lambda a: a.id)

        def answers_after(self, number):
            return [a for a in self.answers() if a.id > number]

    book = AnswerCache(Slow())
    for number in (0, 1, 3, 2):
        visible.append(known[number])
        assert book.past().known == {(a.anchor, 20, 21) for a in visible}


# Model versions


@pytest.fixture
def workspace(school):
    with Workspace.open(school) as opened:
        yield opened


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
@settings(max_examples=40)
def test_search_by_vectors_in_pieces_is_search_by_all(seed, k, filtered):
    """Few different distances, so that ties lie on either side of every cut."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(30, 2)).astype(np.float32)
    rows = np.sort(rng.permutation(30)[:17]) if filtered else np.arange(30)
    query = X[4] if seed % 2 else rng.normal(size=2)
    distances = np.linalg.norm(X[rows].astype(float) - query, axis=1)
    order = np.lexsort((rows, distances))[:k]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cghash.workspace.versions._NUMBERS", 8)  # four items at a time
        found = VectorSearch(X).nearest(4 if seed % 2 else query, k, rows if filtered else None)
    assert found[1].tolist() == rows[order].tolist()
    assert found[0] == pytest.approx(distances[order])


def test_large_collections_are_compared_by_fewer_queries(monkeypatch):
    X = np.zeros((1000, 4), dtype=np.float32)
    assert len(compared_rows(X, VectorSearch(X))) == 300
    monkeypatch.setattr("cghash.workspace.quality._NUMBERS", 200_000)
    assert len(compared_rows(X, VectorSearch(X))) == 50
    assert len(compared_rows(X, codes_of(np.zeros((1000, 2)), [1.0, 1.0]))) == 300
    monkeypatch.setattr("cghash.workspace.quality._NUMBERS", 0)
    assert len(compared_rows(X, VectorSearch(X))) == 12


def test_a_version_at_fewer_bits_is_the_truncated_model(digits):
    with Workspace.open(digits) as workspace:
        versions = Versions(workspace)
        whole, short = versions.at(1), versions.at(1, 5)
        model = load(workspace.model_path(1)).truncate(5)
        X = np.asarray(workspace.vectors)
        assert np.array_equal(short.codes, model.encode(X))
        assert np.array_equal(short.weights, model.weights_)
        distances = (model.transform(X) != model.transform(X)[7]) @ model.weights_
        expected = np.lexsort((np.arange(len(X)), distances))[:20]
        assert short.nearest(7, 20, None)[1].tolist() == expected.tolist()
        assert versions.at(1, 16) is whole
        for bits in (0, 17):
            with pytest.raises(InvalidInputError, match="bits must be"):
                versions.at(1, bits)
        with pytest.raises(InvalidInputError, match="no model version 2"):
            versions.at(2)


def test_only_the_last_few_lengths_stay_open(digits):
    with Workspace.open(digits) as workspace:
        versions = Versions(workspace)
        for bits in range(1, 17):
            versions.at(1, bits)
        assert len(versions._open) <= 12
        assert versions.at(1, 1).bits == 1


def test_a_model_for_other_vectors_is_refused(digits):
    model = CGHash(4, random_state=0).fit(np.random.default_rng(0).normal(size=(30, 3)))
    with Workspace.open(digits) as workspace:
        with pytest.raises(InvalidInputError, match="64 features, as this workspace has, got 3"):
            add_model(workspace, model, "foreign")
        assert len(workspace.records.versions()) == 1


# Learning


def test_learning_gives_a_version_and_says_what_it_changed(school):
    told = []
    with Workspace.open(school) as workspace:
        answers = np.array(workspace.records.triplets())
        assert answers.shape == (40, 3)
        version = learn(workspace, answers, {"bits": 8, "name": "mine"}, about={"last_answer": 50}, tell=told.append)
        assert (version.version, version.name, version.bits, version.answers) == (2, "mine", 8, 40)
        assert workspace.records.current == 1
        report = workspace.records.version(2).report
        before, after = Versions(workspace).at(1), Versions(workspace).at(2)
        held_out = workspace.records.triplets(["test"])
        assert report["held_out"] == {
            "before": agreement(before, held_out), "after": agreement(after, held_out), "count": 10
        }  # fmt: skip
        shares = overlaps(before, after, np.arange(200))
        assert report["mean_overlap"] == pytest.approx(shares.mean())
        assert [one["overlap"] for one in report["changed"]] == sorted(shares)[:12]
        precision = {"before": retrieval(before, workspace.labels).map, "after": retrieval(after, workspace.labels).map}
        assert report["mean_average_precision"] == precision
    bits = [progress["bit"] for progress in told if progress["stage"] == "learning"]
    assert bits == [*range(1, 9)]
    assert {"objective", "gap", "satisfied", "seconds", "seconds_left"} <= told[-2].keys()
    assert told[-2]["seconds_left"] == 0


def test_answers_change_what_is_learned(workspace):
    answers = np.array(workspace.records.triplets())
    right, wrong = (learn(workspace, some, {"bits": 8}) for some in (answers, answers[:, [0, 2, 1]]))
    shares = [agreement(Versions(workspace).at(v.version), answers) for v in (right, wrong)]
    assert shares[0] > 0.9 > shares[1]
    assert learn(workspace, answers[:0], {"bits": 1}).name == "from the vectors alone"


@pytest.mark.parametrize("n", [3, 4, 6])
def test_the_smallest_collections_can_be_searched_and_taught(n, tmp_path):
    X = np.random.default_rng(0).normal(size=(n, 4))
    with create_workspace(tmp_path / "ws", X) as workspace:
        first_model(workspace, bits=4)
        version = learn(workspace, np.array([[0, 1, 2]]), {"bits": 4})
        search = Versions(workspace).at(version.version)
        assert sorted(search.nearest(0, 100, None)[1].tolist()) == [*range(n)]
        assert workspace.records.version(version.version).report["mean_average_precision"] is None


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"bits": 0}, "bits must be a whole number from 1 to 1024, got 0"),
        ({"bits": 2.5}, "bits must be a whole number"),
        ({"bits": True}, "bits must be a whole number"),
        ({"C": 0}, "C must be a positive number, got 0"),
        ({"C": float("nan")}, "C must be a positive number"),
        ({"hash_function": "magic"}, "hash_function must be one of linear, rbf, stump, tree, got 'magic'"),
        ({"depth": 3}, "parameters must be of bits, C, hash_function, name, got depth"),
    ],
)
def test_wrong_parameters_of_a_fit_are_named(parameters, words):
    with pytest.raises(InvalidInputError, match=words):
        check_parameters(parameters)


# Jobs and their processes

BITS = 24


def worker_process(folder, number):
    command = [sys.executable, "-m", "cghash.workspace.worker", os.fspath(folder), str(number)]
    settings = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=os.environ | settings, stderr=subprocess.PIPE)


def bit_of(records, number):
    return records.job(number).progress.get("bit", 0)


@pytest.fixture(scope="module")
def uninterrupted(taught, tmp_path_factory):
    """The model that a worker learns when nothing happens to it."""
    folder = shutil.copytree(taught, tmp_path_factory.mktemp("quiet") / "school.ws")
    with Workspace.open(folder) as workspace:
        job = workspace.records.add_job(check_parameters({"bits": BITS}))
        process = worker_process(folder, job.id)
        assert process.wait(120) == 0, process.stderr.read()
        done = workspace.records.job(job.id)
        assert (done.state, done.version) == ("done", 2)
        assert done.message == "version 2 was learned from 40 answers"
        version = workspace.records.version(2)
        assert (version.job, version.answers, version.last_answer) == (job.id, 40, 50)
        assert not worker.job_folder(workspace, job.id).exists()
        return load(workspace.model_path(2))


def test_a_worker_killed_or_stopped_in_the_middle_is_taken_up_to_the_same_bit(workspace, school, uninterrupted):
    """With answers that arrive meanwhile, which change nothing."""
    records, folder = workspace.records, worker.job_folder(workspace, 1)
    job = records.add_job(check_parameters({"bits": BITS}))
    for at, how, code in ((4, signal.SIGKILL, -signal.SIGKILL), (9, signal.SIGTERM, 1)):
        process = worker_process(school, job.id)
        wait_for(lambda: bit_of(records, job.id) >= at)  # noqa: B023
        assert worker.is_working(workspace, job.id)
        process.send_signal(how)
        assert process.wait(30) == code
        assert process.stderr.read() == b""
        assert records.job(job.id).state == "running"
        assert (folder / "state").exists()
        assert not worker.is_working(workspace, job.id)
        records.add_answers([said(f"late-{at}", 1, 2, 3)])
    process = worker_process(school, job.id)
    assert process.wait(120) == 0, process.stderr.read()
    model = load(workspace.model_path(2))
    assert (records.version(2).answers, records.version(2).last_answer) == (40, 50)
    assert model.weights_.tobytes() == uninterrupted.weights_.tobytes()
    X = np.asarray(workspace.vectors)
    assert np.array_equal(model.encode(X), uninterrupted.encode(X))


def test_a_job_goes_through_its_states_and_can_be_cancelled(workspace):
    jobs, records = Jobs(workspace), workspace.records
    job = jobs.start({"bits": 300})
    with pytest.raises(InUseError, match="another job is under way"):
        jobs.start({"bits": 8})
    wait_for(lambda: bit_of(records, job.id) >= 2)
    assert jobs.look_after(job.id).state == "running"
    assert jobs.cancel(job.id).state == "cancelling"
    wait_for(lambda: jobs.look_after(job.id).state == "cancelled")
    assert len(records.versions()) == 1
    wait_for(lambda: not worker.job_folder(workspace, job.id).exists())
    assert jobs.cancel(job.id).state == "cancelled"
    assert records.add_job({}) is not None
    jobs.stop()


def test_a_worker_imports_nothing_from_the_folder_in_which_the_server_was_started(school, tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("open('marker', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    with Workspace.open(school) as workspace:
        jobs = Jobs(workspace)
        job = jobs.start({"bits": 2})
        wait_for(lambda: jobs.look_after(job.id).state in ("done", "failed"))
        assert jobs.look_after(job.id).state == "done"
    assert not (tmp_path / "marker").exists()


def test_a_job_cancelled_before_its_worker_begins(workspace):
    job = workspace.records.add_job(check_parameters({"bits": 4}))
    workspace.records.change_job(job.id, state="cancelling")
    assert worker.work(workspace, job.id) == "cancelled"
    assert len(workspace.records.versions()) == 1


def test_a_fit_that_fails_says_why(workspace, monkeypatch):
    job = workspace.records.add_job({"bits": 4, "hash_function": "magic"})
    assert worker.work(workspace, job.id) == "failed"
    assert "hash_function must be one of" in workspace.records.job(job.id).message
    job = workspace.records.add_job({"bits": 4})
    monkeypatch.setattr(worker, "learn", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
    assert worker.work(workspace, job.id) == "failed"
    assert workspace.records.job(job.id).message == "out of memory"
    assert workspace.records.active_job() is None


def test_a_job_that_has_ended_stays_as_it_is_and_its_version_is_not_learned_twice(workspace, monkeypatch):
    records = workspace.records
    job = records.add_job(check_parameters({"bits": 2}))
    assert worker.work(workspace, job.id) == "done"
    monkeypatch.setattr(worker, "learn", None)
    assert worker.work(workspace, job.id) == "done"
    records.change_job(job.id, state="running", version=None)  # killed before it could say so
    assert worker.work(workspace, job.id) == "done"
    assert (records.job(job.id).version, len(records.versions())) == (2, 2)


def test_one_worker_at_a_time(school, monkeypatch):
    began, go_on = threading.Event(), threading.Event()

    def slow(*_, **__):
        began.set()
        assert go_on.wait(30)
        raise InvalidInputError("enough")

    monkeypatch.setattr(worker, "learn", slow)
    monkeypatch.setattr(worker, "_PATIENCE", 0.1)
    with Workspace.open(school) as workspace:
        job = workspace.records.add_job({"bits": 4})
        first = threading.Thread(target=worker.work, args=(workspace, job.id))
        first.start()
        assert began.wait(30)
        assert worker.is_working(workspace, job.id)
        assert worker.work(workspace, job.id) == "running"
        assert Jobs(workspace).resume() is None
        go_on.set()
        first.join()
        assert workspace.records.job(job.id).message == "enough"


def test_a_worker_that_dies_without_a_word_is_noticed(workspace):
    jobs = Jobs(workspace)
    job = workspace.records.add_job({"bits": 4})
    jobs._processes[job.id] = subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(3)"])
    wait_for(lambda: jobs.look_after(job.id).state == "failed")
    assert workspace.records.job(job.id).message == "its process ended without a word"


def test_a_worker_of_another_server_has_time_to_come_up(school, monkeypatch):
    from cghash.workspace import jobs as jobs_module

    with Workspace.open(school) as workspace:
        job = workspace.records.add_job({"bits": 4})  # by a server that is about to start its worker
        assert Jobs(workspace).look_after(job.id).state == "queued"
        monkeypatch.setattr(jobs_module, "_COMING_UP", -jobs_module._COMING_UP)
        assert Jobs(workspace).look_after(job.id).state == "failed"
        other = workspace.records.add_job({"bits": 4})
        assert Jobs(workspace).cancel(other.id).state == "cancelled"


def test_jobs_are_taken_up_when_the_server_comes_back(workspace):
    jobs = Jobs(workspace)
    assert jobs.resume() is None
    job = workspace.records.add_job(check_parameters({"bits": 2}))
    assert jobs.resume().id == job.id
    wait_for(lambda: jobs.look_after(job.id).state == "done")
    assert jobs.cancel(job.id).state == "done"
    asked = workspace.records.add_job(check_parameters({"bits": 2}))
    workspace.records.change_job(asked.id, state="cancelling")
    assert jobs.resume() is None
    assert workspace.records.job(asked.id).state == "cancelled"
