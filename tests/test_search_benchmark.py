"""What the benchmark of search takes for the truth, and that FAISS is asked for the same distance."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from cghash.codes import unpack, weighted_hamming

SPEED = Path(__file__).parents[1] / "benchmarks" / "speed"


@pytest.fixture
def part(monkeypatch):
    monkeypatch.syspath_prepend(SPEED.parent)
    monkeypatch.syspath_prepend(SPEED)
    return importlib.import_module


@pytest.fixture(params=["uniform", "exponential"])
def data(part, request):
    return part("search_codes").make(request.param, 500, 32, n_queries=20)


def full_comparison(data):
    return weighted_hamming(unpack(data.queries, data.bits), unpack(data.codes, data.bits), data.weights)


def test_brute_force_is_a_full_comparison(part, data):
    D = full_comparison(data)
    for row, query in enumerate(data.queries):
        distances, ids = part("exactness").brute_force(data, query, 7)
        order = np.argsort(D[row], kind="stable")[:7]
        np.testing.assert_array_equal(ids, order)
        np.testing.assert_array_equal(distances, D[row, order])


def test_recall_counts_what_is_as_near_as_the_last_of_the_truth(part, data):
    D = full_comparison(data)
    order = np.argsort(D, axis=1, kind="stable")
    truth = np.take_along_axis(D, order[:, :4], axis=1)
    found = order[:, :4].copy()
    assert part("exactness").recall(data, data.queries, found, truth) == 1.0
    found[:, 3], found[:, 2] = order[:, -1], -1  # the farthest, and nothing
    assert part("exactness").recall(data, data.queries, found, truth) == 0.5


@pytest.mark.parametrize("name", ["PQ", "FastScan"])
def test_faiss_ranks_by_the_weighted_distance(part, data, name):
    pytest.importorskip("faiss")
    rival = getattr(part("rivals"), name)(data)
    rival.factor = 8
    found = rival.search(rival.prepare(data.queries), 5)
    D = full_comparison(data)
    np.testing.assert_allclose(np.take_along_axis(D, found, axis=1), np.sort(D, axis=1)[:, :5], rtol=1e-6)


def test_times_are_taken_in_turns_until_the_cap(part):
    calls = []
    works = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    assert set(part("timing").in_turns(works, cap=0.0, least=5)) == {"a", "b"}
    assert calls == ["a", "b"] * 2  # a warm-up, which is above the cap, and one round
