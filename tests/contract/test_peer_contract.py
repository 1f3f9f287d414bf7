"""What every peer must do, whatever its method: scikit-learn's rules, codes, labels, files, truncation, odd data."""

from __future__ import annotations

import functools
import inspect
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from cghash import peers, storage
from cghash.codes import pack, weighted_hamming
from cghash.criteria import average_precision, mean_over_queries
from cghash.estimator import load
from cghash.exceptions import CGHashError, CGHashWarning, FewerBitsWarning, FormatError, InvalidInputError
from cghash.peers.peer_files import KIND, VERSION

pytestmark = [pytest.mark.portable, pytest.mark.filterwarnings("ignore::cghash.exceptions.CGHashWarning")]

DIGITS, LABELS = load_digits(return_X_y=True)
X, Y = DIGITS[:200], LABELS[:200]
NEW = DIGITS[200:260]
SEVERAL = np.stack([Y % 2 == 0, Y % 3 == 0, Y >= 5], axis=1).astype(int)  # multi-label indicators


@dataclass
class Case:
    """What the contract must know of a peer beside its signature."""

    changes: dict[str, Any] = field(default_factory=dict)  # of each parameter: another value, or (others, it)
    wrong: dict[str, Any] = field(default_factory=dict)  # of each parameter: a value to refuse
    fast: dict[str, Any] = field(default_factory=dict)  # parameters that make a fit quick
    floor: float = 0.25  # mAP with 32 bits on digits, where chance is 0.1
    n_bits: int = 8


CASES = {
    "LSH": Case({"center": False}),
    "LSI": Case(floor=0.2),
    "LCH": Case(floor=0.2),
    "SPH": Case(),
    "SPLH": Case(
        {"eta": 10.0, "alpha": 50.0},
        {"n_labelled": 1, "eta": -1.0, "alpha": float("nan")},
        fast={"n_labelled": 100},
        floor=0.2,
    ),
    "SSC": Case(
        {"n_pairs": 50, "n_neighbors": 2, "n_thresholds": 2, "max_features": 5},
        {"n_pairs": 1, "n_neighbors": 0, "n_thresholds": 256, "max_features": 0},
        floor=0.3,
    ),
    "STH": Case(
        {"n_neighbors": 5, "weights": "heat", "C": 1e-3},
        {"n_neighbors": 0, "weights": "none", "C": 0.0},
        floor=0.3,
    ),
    "AGH": Case(
        {"layers": 1, "n_anchors": 20, "n_nearest": 4},
        {"layers": 3, "n_anchors": 1, "n_nearest": 0},
        fast={"n_anchors": 50},
        floor=0.3,
    ),
    "BRE": Case(
        {"n_landmarks": 10, "n_train": 50, "n_pairs": 10, "n_sweeps": 0},
        {"n_landmarks": 0, "n_train": 1, "n_pairs": 1, "n_sweeps": -1},
    ),
    "ITQ": Case(
        {"projection": "pca", "n_iter": 1, "regularization": 1.0},
        {"projection": "ica", "n_iter": 0, "regularization": 0.0},
        floor=0.5,
    ),
    "PCAH": Case(floor=0.2),
    "KLSH": Case(
        {"kernel": "chi2", "gamma": 1e-4, "n_landmarks": 20, "n_drawn": 3},
        {"kernel": "cubic", "gamma": 0.0, "n_landmarks": 1, "n_drawn": 0},
    ),
    "LDAHash": Case(
        {"projection": "dif", "regularization": 1.0, "alpha": ({"projection": "dif"}, 0.0)},
        {"projection": "pca", "regularization": -1.0, "alpha": -1.0},
        floor=0.3,
    ),
    "SignBits": Case({"center": True}, floor=0.15),  # pixels are not negative
    "KSH": Case(
        {"n_labelled": 100, "gamma": 1e-4, "n_iter": 1},
        {"n_anchors": 0, "n_labelled": 1, "gamma": 0.0, "n_iter": 0},
        {"n_anchors": 60},
        floor=0.7,
    ),
    "SDH": Case(
        {"n_anchors": 20, "gamma": 1e-4, "lam": 100.0, "nu": 10.0, "ridge": 1.0, "n_iter": 1},
        {"n_anchors": 0, "gamma": 0.0, "lam": -1.0, "nu": 0.0, "ridge": float("nan"), "n_iter": 0},
        floor=0.8,
    ),
    "FastHash": Case(
        {"max_depth": 2, "n_tried": 1},
        {"n_trees": 0, "max_depth": 0, "n_tried": 1.5},
        {"n_trees": 5},
        floor=0.7,
    ),
    "PQ": Case(floor=0.5),
    "RaBitQ": Case(floor=0.5, n_bits=80),
}
NAMES = [name for name in peers.PEERS if name in CASES]
every_peer = pytest.mark.parametrize("name", NAMES)


def test_every_peer_is_held_to_the_contract():
    assert set(peers.PEERS) <= set(CASES), "say in CASES what the contract must know of a new peer"


def make(name, n_bits=None, **parameters):
    case, kind = CASES[name], getattr(peers, name)
    seed = {"random_state": 0} if "random_state" in inspect.signature(kind).parameters else {}
    return kind(n_bits or case.n_bits, **seed | case.fast | parameters)


@functools.cache
def fitted(name):
    return make(name).fit(X, Y)


def learned(model):
    """The learned attributes by name."""
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def differ(model, other):
    ours, theirs = learned(model), learned(other)
    return ours.keys() != theirs.keys() or any(not np.array_equal(ours[key], theirs[key]) for key in ours)


# scikit-learn's own checks; those that ask for an optional set-up would only be skipped


def checks(estimators):
    mark = parametrize_with_checks(estimators)
    kept = [pair for pair in mark.args[1] if "array_api" not in getattr(pair[1], "func", pair[1]).__name__]
    return pytest.mark.parametrize(("estimator", "check"), kept, ids=mark.kwargs["ids"])


@checks([make(name) for name in NAMES])
def test_estimator_keeps_the_rules_of_scikit_learn(estimator, check):
    check(estimator)


# Codes


@every_peer
def test_codes_are_bits_and_their_packing(name):
    model = fitted(name)
    bits = model.transform(NEW)
    assert bits.shape == (60, model.n_bits_)
    assert bits.dtype == np.uint8
    assert set(np.unique(bits)) <= {0, 1}
    assert 1 <= model.n_bits_ <= model.n_bits
    np.testing.assert_array_equal(model.encode(NEW), pack(bits))
    assert model.weights_.shape == (model.n_bits_,)
    assert np.all(np.isfinite(model.weights_))
    assert model.weights_.min() >= 0
    assert len(model.get_feature_names_out()) == model.n_bits_


@every_peer
def test_distances_to_codes_are_of_the_shape_and_kind_that_is_said(name):
    model = fitted(name)
    D = model.distances(NEW, model.encode(X))
    assert D.shape == (60, 200)
    assert np.all(np.isfinite(D))
    if model.hamming:
        np.testing.assert_array_equal(D, weighted_hamming(model.transform(NEW), model.transform(X), model.weights_))
        found, _ = model.build_index(X).search(model.encode(NEW), k=3)
        np.testing.assert_array_equal(found, np.sort(D, axis=1)[:, :3])
    else:
        with pytest.raises(InvalidInputError, match="FAISS's own Index"):
            model.build_index(X)
    with pytest.raises(InvalidInputError, match="codes"):
        model.distances(NEW, model.encode(X)[:, :-1])


@every_peer
def test_score_is_the_share_of_triplets_that_the_distance_satisfies(name):
    model = fitted(name)
    rng = np.random.default_rng(0)
    triplets = np.array([rng.choice(60, 3, replace=False) for _ in range(50)])
    D = model.distances(NEW, model.encode(NEW))
    anchor, near, far = triplets.T
    assert model.score(NEW, triplets=triplets) == pytest.approx(np.mean(D[anchor, far] > D[anchor, near]))
    assert model.score(X, Y) > 0.5
    with pytest.raises(InvalidInputError, match="pass triplets or y"):
        model.score(X)


@every_peer
def test_same_seed_gives_the_same_model_and_inputs_stay_as_they_were(name):
    items, labels = X.copy(), Y.copy()
    items.flags.writeable = labels.flags.writeable = False
    again = make(name).fit(items, labels)
    assert not differ(again, fitted(name))
    np.testing.assert_array_equal(again.transform(NEW), fitted(name).transform(NEW))
    np.testing.assert_array_equal(items, X)


@every_peer
def test_number_of_blas_threads_does_not_change_a_bit(name):
    items = np.random.default_rng(0).normal(size=(500, 150)).astype(np.float32)  # enough for threads to share sums
    labels = np.arange(500) % 7
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append(make(name).fit(items, labels))
    assert not differ(*found)
    np.testing.assert_array_equal(*(model.transform(items) for model in found))


@every_peer
def test_an_item_gets_the_same_bits_alone_and_among_others(name):
    model = fitted(name)
    for items in (NEW, X[:40]):  # items of the fit are where medians could lie
        alone = np.concatenate([model.transform(item[None]) for item in items])
        np.testing.assert_array_equal(alone, model.transform(items))


@every_peer
def test_single_precision_gives_the_same_bits(name):
    model = fitted(name)
    np.testing.assert_array_equal(model.transform(NEW.astype(np.float32)), model.transform(NEW))
    np.testing.assert_array_equal(model.transform(NEW.astype(np.uint8)), model.transform(NEW))
    single = make(name).fit(X.astype(np.float32), Y)
    assert np.mean(single.transform(NEW) == model.transform(NEW)) > 0.99


@every_peer
def test_items_with_another_number_of_features_are_refused(name):
    with pytest.raises(ValueError, match="63 features"):
        fitted(name).transform(NEW[:, :63])


# Parameters


PARAMETERS = [
    (name, parameter)
    for name in NAMES
    for parameter in inspect.signature(getattr(peers, name)).parameters
    if parameter != "n_bits"
]


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_every_parameter_changes_something(name, parameter):
    if parameter == "random_state":
        changed, beside = 1, {}
    elif parameter in CASES[name].fast:
        changed, beside = inspect.signature(getattr(peers, name)).parameters[parameter].default, {}
    else:
        assert parameter in CASES[name].changes, "say in CASES what else this parameter may be"
        changed = CASES[name].changes[parameter]
        beside, changed = changed if isinstance(changed, tuple) else ({}, changed)
    model = make(name, **beside).fit(X, Y)
    assert differ(make(name, **beside | {parameter: changed}).fit(X, Y), model)


@every_peer
@pytest.mark.parametrize("n_bits", [0, -1, 2.5, "many", None, True, 10**9])
def test_wrong_number_of_bits_is_named(name, n_bits):
    with pytest.raises(InvalidInputError, match="n_bits must be"):
        getattr(peers, name)(n_bits).fit(X, Y)


WRONG = [(name, parameter) for name in NAMES for parameter in CASES[name].wrong]


@pytest.mark.parametrize(("name", "parameter"), WRONG)
def test_wrong_parameters_are_named(name, parameter):
    for value in (CASES[name].wrong[parameter], "nothing of the kind"):
        with pytest.raises(InvalidInputError, match=f"{parameter} must be"):
            make(name, **{parameter: value}).fit(X, Y)


@every_peer
def test_clone_is_not_fitted_and_has_the_same_parameters(name, tmp_path):
    copy = clone(fitted(name))
    assert copy.get_params() == fitted(name).get_params()
    for use in (lambda: copy.transform(X), lambda: copy.truncate(1), lambda: copy.save(tmp_path / "model")):
        with pytest.raises(ValueError, match="not fitted"):
            use()


# Labels


@every_peer
def test_labels_are_used_as_the_peer_says(name):
    model = make(name)
    if model.supervision == "required":
        with pytest.raises(InvalidInputError, match="requires y"):
            model.fit(X)
    elif model.supervision == "none":
        assert not differ(model.fit(X), fitted(name))
    else:
        assert differ(model.fit(X), fitted(name))


@every_peer
def test_labels_may_be_words_or_several_an_item(name):
    words = np.array([f"digit {label}" for label in Y])  # they sort as the digits do
    assert not differ(make(name).fit(X, words), fitted(name))
    several = make(name).fit(X, SEVERAL)
    assert several.transform(NEW).shape == (60, several.n_bits_)
    if several.supervision != "none":
        assert differ(several, fitted(name))


@every_peer
def test_labels_of_another_number_of_items_or_of_one_class_are_refused(name):
    if make(name).supervision == "none":
        return
    with pytest.raises(InvalidInputError, match="200 items"):
        make(name).fit(X, Y[:-1])
    with pytest.raises(CGHashError, match="two classes"):
        make(name).fit(X, np.zeros(200, dtype=int))


# Truncation


@every_peer
def test_shorter_model_is_that_of_a_shorter_fit_or_is_refused(name):
    model = fitted(name)
    if not model.prefixes:
        with pytest.raises(InvalidInputError, match="fit it with n_bits=3"):
            model.truncate(3)
        return
    for m in (1, 3, model.n_bits_):
        shorter = model.truncate(m)
        assert shorter.n_bits_ == m
        np.testing.assert_array_equal(shorter.transform(NEW), make(name, m).fit(X, Y).transform(NEW))
        np.testing.assert_array_equal(shorter.transform(NEW), model.transform(NEW)[:, :m])
        assert shorter.encode(NEW).shape == (60, -(-m // 8))
    for m in (0, model.n_bits_ + 1, 1.5):
        with pytest.raises(InvalidInputError, match="m must be"):
            model.truncate(m)


# Files


@every_peer
def test_saved_model_comes_back_the_same(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "model")
    for loaded in (type(model).load(tmp_path / "model"), load(tmp_path / "model")):
        assert type(loaded) is type(model)
        assert loaded.get_params() == model.get_params()
        assert not differ(loaded, model)
        np.testing.assert_array_equal(loaded.transform(NEW), model.transform(NEW))
        D = model.distances(NEW, model.encode(X))
        np.testing.assert_array_equal(loaded.distances(NEW, loaded.encode(X)), D)
    other = next(other for other in NAMES if other != name)
    with pytest.raises(FormatError, match=f"must be a model of {other}"):
        getattr(peers, other).load(tmp_path / "model")


@every_peer
def test_short_model_comes_back_short(name, tmp_path):
    if fitted(name).prefixes:
        fitted(name).truncate(2).save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert loaded.n_bits_ == 2
        np.testing.assert_array_equal(loaded.transform(NEW), fitted(name).transform(NEW)[:, :2])


@functools.cache
def content(name):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        fitted(name).save(Path(folder) / "model")
        return (Path(folder) / "model").read_bytes()


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_file_is_refused_or_the_damage_does_not_matter(data, tmp_path):
    name = data.draw(st.sampled_from(NAMES))
    whole = content(name)
    first = data.draw(st.integers(0, min(len(whole), 3000)) | st.integers(0, len(whole)))
    last = data.draw(st.integers(first, min(first + 20, len(whole))) | st.just(len(whole)))
    piece = data.draw(st.binary(max_size=20))
    path = tmp_path / "model"
    path.write_bytes(whole[:first] + piece + whole[last:])
    try:
        loaded = load(path)
    except FormatError:
        return
    np.testing.assert_array_equal(loaded.transform(NEW), fitted(name).transform(NEW))


FORGERIES = {
    "cut": lambda a: a[:-1],
    "empty": lambda a: a[:0],
    "flat": lambda a: a.ravel(),
    "turned": lambda a: a.T,
    "one number": lambda a: a.ravel()[:1].reshape(()),
    "deeper": lambda a: a[..., None],
    "whole numbers": lambda a: np.zeros(a.shape, dtype=np.int8),
    "not numbers": lambda a: np.full(a.shape, np.nan, dtype=a.dtype) if a.dtype.kind == "f" else -a,
}


@every_peer
def test_forged_array_is_refused_or_gives_codes(name, tmp_path):
    """The checksum is right: another program wrote it. What is loaded must encode, and not crash."""
    fitted(name).save(tmp_path / "model")
    arrays, about = storage.load(tmp_path / "model", KIND, VERSION)
    own = {key: value for key, value in about.items() if key not in ("format", "version")}
    refused = 0
    for key in arrays:
        for forge in FORGERIES.values():
            forged = arrays | {key: forge(arrays[key])}
            storage.save(tmp_path / "forged", KIND, VERSION, forged, own)
            try:
                loaded = load(tmp_path / "forged")
            except FormatError:
                refused += 1
                continue
            assert loaded.transform(NEW).shape == (60, loaded.n_bits_)
    assert refused >= 2


@every_peer
def test_forged_description_is_refused(name, tmp_path):
    fitted(name).save(tmp_path / "model")
    arrays, about = storage.load(tmp_path / "model", KIND, VERSION)
    own = {key: value for key, value in about.items() if key not in ("format", "version")}
    for change in (
        {"parameters": {"depth": 3}},
        {"parameters": None},
        {"state": {}},
        {"state": own["state"] | {"n_bits_": 0}},
        {"state": own["state"] | {"n_bits_": 10**6}},
        {"state": own["state"] | {"n_bits_": "many"}},
        {"state": own["state"] | {"transform": 1}},
        {"state": own["state"] | {"weights_": 1}},
        {"n_features_in": "many"},
        {"n_features_in": -1},
        {"n_features_in": 3},
        {"n_features_in": 10**40},
        {"parameters": own["parameters"] | {"n_bits": 10**40}},
        {"parameters": own["parameters"] | {"n_bits": [8]}},
        {"state": own["state"] | {"x_": [[]]}},
        {"feature_names_in": ["a"]},
        {"peer": "Nothing"},
        {"peer": None},
    ):
        storage.save(tmp_path / "forged", KIND, VERSION, arrays, own | change)
        with pytest.raises(FormatError):
            load(tmp_path / "forged")


# Odd data


ODD = {
    "constant features": lambda X: np.hstack([X, np.full((len(X), 3), 7.0)]),
    "duplicates": lambda X: np.repeat(X[:20], 10, axis=0),
    "few features": lambda X: X[:, 20:23],
    "few items": lambda X: X[:30],
    "one binary feature": lambda X: (X[:, 20:21] > 5).astype(float),
    "large numbers": lambda X: X * 1e12,
    "small numbers": lambda X: X * 1e-12,
    "below zero": lambda X: X - 20.0,
}


@every_peer
@pytest.mark.parametrize("odd", ODD)
def test_odd_items_give_codes_or_a_clear_error(name, odd):
    items = ODD[odd](X)
    labels = np.repeat(Y[:20], 10) if odd == "duplicates" else Y[: len(items)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model = make(name).fit(items, labels)
        except CGHashError:
            return
        bits = model.transform(items)
    assert bits.shape == (len(items), model.n_bits_)
    if odd == "duplicates" and model.hamming:  # centroids may be equal: a distance does not depend on which is named
        np.testing.assert_array_equal(bits, np.repeat(bits[::10], 10, axis=0))


@every_peer
def test_units_of_the_items_do_not_decide(name):
    """A power of two is exact: the same codes."""
    scaled = make(name).fit(X * 2.0**20, Y)
    if scaled.hamming:
        agreement = np.mean(scaled.transform(NEW * 2.0**20) == fitted(name).transform(NEW))
        assert agreement > 0.99


@every_peer
def test_items_that_are_all_the_same_are_refused_or_get_one_code(name):
    same = np.ones((20, 5))
    try:
        model = make(name).fit(same, np.arange(20) % 2)
    except CGHashError:
        return
    assert len(np.unique(model.encode(same), axis=0)) == 1


@every_peer
def test_more_bits_than_there_are_come_with_a_warning(name):
    items = ODD["few features"](X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CGHashWarning)
        model = make(name, CASES[name].n_bits + 8).fit(items, Y)
    fewer = [str(w.message) for w in caught if issubclass(w.category, FewerBitsWarning)]
    assert bool(fewer) == (model.n_bits_ < model.n_bits)
    assert all(f"{model.n_bits_} of the {model.n_bits} bits" in words for words in fewer)


# Quality


@every_peer
def test_ranking_of_digits_is_better_than_chance(name):
    database, labels, queries, wanted = DIGITS[:500], LABELS[:500], DIGITS[500:620], LABELS[500:620]
    model = make(name, max(32, CASES[name].n_bits)).fit(database, labels)
    D = model.distances(queries, model.encode(database))
    assert mean_over_queries(average_precision(D, wanted[:, None] == labels)) > CASES[name].floor
