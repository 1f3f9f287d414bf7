"""CpuItemSums: what it keeps, and what it finds by a shorter way, against the long way."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cghash.learning.backend import MOST_CUTS
from cghash.learning.cpu.features import Features
from cghash.learning.cpu.item_sums import CpuItemSums, places_among, ridge_solver
from cghash.learning.cpu.pairs import SignedPairs

pytestmark = pytest.mark.core


def some_passes(rng, n=60, d=7, n_pairs=200):
    first = rng.integers(0, n - 5, n_pairs)  # the last items have no pair
    second = (first + rng.integers(1, n - 5, n_pairs)) % (n - 5)
    pairs = SignedPairs(first, second, n)
    pairs.set_weights(rng.standard_normal(n_pairs) * (rng.random(n_pairs) < 0.7))
    Z = rng.standard_normal((n, d)).astype(np.float32)
    return CpuItemSums(Features(Z - Z.mean(axis=0)), pairs)


def afresh(passes):
    return CpuItemSums(passes.Z, passes.pairs)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_kept_changes_no_answer(seed):
    """Directions come back, in any order, with several shifts, in between others."""
    rng = np.random.default_rng(seed)
    passes = some_passes(rng)
    directions = [(rng.standard_normal(passes.n_features), float(rng.standard_normal())) for _ in range(4)]
    directions.append((directions[0][0], directions[0][1] + 1.0))  # the same v, another threshold
    for _ in range(60):
        direction = directions[rng.integers(len(directions))]
        shift = float(rng.choice([0.0, 0.1, 1.0]))
        signed = bool(rng.random() < 0.7)
        for mine, right in zip(
            passes.pull(direction, shift, signed), afresh(passes).pull(direction, shift, signed), strict=True
        ):
            assert np.array_equal(mine, right)
        assert passes.sign_gain(direction) == afresh(passes).sign_gain(direction)
        assert len(passes._labelled) <= 2


def test_pull_and_gain_as_written_out():
    rng = np.random.default_rng(7)
    passes = some_passes(rng)
    n, pairs = passes.n_items, passes.pairs
    L, near = np.zeros((n, n)), np.zeros(n)
    for i, j, s in zip(pairs.first, pairs.second, pairs.weights, strict=True):
        L[[i, j], [i, j]] += s
        L[[i, j], [j, i]] -= s
        near[[i, j]] += max(-s, 0.0)
    v, b = rng.standard_normal(passes.n_features), 0.3
    Z = passes.Z.matrix.astype(np.float64)
    for signed in (False, True):
        h = Z @ v + b
        h = np.where(h > 0, 1.0, -1.0) if signed else h
        target = L @ h + 2.0 * 0.3 * near * h
        pull = passes.pull((v, b), 0.3, signed)
        assert np.allclose(pull.right, Z.T @ target, rtol=1e-4, atol=1e-3)
        assert pull.total == pytest.approx(target.sum(), rel=1e-4, abs=1e-3)
        assert pull.absolute == pytest.approx(np.abs(target).sum(), rel=1e-4)
    h = np.where(Z @ v + b > 0, 1.0, -1.0)
    assert passes.sign_gain((v, b)) == pytest.approx(h @ L @ h / 4.0, rel=1e-5)


def test_live_slots_name_rows_of_live_items():
    passes = some_passes(np.random.default_rng(3))
    first, second, weights = passes.pairs.live_slots()
    live = passes.pairs.weights != 0
    assert np.array_equal(passes.pairs.items[first], passes.pairs.first[live])
    assert np.array_equal(passes.pairs.items[second], passes.pairs.second[live])
    assert np.array_equal(weights, passes.pairs.weights[live])


@settings(deadline=None)
@given(
    middle=st.floats(-1e6, 1e6, width=32),
    width=st.one_of(st.just(0.0), st.floats(1e-30, 1e6)),
    n_cuts=st.sampled_from([2, 3, 16, MOST_CUTS]),
    seed=st.integers(0, 2**32 - 1),
)
@example(middle=0.3, width=3.0, n_cuts=MOST_CUTS, seed=1)
@example(middle=1e6, width=1e-3, n_cuts=MOST_CUTS, seed=0)  # many cuts round to one number
@example(middle=0.0, width=1e-40, n_cuts=MOST_CUTS, seed=0)
def test_places_are_those_that_a_search_finds(middle, width, n_cuts, seed):
    rng = np.random.default_rng(seed)
    cuts = (middle + width * np.linspace(-1.0, 1.0, n_cuts)).astype(np.float32)
    around = middle + 2.0 * width * rng.standard_normal(200)
    beside = np.concatenate([cuts, np.nextafter(cuts, np.float32(np.inf)), np.nextafter(cuts, np.float32(-np.inf))])
    far = np.array([-3e38, 0.0, 3e38, np.inf, -np.inf], dtype=np.float32)  # all are searched for
    for values in (np.concatenate([around.astype(np.float32), beside]), far):
        assert np.array_equal(places_among(cuts, values), np.searchsorted(cuts, values))


def test_places_are_found_without_a_search(monkeypatch):
    rng = np.random.default_rng(2)
    cuts, values = np.linspace(-3.0, 3.4, MOST_CUTS, dtype=np.float32), rng.standard_normal(5000).astype(np.float32)
    right = np.searchsorted(cuts, values)
    monkeypatch.delattr(np, "searchsorted")
    assert np.array_equal(places_among(cuts, values), right)


@pytest.mark.parametrize("share", [1e-3, 1.0])
def test_the_ridge_solver_solves(share):
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((30, 40)) * 10.0 ** rng.uniform(-2, 2, 40)  # singular without a ridge
    gram = Z.T @ Z
    regular = gram + (share * np.trace(gram) / 40 + 1e-12) * np.eye(40)
    solve, right = ridge_solver(gram.copy(), share), rng.standard_normal(40)
    assert np.allclose(solve(right), scipy.linalg.solve(regular, right, assume_a="pos"), rtol=1e-9, atol=0)
