"""The estimator: scikit-learn's rules, every way to fit, every parameter."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cghash import CGHash
from cghash.codes import unpack, weighted_hamming
from cghash.criteria import evaluate
from cghash.exceptions import FewerBitsWarning, InvalidInputError
from cghash.learning.families import FAMILIES
from cghash.learning.result import STATUSES
from cghash.learning.triplets import from_lists

pytestmark = [pytest.mark.core, pytest.mark.portable, pytest.mark.native]

DIGITS, LABELS = load_digits(return_X_y=True)
X, Y = DIGITS[:150], LABELS[:150]
NEW = DIGITS[150:250]
TRIPLETS = np.array([(i, j, k) for i, j, k in itertools.permutations(range(40), 3) if Y[i] == Y[j] != Y[k]])[::7]


def hasher(n_bits=4, **changes):
    return CGHash(n_bits, **({"C": 1e-3, "n_neighbors": 3, "random_state": 0} | changes))


def satisfied(model, X, triplets, weights=None):
    """Share of triplets with d(anchor, near) < d(anchor, far), by hand."""
    bits = model.transform(X).astype(float)

    def distances(i, j):
        return np.abs(bits[i] - bits[j]) @ model.weights_

    a, near, far = np.asarray(triplets).T
    return np.average(distances(a, near) < distances(a, far), weights=weights)


# scikit-learn's own checks; those that ask for an optional set-up would only be skipped


def checks(estimators):
    mark = parametrize_with_checks(estimators)
    kept = [
        (estimator, check)
        for estimator, check in mark.args[1]
        if "array_api" not in getattr(check, "func", check).__name__
    ]
    return pytest.mark.parametrize(("estimator", "check"), kept, ids=mark.kwargs["ids"])


@pytest.mark.lengthy
@checks([CGHash(n_bits=2, n_neighbors=2, hash_function=family) for family in FAMILIES])
def test_estimator_keeps_the_rules_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerBitsWarning)
        check(estimator)


def test_pipeline_and_grid_search_over_c():
    pipeline = make_pipeline(StandardScaler(), hasher())
    search = GridSearchCV(pipeline, {"cghash__C": [1e-4, 1e-2]}, cv=2).fit(X, Y)
    assert search.best_params_["cghash__C"] in (1e-4, 1e-2)
    assert search.best_score_ > 0.55
    assert search.transform(NEW).shape == (100, 4)


def test_clone_and_set_params_carry_every_parameter():
    model = hasher(loss="hinge", hash_function="stump").fit(X, Y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "functions_")
    assert copy.set_params(n_bits=2, sampling="classes").fit(X, Y).n_bits_ == 2
    assert copy.sampling == "classes"
    assert model.n_bits_ == 4


# Kinds of X


def test_pandas_output_names_the_bits():
    frame = hasher().set_output(transform="pandas").fit(X, Y).transform(NEW)
    assert list(frame.columns) == ["cghash0", "cghash1", "cghash2", "cghash3"]
    assert (frame.dtypes == np.uint8).all()
    np.testing.assert_array_equal(frame, hasher().fit(X, Y).transform(NEW))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_bring_feature_names_that_must_return(frame):
    names = [f"pixel{i}" for i in range(64)]
    table = frame(X, columns=names) if frame is pd.DataFrame else frame(X, schema=names)
    model = hasher().fit(table, Y)
    assert list(model.feature_names_in_) == names
    np.testing.assert_array_equal(model.transform(table), hasher().fit(X, Y).transform(X))
    other = table.rename(columns={"pixel3": "x"}) if frame is pd.DataFrame else table.rename({"pixel3": "x"})
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*x"):
        model.transform(other)


@pytest.mark.lengthy
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "kind", ["float32", "F order", "strided", "read-only", "integers", "bytes", "halves", "list", "memory map"]
)
def test_whatever_holds_the_items_the_codes_are_the_same(family, kind, tmp_path):
    np.save(tmp_path / "X.npy", X)
    frozen = X.copy()
    frozen.flags.writeable = False
    same = {
        "float32": X.astype(np.float32),
        "F order": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "read-only": frozen,
        "integers": X.astype(np.int32),
        "bytes": X.astype(np.int8),
        "halves": X.astype(np.float16),
        "list": X.tolist(),
        "memory map": np.load(tmp_path / "X.npy", mmap_mode="r"),
    }[kind]
    model = hasher(3, hash_function=family).fit(same, Y)
    np.testing.assert_array_equal(model.transform(same), hasher(3, hash_function=family).fit(X, Y).transform(X))


@pytest.mark.parametrize("family", FAMILIES)
def test_items_labels_and_comparisons_are_left_as_they_were(family):
    data, labels, rows = X.copy(), Y.copy(), TRIPLETS.copy()
    hasher(2, hash_function=family).fit(data, labels).score(data, labels)
    hasher(2, hash_function=family).fit(data, triplets=rows).encode(data)
    np.testing.assert_array_equal(data, X)
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_array_equal(rows, TRIPLETS)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array])
def test_sparse_items_serve_linear_functions_as_dense_ones_do(kind):
    model, dense = hasher().fit(kind(X), Y), hasher().fit(X, Y)
    np.testing.assert_array_equal(model.transform(kind(X)), model.transform(X))
    assert model.score(kind(X), Y) == pytest.approx(model.score(X, Y))
    assert model.score(X, Y) == pytest.approx(dense.score(X, Y), abs=0.05)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "linear"])
def test_sparse_items_are_refused_where_functions_need_dense_ones(family):
    with pytest.raises(TypeError, match=r"(?i)sparse data was passed.*dense"):
        hasher(hash_function=family).fit(sp.csr_matrix(X), Y)


# What comes out


@pytest.mark.parametrize("family", FAMILIES)
def test_transform_gives_bits_and_encode_packs_them_little_endian(family):
    model = hasher(11, hash_function=family).fit(X, Y)
    bits, codes = model.transform(NEW), model.encode(NEW)
    assert bits.shape == (100, 11)
    assert bits.dtype == codes.dtype == np.uint8
    assert set(np.unique(bits)) == {0, 1}
    assert codes.shape == (100, 2)
    for j in range(11):
        np.testing.assert_array_equal(codes[:, j // 8] >> (j % 8) & 1, bits[:, j])
    np.testing.assert_array_equal(unpack(codes, 11), bits)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("family", FAMILIES)
def test_truncated_model_is_the_model_of_fewer_bits(family, loss):
    longer = hasher(6, hash_function=family, loss=loss).fit(X, Y)
    shorter, fitted = longer.truncate(3), hasher(3, hash_function=family, loss=loss).fit(X, Y)
    np.testing.assert_array_equal(shorter.weights_, fitted.weights_)
    np.testing.assert_array_equal(shorter.transform(NEW), fitted.transform(NEW))
    for name, array in fitted.functions_.arrays().items():
        if family != "tree":  # whose nodes are padded to the largest tree
            np.testing.assert_array_equal(shorter.functions_.arrays()[name], array)
    assert shorter.result_.objective == fitted.result_.objective
    assert shorter.n_bits_ == len(shorter.result_.columns) == 3
    assert longer.n_bits_ == len(longer.weights_) == 6


@pytest.mark.parametrize("m", [0, 5, 2.0, True])
def test_truncate_to_what_is_not_there_is_refused(m):
    with pytest.raises(InvalidInputError, match="m must be"):
        hasher(4).fit(X, Y).truncate(m)


def test_score_is_the_share_of_triplets_satisfied():
    model = hasher().fit(X, Y)
    share = model.score(X, triplets=TRIPLETS)
    assert 0.5 < share < 1
    assert share == pytest.approx(satisfied(model, X, TRIPLETS))
    weights = np.linspace(0, 1, len(TRIPLETS))
    weighted = model.score(X, triplets=TRIPLETS, triplet_weights=weights)
    assert weighted == pytest.approx(satisfied(model, X, TRIPLETS, weights))
    assert weighted != share


def test_score_by_labels_rises_with_bits_and_by_neighbours_is_a_share():
    model = hasher(16, hash_function="linear").fit(X, Y)
    assert model.truncate(1).score(X, Y) < model.score(X, Y)
    assert 0.9 < model.score(X, Y) <= 1
    assert 0 < model.score(NEW) < 1
    assert model.score(NEW, LABELS[150:250]) == model.score(NEW, LABELS[150:250])


# Ways to fit


def test_labels_of_any_kind_mean_the_same():
    codes = hasher().fit(X, Y).encode(X)
    for labels in (Y.astype(str), Y.astype(float), Y.reshape(-1, 1), pd.Series(Y), [f"class {c}" for c in Y]):
        np.testing.assert_array_equal(hasher().fit(X, labels).encode(X), codes)


def test_neighbours_serve_where_nothing_else_is_given():
    model = hasher(24).fit(X)
    distances = weighted_hamming(model.transform(X), model.transform(X), model.weights_)
    true = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(true, np.inf)
    nearest = np.argmin(true, axis=1)
    assert np.mean(distances[np.arange(150), nearest] < np.median(distances, axis=1)) > 0.95


@pytest.mark.parametrize(
    ("told", "as_if"),
    [
        ({}, {"sampling": "classes", "C": 0.1}),
        ({"y": Y}, {"sampling": "mixed", "C": 0.01}),
        ({"triplets": TRIPLETS}, {"C": 0.01}),
    ],
    ids=["neither", "labels", "triplets"],
)
def test_defaults_of_sampling_and_c_depend_on_what_is_told(told, as_if):
    free, fixed = (CGHash(6, random_state=0, **chosen).fit(X, **told) for chosen in ({}, as_if))
    assert free.encode(X).tobytes() == fixed.encode(X).tobytes()
    assert free.weights_.tobytes() == fixed.weights_.tobytes()
    assert (free.C, free.sampling) == (None, None)


@pytest.mark.lengthy
def test_without_labels_items_of_a_kind_get_near_codes():
    queries, database = DIGITS[1297:], DIGITS[:1297]
    found = {}
    for words, chosen in {"default": {}, "next ones": {"sampling": "neighbors", "C": 0.01}}.items():
        model = CGHash(32, random_state=0, **chosen).fit(database)
        codes = model.transform(queries), model.transform(database)
        found[words] = evaluate(*codes, model.weights_, LABELS[1297:], LABELS[:1297])["map"]
    assert found["default"] > 0.7
    assert found["default"] > found["next ones"] + 0.2


def test_own_comparisons_are_learned():
    model = hasher(16).fit(X, triplets=TRIPLETS)
    assert satisfied(model, X, TRIPLETS) > 0.97
    assert model.result_.n_triplets == len(TRIPLETS)


def test_weight_of_a_triplet_decides_between_contradictions():
    rows = np.array([[0, 1, 2], [0, 2, 1]])
    for weights, share in ([1, 3], 0.75), ([3, 1], 0.75):
        model = hasher(1).fit(X, triplets=rows, triplet_weights=weights)
        assert model.score(X, triplets=rows, triplet_weights=weights) == pytest.approx(share)


@pytest.mark.parametrize("regularizer", ["l1", "linf"])
def test_duplets_draw_their_items_together(regularizer):
    rng = np.random.default_rng(0)
    duplets = np.array([(i, j) for i, j in rng.integers(0, 150, (80, 2)) if Y[i] != Y[j]])
    how = {"regularizer": regularizer, "C": 0.3}
    plain, joined = hasher(12, **how).fit(X, Y), hasher(12, **how).fit(X, Y, duplets=duplets)

    def spread(model):
        bits = model.transform(X).astype(float)
        d = np.abs(bits[duplets[:, 0]] - bits[duplets[:, 1]]) @ model.weights_
        whole = weighted_hamming(model.transform(X), model.transform(X), model.weights_)
        return d.mean() / whole.mean()

    assert spread(joined) < 0.8 * spread(plain)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_items_of_several_labels_are_near_where_they_share_one(kind):
    tags = np.stack([Y < 5, Y % 2 == 0, Y == 7], axis=1).astype(int)
    model = hasher(12).fit(X, kind(tags))
    shared = tags @ tags.T > 0
    distances = weighted_hamming(model.transform(X), model.transform(X), model.weights_)
    assert distances[shared].mean() < 0.8 * distances[~shared].mean()


def test_classifier_as_hash_function():
    model = hasher(3, hash_function=LogisticRegression(C=1e-4)).fit(X, Y)
    assert model.n_bits_ == 3
    assert model.score(X, Y) > 0.7


# Every parameter does something


def codes_of(**changes):
    return hasher(**changes).fit(X, Y).encode(X)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_bits": 9},
        {"loss": "exponential"},
        {"regularizer": "linf"},
        {"hash_function": "stump"},
        {"sampling": "classes"},
        {"n_neighbors": 1},
        {"method": "paper"},
        {"random_state": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_parameter_changes_the_codes(changes):
    assert not np.array_equal(codes_of(**changes), codes_of())


def test_larger_c_gives_smaller_weights():
    assert hasher(C=1e-1).fit(X, Y).weights_.sum() < 0.8 * hasher(C=1e-4).fit(X, Y).weights_.sum()
    bounded = hasher(C=0.25, regularizer="linf").fit(X, Y).weights_
    assert bounded.max() == pytest.approx(0.25)


def test_larger_tolerance_stops_earlier():
    with pytest.warns(FewerBitsWarning):
        model = hasher(32, hash_function="stump", tol=0.05).fit(X, Y)
    assert model.n_bits_ < 32
    assert model.result_.final_violation <= 0.05


def test_time_limit_ends_a_fit_after_the_bit_at_work():
    model = hasher(500, time_limit=0).fit(X, Y)
    assert model.n_bits_ == 1
    assert model.result_.status == "time_limit"


def test_verbose_talks_to_stderr_alone(capsys):
    hasher(3).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    hasher(3, verbose=2).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(":")[1].strip() for line in err.splitlines()] == ["bit 1/3", "bit 2/3", "bit 3/3"]
    hasher(30, verbose=1).fit(X, Y)
    assert 1 < len(capsys.readouterr().err.splitlines()) < 15


@pytest.mark.parametrize("family", FAMILIES)
def test_number_of_threads_does_not_change_the_codes(family, monkeypatch):
    import cghash.learning.cpu.columns as module

    seen = []
    evaluate = module.Columns.evaluate

    def spy(self, w):
        seen.append(self.n_threads)
        return evaluate(self, w)

    monkeypatch.setattr(module.Columns, "evaluate", spy)
    np.testing.assert_array_equal(codes_of(hash_function=family, n_jobs=1), codes_of(hash_function=family, n_jobs=3))
    assert set(seen) == {1, 3}


def test_checkpoint_writes_its_file(tmp_path):
    hasher(2, checkpoint=tmp_path / "fit").fit(X, Y)
    assert (tmp_path / "fit").stat().st_size > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_same_random_state_gives_the_same_model(family):
    first, second = (hasher(hash_function=family).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.encode(NEW), second.encode(NEW))
    np.testing.assert_array_equal(first.weights_, second.weights_)
    state = hasher(hash_function=family, random_state=np.random.RandomState(0)).fit(X, Y)
    np.testing.assert_array_equal(state.encode(NEW), first.encode(NEW))


# What a fit tells


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic", "exponential"])
@pytest.mark.parametrize("regularizer", ["l1", "linf"])
def test_result_holds_finite_numbers_for_each_column(loss, regularizer):
    result = hasher(5, loss=loss, regularizer=regularizer, C=1e-2).fit(X, Y).result_
    history = result.history
    for values in history.values():
        assert values.shape == (5,)
        assert np.isfinite(values).all()
    assert np.all(np.diff(history["objective"]) <= 1e-3 * history["objective"][:-1])
    assert np.all(history["bound"] <= history["objective"] * (1 + 1e-9))
    assert np.all((history["satisfied"] >= 0) & (history["satisfied"] <= 1))
    assert np.all(history["live_triplets"] <= result.n_triplets)
    assert (result.loss, result.regularizer, result.family) == (loss, regularizer, "linear")
    assert result.status == "n_bits"
    assert STATUSES["n_bits"] in result.message
    assert "5 bits" in result.message


def test_bits_of_weight_zero_are_reported():
    rows = np.arange(18).reshape(6, 3)  # six triplets that have no item in common
    items = np.zeros((18, 3))
    for feature, held in enumerate([(0, 1, 2, 3), (0, 1, 4), (2, 3, 5)]):  # the triplets that a feature satisfies
        items[rows[list(held), 2], feature] = 1
    model = hasher(3, C=1e-2, loss="hinge", hash_function="stump").fit(items, triplets=rows)
    np.testing.assert_allclose(model.weights_, [0, 1, 1], atol=1e-9)  # the last two serve all that the first did
    assert model.result_.zero_weights == 1
    assert "1 of the bits have weight zero" in model.result_.message


def test_more_bits_than_can_be_learned_warns_and_keeps_those_found():
    line = np.arange(8.0).reshape(-1, 1)
    with pytest.warns(FewerBitsWarning, match=r"learned \d of the 64 bits asked for.*smaller C"):
        model = hasher(64, hash_function="stump").fit(line, [0, 0, 0, 0, 1, 1, 1, 1])
    assert 1 <= model.n_bits_ <= 7  # as many stumps as gaps
    assert model.result_.status == "optimal"
    assert model.transform(line).shape == (8, model.n_bits_)


def test_sparse_items_with_more_features_than_a_gram_matrix_should_have():
    rng = np.random.default_rng(0)
    X = sp.random(60, 20_000, density=0.01, random_state=0, format="csr")
    y = rng.integers(0, 2, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerBitsWarning)  # so many features part two classes with one bit
        model = CGHash(4, random_state=0, sampling="classes").fit(X, y)
    assert model.score(X, y) > 0.9


def test_bound_under_linf_stays_between_the_least_loss_and_the_objective():
    X, y = load_digits(return_X_y=True)
    for family in ("stump", "linear"):
        result = CGHash(5, regularizer="linf", hash_function=family, random_state=0).fit(X[:200], y[:200]).result_
        assert np.all(result.history["bound"] >= 0)
        assert np.all(result.history["bound"] <= result.history["objective"])


def test_time_limit_counts_from_the_call_and_more_bits_than_fit_a_code_are_refused(monkeypatch):
    X, y = load_digits(return_X_y=True)
    ticks = iter(range(0, 10_000, 10))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))  # every look at the clock is ten seconds later
    assert CGHash(20, time_limit=1, random_state=0).fit(X[:100], y[:100]).n_bits_ == 1
    with pytest.raises(InvalidInputError, match="n_bits must be at most"):
        CGHash(100_000).fit(X[:100], y[:100])


def test_triplet_set_is_learned_as_its_triplets_written_out():
    X = load_digits().data[:60]
    others = np.array([np.random.default_rng(row).choice(np.delete(np.arange(60), row), 4, False) for row in range(60)])
    blocks = from_lists(others[:, :2], others[:, 2:], n_items=60)  # 240 triplets of equal weight
    of_blocks = hasher(3).fit(X, triplets=blocks)
    of_rows = hasher(3).fit(X, triplets=blocks.to_rows())
    np.testing.assert_array_equal(of_blocks.encode(X), of_rows.encode(X))
    np.testing.assert_allclose(of_blocks.weights_, of_rows.weights_, rtol=1e-6)
    with pytest.raises(InvalidInputError, match="of the 50 items of X, got a set over 60"):
        hasher().fit(X[:50], triplets=blocks)
    with pytest.raises(InvalidInputError, match="weights of its own"):
        hasher().fit(X, triplets=blocks, triplet_weights=np.ones(240))


def test_every_bit_is_told_of_and_whoever_is_told_may_stop_the_fit():
    X, y = load_digits(return_X_y=True)
    seen = []
    whole = CGHash(5, random_state=0).fit(X[:200], y[:200], on_bit=lambda bit, record: seen.append((bit, record)))
    assert [bit for bit, _ in seen] == [1, 2, 3, 4, 5]
    assert [record for _, record in seen] == whole.result_.columns

    def stop_at_two(bit, record):
        if bit == 2:
            raise KeyboardInterrupt

    stopped = CGHash(5, random_state=0).fit(X[:200], y[:200], on_bit=stop_at_two)
    assert stopped.result_.status == "interrupted"
    np.testing.assert_array_equal(stopped.encode(X), whole.truncate(2).encode(X))
