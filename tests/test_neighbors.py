"""The neighbour graph equals a float64 brute force, on every instruction set and on the twin."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_info

from cghash import _kernels
from cghash._kernels import twins
from cghash.exceptions import InvalidInputError
from cghash.learning.cpu import neighbor_blocks as blocks
from cghash.learning.cpu import neighbor_bounds, neighbors
from cghash.learning.cpu.neighbor_blocks import Workers, rounds
from cghash.learning.cpu.neighbor_bounds import slack_of
from cghash.learning.cpu.neighbor_items import DenseItems, Labels, SparseItems, first_copies, is_exact
from cghash.learning.cpu.neighbors import nearest

pytestmark = pytest.mark.core

ISAS = _kernels.native.instruction_sets() if _kernels.native else []
ENGINES = [pytest.param(isa, marks=pytest.mark.native) for isa in ISAS] + ["twin"]


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    """Blocks of 7 items, on one instruction set or on the twin."""
    monkeypatch.setattr(blocks, "BLOCK", 7)
    if request.param == "twin":
        monkeypatch.setattr(_kernels, "NearestLists", twins.NearestLists)
        yield request.param
    else:
        monkeypatch.setattr(_kernels, "NearestLists", _kernels.native.NearestLists)
        _kernels.native.choose_instruction_set(request.param)
        yield request.param
        _kernels.native.choose_instruction_set("")


def is_relevant(relevance, n):
    if relevance is None:
        return np.ones((n, n), dtype=bool)
    if sparse.issparse(relevance):
        relevance = relevance.toarray()
    relevance = np.asarray(relevance)
    if relevance.ndim == 1:
        return relevance[:, None] == relevance
    return np.array([relevance[:, np.flatnonzero(labels)].any(axis=1) for labels in relevance], dtype=bool).reshape(
        n, n
    )


def brute_force(X, relevance, n_near, n_far):
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64, order="C")
    n = len(X)
    relevant = is_relevant(relevance, n)
    near, far = np.full((n, n_near), -1), np.full((n, n_far), -1)
    for i in range(n):
        distance = ((X[i] - X) ** 2).sum(axis=1)
        order = np.lexsort((np.arange(n), distance))
        for lists, kind in ((near, True), (far, False)):
            chosen = order[(relevant[i, order] == kind) & (order != i)][: lists.shape[1]]
            lists[i, : len(chosen)] = chosen
    return near, far


def check(X, relevance, n_near, n_far, n_threads=2):
    near, far = nearest(X, relevance, n_near, n_far, n_threads)
    expected_near, expected_far = brute_force(X, relevance, n_near, n_far)
    assert near.dtype == far.dtype == np.int64
    np.testing.assert_array_equal(near, expected_near)
    np.testing.assert_array_equal(far, expected_far)


def blobs(n, d, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, n_classes, n)


@pytest.mark.parametrize("counts", [(3, 2), (0, 2), (3, 0), (0, 0), (50, 60)])
def test_any_number_of_items(engine, counts):
    for n in (0, 1, 2, 3, 6, 7, 8, 13, 14, 15, 40):
        check(*blobs(n, 5), *counts)


@pytest.mark.parametrize("block", [1, 16, 17, 31, 64, 300, 1000])
def test_blocks_with_and_without_tails(engine, block, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", block)
    X, y = blobs(700 if block > 16 else 50, 4)
    check(X, y, 4, 5)


def test_without_relevance_all_items_are_near(engine):
    check(blobs(30, 3)[0], None, 4, 0)


def test_far_items_without_relevance_are_refused():
    with pytest.raises(InvalidInputError, match="n_far must be 0"):
        nearest(np.zeros((3, 1)), None, 1, 1, 1)


@pytest.mark.parametrize("bad", [[0, 1], [[[0]], [[1]], [[0]]]])
def test_relevance_of_a_wrong_shape_is_refused(bad):
    with pytest.raises(InvalidInputError, match="relevance must be"):
        nearest(np.zeros((3, 1)), bad, 1, 1, 1)


def test_negative_counts_and_flat_items_are_refused():
    with pytest.raises(InvalidInputError, match="n_near must not be negative"):
        nearest(np.zeros((3, 1)), None, -1, 0, 1)
    with pytest.raises(InvalidInputError, match="X must be"):
        nearest(np.zeros(3), None, 1, 0, 1)


def test_single_class_and_classes_of_one_item(engine):
    X, _ = blobs(20, 3)
    check(X, np.zeros(20, dtype=int), 3, 3)
    check(X, np.arange(20), 3, 3)
    check(X, np.array([-5] * 3 + [10**12] * 17), 5, 5)


def test_all_items_equal(engine):
    check(np.full((30, 3), 0.1), np.arange(30) % 2, 4, 4)
    check(np.zeros((30, 0)), np.arange(30) % 2, 4, 4)


def test_duplicates_beyond_the_spare_candidates(engine):
    X, y = blobs(3, 6)
    rows = np.random.default_rng(1).integers(0, 3, 60)
    check(X[rows], np.arange(60) % 2, 3, 3)
    check(X[rows], y[rows], 3, 3)


def test_copies_are_found_whatever_the_sign_of_zero():
    X = np.array([[0.0, 1.5], [2.0, 0.5], [-0.0, 1.5], [2.0, 0.5]])
    assert first_copies(DenseItems(X)).tolist() == [0, 1, 0, 1]
    explicit = sparse.csr_array(([1.5, 0.0, 1.0, 0.5], [1, 0, 1, 1], [0, 1, 4]), shape=(2, 2))
    assert first_copies(SparseItems(explicit)).tolist() == [0, 0]
    assert explicit.nnz == 4


def test_grid_of_tenths_where_distances_tie_up_to_rounding(engine):
    grid = np.stack(np.meshgrid(np.arange(5), np.arange(5), np.arange(3)), axis=-1).reshape(-1, 3) * 0.1
    check(grid, np.arange(len(grid)) % 2, 5, 5)


def test_whole_numbers_are_exact_in_float32(engine):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (80, 6)).astype(float), rng.integers(0, 2, 80)
    assert is_exact(DenseItems(X), 24)
    check(X, y, 5, 5)
    check(X + 2.0**40, y, 5, 5)


def test_whole_numbers_beyond_float32(engine):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (80, 6)) * 5000.0, rng.integers(0, 2, 80)
    assert not is_exact(DenseItems(X), 24)
    assert is_exact(DenseItems(X), 53)
    check(X, y, 5, 5)


def test_whole_numbers_beyond_float64(engine):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2**40, (40, 6)).astype(float), rng.integers(0, 2, 40)
    assert not is_exact(DenseItems(X), 53)
    check(X, y, 5, 5)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_scaled_and_shifted_features(engine, offset):
    X, y = blobs(40, 6)
    for scale in (1e-150, 1e-30, 1e-9, 1e9, 1e30, 1e150):
        check((X + offset) * scale, y, 4, 4)


def test_features_of_very_different_scales(engine):
    X, y = blobs(60, 6)
    check(X * 10.0 ** np.arange(-9, 9, 3), y, 4, 4)


def test_constant_features(engine):
    X, y = blobs(40, 6)
    X[:, ::2] = [1e9, 0.1, -1e15]
    check(X, y, 4, 4)


def test_differences_that_float32_cannot_hold(engine):
    X, y = blobs(50, 3)
    X[:25] = X[0] + 1e-10 * X[:25]
    X[25:] = X[0] + 1.0 + 1e-12 * X[25:]
    check(X, y, 4, 4)


def test_an_outlier_changes_nothing(engine):
    X, y = blobs(50, 3)
    X[7] *= 1e12
    check(X, y, 4, 4)


def test_an_outlier_leaves_the_others_decided_in_float32():
    X, y = blobs(2000, 8)
    X[7] *= 30
    near, far = np.full((2000, 5), -1), np.full((2000, 5), -1)
    undecided = blocks.by_blocks(DenseItems(X), Labels(y), near, far, 1)
    assert undecided.size < 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_orders_and_read_only_items(engine, dtype, order):
    X, y = blobs(30, 4)
    X = np.array(X, dtype=dtype, order=order)
    before = X.copy()
    X.setflags(write=False)
    y.setflags(write=False)
    check(X, y, 3, 3)
    np.testing.assert_array_equal(X, before)


def test_strided_and_memory_mapped_items(engine, tmp_path):
    X, y = blobs(30, 8)
    check(X[:, ::-2], y, 3, 3)
    np.save(tmp_path / "X.npy", X)
    check(np.load(tmp_path / "X.npy", mmap_mode="r"), y, 3, 3)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_shared_labels_and_items_without_any(engine, kind):
    X, _ = blobs(60, 4)
    Y = np.random.default_rng(2).random((60, 5)) < 0.2
    Y[:4] = False
    check(X, kind(Y.astype(int)), 5, 5)
    near, _ = nearest(X, kind(Y.astype(int)), 5, 5, 1)
    assert np.all(near[:4] == -1)


def test_shared_labels_beyond_one_vector(engine, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 300)
    X, _ = blobs(640, 4)
    check(X, np.random.default_rng(2).random((640, 3)) < 0.2, 5, 5)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("whole", [True, False])
def test_sparse_items(kind, whole, monkeypatch):
    monkeypatch.setattr(neighbors, "SCORES", 100)
    rng = np.random.default_rng(0)
    X = rng.poisson(0.2, (40, 30)) * (1.0 if whole else rng.normal(size=(40, 30)))
    check(kind(X), rng.integers(0, 3, 40), 4, 4)
    check(kind(X), rng.random((40, 4)) < 0.3, 4, 4)
    check(kind(X), None, 45, 0)
    check(kind((0, 3)), np.zeros(0, dtype=int), 2, 2)


def test_the_number_of_threads_changes_nothing(engine):
    X, y = blobs(100, 4)
    answers = [nearest(X, y, 5, 5, n_threads) for n_threads in (1, 2, 5)]
    for near, far in answers[1:]:
        np.testing.assert_array_equal(near, answers[0][0])
        np.testing.assert_array_equal(far, answers[0][1])


def test_not_a_number_does_not_crash(engine):
    X, y = blobs(30, 4)
    X[3, 2] = np.nan
    with np.errstate(invalid="ignore"):
        near, far = nearest(X, y, 3, 3, 2)
    assert near.max() < 30
    assert far.max() < 30


@st.composite
def situations(draw):
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    value = draw(st.sampled_from([st.integers(-2, 2), st.floats(-1e3, 1e3), st.sampled_from([0.1, 0.3, 1e-8, 1e8])]))
    cells = draw(st.lists(value, min_size=n * d, max_size=n * d))
    X = np.array(cells, dtype=draw(st.sampled_from([np.float32, np.float64]))).reshape(n, d)
    if draw(st.booleans()):
        relevance = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    else:
        relevance = np.array(draw(st.lists(st.booleans(), min_size=2 * n, max_size=2 * n))).reshape(n, 2)
    return X, relevance, draw(st.integers(0, 6)), draw(st.integers(0, 6))


@settings(deadline=None, max_examples=100)
@given(situation=situations(), block=st.integers(1, 20), as_sparse=st.booleans())
def test_equals_the_brute_force(situation, block, as_sparse):
    X, *rest = situation
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", block)
        check(sparse.csr_array(X) if as_sparse else X, *rest)
        patch.setattr(_kernels, "NearestLists", twins.NearestLists)
        check(X, *rest)


@pytest.mark.parametrize("d", [1, 7, 8, 9, 127, 128, 129, 1000])
def test_error_bound_holds_against_long_double(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(64, d)) * np.exp(rng.normal(size=(64, 1))) + 5
    items = DenseItems(X)
    X32, squares = items.singles()
    exact = (X.astype(np.longdouble) - items._shift) * items.scale
    half = ((exact[:, None] - exact[None]) ** 2).sum(axis=2) / 2  # (64, 64)
    norms = np.sqrt(squares)
    computed = (squares / 2).astype(np.float32) - X32 @ X32.T
    error = np.abs(computed - (half - (exact**2).sum(axis=1)[:, None] / 2))
    assert np.all(error <= slack_of(d, 2.0**-24)(norms[:, None], norms))


def lists_of(kernel, dots, half, labels, relevant, block, backwards=False):
    n = len(half)
    found = kernel(half, labels, min(4, n), min(3, n))
    starts = [(row, column) for row in range(0, n, block) for column in range(row, n, block)]
    for row, column in reversed(starts) if backwards else starts:
        some = slice(row, row + block), slice(column, column + block)
        marks = None if relevant is None else np.ascontiguousarray(relevant[some])
        found.update(np.ascontiguousarray(dots[some]), row, column, marks)
    return *found.near(), *found.far()


@pytest.mark.native
@pytest.mark.skipif(not ISAS, reason="the native extension was not built")
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 33, 300, 600])
@pytest.mark.parametrize("masked", [False, True])
def test_native_lists_equal_the_twin(isa, n, masked):
    rng = np.random.default_rng(n)
    X = rng.integers(0, 4, (n, 5)).astype(np.float32)  # many ties
    dots, half = X @ X.T, (X * X).sum(axis=1) / 2
    labels = rng.integers(0, 3, n).astype(np.int32)
    marks = rng.random((n, n)) < 0.3
    relevant = (marks | marks.T).astype(np.uint8) * np.uint8(128) if masked else None
    _kernels.native.choose_instruction_set(isa)
    try:
        got = lists_of(_kernels.native.NearestLists, dots, half, labels, relevant, 290)
        reversed_ = lists_of(_kernels.native.NearestLists, dots, half, labels, relevant, 57, backwards=True)
    finally:
        _kernels.native.choose_instruction_set("")
    twin = lists_of(twins.NearestLists, dots, half, labels, relevant, 290)
    twin_reversed = lists_of(twins.NearestLists, dots, half, labels, relevant, 57, backwards=True)
    for ours, other, *any_order in zip(got, twin, reversed_, twin_reversed, strict=True):
        np.testing.assert_array_equal(ours, other)
        assert ours.dtype == other.dtype
        for lists in any_order:
            np.testing.assert_array_equal(ours, lists)


KERNELS = [pytest.param("native", marks=pytest.mark.native)] * bool(ISAS) + ["twin"]


@pytest.mark.parametrize("which", KERNELS)
def test_calls_that_would_leave_the_arrays_are_refused(which):
    kernel = (twins if which == "twin" else _kernels.native).NearestLists
    half, labels = np.zeros(5, dtype=np.float32), np.zeros(5, dtype=np.int32)
    for args in ((half, labels[:4], 1, 1), (half, labels, -1, 1), (half, labels, 1, 6)):
        with pytest.raises(ValueError, match=r"n_near|n_far|labels"):
            kernel(*args)
    lists = kernel(half, labels, 2, 2)
    dots, marks = np.zeros((2, 2), dtype=np.float32), np.zeros((2, 1), dtype=np.uint8)
    for row, column in ((-1, -1), (4, 4), (0, 4), (0, 1), (2, 0), (2**40, 2**40)):
        with pytest.raises(ValueError, match=r"row|column|diagonal"):
            lists.update(dots, row, column, None)
    with pytest.raises(ValueError, match="relevant"):
        lists.update(dots, 0, 0, marks)
    with pytest.raises(ValueError, match="dots"):
        lists.update(np.zeros((6, 1), dtype=np.float32), 0, 0, None)


def near_a_plane(n=300, d=70, whole=False):
    """Items near a plane of 5 axes, twice as far apart along the first, some of them twice."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, 5)) * [2, 1, 1, 1, 1] @ rng.normal(size=(5, d)) + 0.3 * rng.normal(size=(n, d))
    X[n // 2 : n // 2 + 20] = X[:20]
    return np.rint(4 * X) if whole else X


@pytest.fixture
def leading(monkeypatch):
    """Leading axes wherever they can be had, and how many products were finished in each block."""
    finished = []
    monkeypatch.setattr(neighbor_bounds, "LEADING_FROM", (2, 2))
    monkeypatch.setattr(neighbor_bounds, "LEADING_MOST", 1.0)

    def counting(kernel):
        class Counting:
            def __init__(self, *args):
                self.lists = kernel(*args)
                self.update, self.near, self.far = self.lists.update, self.lists.near, self.lists.far
                self.begin = self.lists.begin

            def update_leading(self, *args, **bounds):
                finished.append(self.lists.update_leading(*args, **bounds) / (2 * args[0].size))
                return finished[-1] * (2 * args[0].size)

        return Counting

    return counting, finished


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("labelled", [True, False, "several"])
def test_leading_axes_give_the_same_neighbours(engine, leading, whole, labelled, monkeypatch):
    counting, finished = leading
    monkeypatch.setattr(blocks, "BLOCK", 45)
    monkeypatch.setattr(neighbor_bounds, "NEIGHBORHOOD", 40)
    monkeypatch.setattr(blocks, "FINISHED_MOST", 1.0)
    monkeypatch.setattr(_kernels, "NearestLists", counting(_kernels.NearestLists))
    X = near_a_plane(whole=whole)
    rng = np.random.default_rng(1)
    relevance = {True: rng.integers(0, 3, 300), False: None, "several": rng.random((300, 3)) < 0.4}[labelled]
    for n_threads in (1, 2, 5):
        finished.clear()
        check(X, relevance, 5, 0 if relevance is None else 4, n_threads)
        assert 0 < np.mean(finished) < 0.7  # it left out some, or it would not be worth its name
        assert len(finished) == 28  # every block


@pytest.mark.parametrize("n_threads", [1, 3, 5])
def test_blocks_in_which_leading_axes_tell_little_are_multiplied_whole(engine, leading, monkeypatch, n_threads):
    counting, finished = leading
    monkeypatch.setattr(blocks, "WHOLE_ROUNDS", 4)
    monkeypatch.setattr(blocks, "BLOCK", 45)
    monkeypatch.setattr(blocks, "FINISHED_MOST", 0.0)
    monkeypatch.setattr(_kernels, "NearestLists", counting(_kernels.NearestLists))
    check(near_a_plane(), np.arange(300) % 3, 5, 4, n_threads)
    taken = list(rounds(7, {1: 4, 3: 6, 5: 5}[n_threads]))
    assert len(finished) == sum(len(pairs) for pairs in taken[::5])  # of a round, and of each fifth after it


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_workers_raise_what_their_work_raises_and_leave_blas_as_it_was(n_threads):
    before = blas_threads()
    with pytest.raises(ZeroDivisionError), Workers(n_threads) as workers:
        workers.each(lambda part: 1 // part, [1, 0, 2])
    assert blas_threads() == before
    inside = []
    with Workers(n_threads) as workers, ThreadPoolExecutor(1) as other:
        other.submit(lambda: inside.extend(blas_threads())).result()
    with ThreadPoolExecutor(1) as other:  # another thread may limit BLAS afterwards
        other.submit(_limited, n_threads, inside).result()
    assert set(inside) == {1}
    assert blas_threads() == before


def _limited(n_threads, seen):
    with Workers(n_threads):
        seen.extend(blas_threads())


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(("d", "n_leading", "p"), [(1, 1, 1), (33, 3, 5), (70, 32, 32), (70, 32, 70), (784, 64, 255)])
def test_products_over_leading_axes_bound_whole_products_from_above(d, n_leading, p, scale):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(120, min(d, 7))) @ rng.normal(size=(min(d, 7), d)) * np.exp(2 * rng.normal(size=(120, 1)))
    X32, squares = DenseItems(X * scale).singles()
    exact = X32.astype(np.longdouble)
    skewed = np.linalg.qr(rng.normal(size=(d, p)))[0] + 1e-9 * rng.normal(size=(d, p))
    principal = np.linalg.svd(X32.astype(np.float64), full_matrices=False)[2][
        :p
    ].T  # nothing remains: r is all rounding
    for V in (skewed, principal):
        with Workers(2) as workers:
            axes = neighbor_bounds.LeadingAxes(
                X32, squares, np.ascontiguousarray(V), min(n_leading, V.shape[1]), workers
            )
        few = axes.axes @ axes.axes.T
        more = few - np.outer(axes.rest, axes.rest) + axes.more @ axes.more.T
        assert np.all(few >= exact @ exact.T)
        assert np.all(more >= exact @ exact.T)
        assert np.all(more <= few + 1e-5 * np.outer(np.sqrt(squares), np.sqrt(squares)))  # it is not the looser one
        assert np.all(axes.low < squares / 2)


@pytest.mark.native
@pytest.mark.skipif(not ISAS, reason="the native extension was not built")
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("n", [1, 17, 33, 300, 600])
@pytest.mark.parametrize(("d", "masked"), [(1, False), (16, True), (65, False), (147, True)])
def test_native_lists_from_bounds_equal_the_twin(isa, n, d, masked):
    rng = np.random.default_rng(n)
    X = rng.integers(0, 4, (n, d)).astype(np.float32)
    half = (X * X).sum(axis=1) / 2
    rest, more = rng.integers(3, 9, n).astype(np.float32), rng.integers(0, 2, (n, d // 3)).astype(np.float32)
    bounds = X @ X.T + np.maximum(0, np.outer(rest, rest) - more @ more.T) + rng.integers(0, 3, (n, 1))
    labels = rng.integers(0, 3, n).astype(np.int32)
    relevant = np.ones((n, n), dtype=np.uint8) if masked else None
    zeros = np.zeros(n, dtype=np.float32)
    counts = []

    def from_bounds(kernel, rest=rest, more=more):
        arrays = X, half, zeros, rest, more
        found, n_finished = kernel(half, labels, min(4, n), min(3, n)), 0
        for row in range(0, n, 290):
            for column in range(row, n, 290):
                some = slice(row, row + 290), slice(column, column + 290)
                marks = None if relevant is None else np.ascontiguousarray(relevant[some])
                block = np.ascontiguousarray(bounds[some], dtype=np.float32)
                n_finished += found.update_leading(block, row, column, marks, *arrays)
        assert 0 <= n_finished <= 2 * bounds.size
        counts.append(n_finished)
        return *found.near(), *found.far()

    _kernels.native.choose_instruction_set(isa)
    try:
        got = from_bounds(_kernels.native.NearestLists)
        if n > 100 and d > 10:  # what `rest` and `more` tell spares products
            from_bounds(_kernels.native.NearestLists, zeros, np.zeros_like(more))
            assert counts[0] < counts[1]
    finally:
        _kernels.native.choose_instruction_set("")
    whole = lists_of(twins.NearestLists, X @ X.T, half, labels, relevant, 290)
    for ours, twin, plain in zip(got, from_bounds(twins.NearestLists), whole, strict=True):
        np.testing.assert_array_equal(ours, twin)
        np.testing.assert_array_equal(ours, plain)


@pytest.mark.parametrize("which", KERNELS)
def test_bounds_that_do_not_fit_the_items_are_refused(which):
    kernel = (twins if which == "twin" else _kernels.native).NearestLists
    five, X = np.zeros(5, dtype=np.float32), np.zeros((5, 3), dtype=np.float32)
    lists, dots = kernel(five, np.zeros(5, dtype=np.int32), 2, 2), np.zeros((5, 5), dtype=np.float32)
    right = {"items": X, "low": five, "extra": five, "rest": five, "more": X}
    for name, array in right.items():
        with pytest.raises(ValueError, match=name):
            lists.update_leading(dots, 0, 0, None, **(right | {name: array[:4]}))
    with pytest.raises(ValueError, match="row"):
        lists.update_leading(dots, 1, 1, None, **right)
    for near, far in ((five[:4], five), (five, five[:4])):
        with pytest.raises(ValueError, match="near and far"):
            lists.begin(near, far)


@pytest.mark.parametrize("which", KERNELS)
def test_lists_begin_below_what_they_are_told(which):
    kernel = (twins if which == "twin" else _kernels.native).NearestLists
    X = np.arange(6, dtype=np.float32)[:, None]
    lists = kernel(X[:, 0] ** 2 / 2, np.zeros(6, dtype=np.int32), 2, 0)
    lists.begin(np.array([np.inf, 0.5, 0, 0, 0, -11], dtype=np.float32), np.zeros(6, dtype=np.float32))
    lists.update(X @ X.T, 0, 0, None)
    scores, ids = lists.near()
    assert ids.tolist() == [[1, 2], [0, 2], [1, 3], [2, 4], [3, 5], [4, -1]]
    assert scores[5].tolist() == [-12, -11]


@pytest.mark.parametrize("n", range(12))
@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_rounds_have_every_pair_once_and_share_no_number(n, width):
    seen = []
    for pairs in rounds(n, width):
        numbers = [number for pair in pairs for number in set(pair)]
        assert len(numbers) == len(set(numbers))
        seen += pairs
    assert sorted(seen) == [(i, j) for i in range(n) for j in range(i, n)]


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 9), st.integers(0, 9), st.integers(0, 99))
def test_thresholds_lie_above_enough_scores_and_not_far(n, size, n_near, n_far, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 6)), rng.integers(0, 3, n)
    X32, squares = DenseItems(X).singles()
    with pytest.MonkeyPatch.context() as patch, Workers(2) as workers:
        patch.setattr(neighbor_bounds, "NEIGHBORHOOD", size)
        got = neighbor_bounds.thresholds(X32, squares, X32, Labels(y), [min(n_near, n), min(n_far, n)], workers)
    groups = neighbor_bounds.neighborhoods(X32, size)
    assert sorted(np.concatenate(groups).tolist()) == list(range(n))
    assert max(group.size for group in groups) <= size
    scores = squares / 2 - X32.astype(np.float64) @ X32.astype(np.float64).T
    for group in groups:
        for i in group:
            for limit, kind, k in zip(got, (True, False), (n_near, n_far), strict=True):
                others = [j for j in group if j != i and (y[j] == y[i]) == kind]
                enough = np.sort(scores[i, others])[k - 1 : k] if k else []
                assert limit[i] == np.inf if len(enough) == 0 else enough[0] < limit[i] < enough[0] + 1e-5
