"""What `query` must give for every peer and every hash family: codes as `encode`, and weights by the margins."""

from __future__ import annotations

import functools
import inspect
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from cghash import CGHash, Query, load, peers
from cghash.codes import unpack
from cghash.exceptions import InvalidInputError
from cghash.learning.families import FAMILIES
from cghash.learning.families.linear import LinearFunctions

pytestmark = [pytest.mark.portable, pytest.mark.filterwarnings("ignore::cghash.exceptions.CGHashWarning")]

FIXTURES = Path(__file__).parents[1] / "fixtures"
DIGITS, LABELS = load_digits(return_X_y=True)
X, Y, NEW = DIGITS[:200], LABELS[:200], DIGITS[200:260]
CLASSIFIER = LogisticRegression(max_iter=50)
FAST = {"FastHash": {"n_trees": 5}, "KSH": {"n_anchors": 60}, "SDH": {"n_anchors": 60}, "AGH": {"n_anchors": 50}}
WITHOUT = {"SSC", "PQ", "RaBitQ", "stump", "tree", "classifier"}  # no margins
NAMES = (*peers.PEERS, *FAMILIES, "classifier")
every_model = pytest.mark.parametrize("name", NAMES)
with_margins = pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT])


@functools.cache
def fitted(name):
    if name not in peers.PEERS:
        family = CLASSIFIER if name == "classifier" else name
        return CGHash(8, C=1e-3, n_neighbors=3, hash_function=family, random_state=0, n_jobs=1).fit(X / 16, Y)
    kind = getattr(peers, name)
    seed = {"random_state": 0} if "random_state" in inspect.signature(kind).parameters else {}
    return kind(80 if name == "RaBitQ" else 8, **seed, **FAST.get(name, {})).fit(X / 16, Y)


def shares(model, items):
    """The weights of a query, as parts of the model's."""
    return model.query(items).weights / model.weights_


# What every model must do


@every_model
def test_codes_are_those_of_encode_and_weights_are_finite_and_not_negative(name):
    model = fitted(name)
    asked = model.query(NEW / 16)
    assert isinstance(asked, Query)
    np.testing.assert_array_equal(asked.codes, model.encode(NEW / 16))
    assert asked.codes.dtype == np.uint8
    assert asked.weights.dtype == np.float64
    assert asked.weights.shape == (60, model.n_bits_)
    assert np.isfinite(asked.weights).all()
    assert asked.weights.min() >= 0


@every_model
def test_many_items_have_the_codes_of_encode(name):
    model, many = fitted(name), np.tile(DIGITS / 16, (5, 1)).astype(np.float32)  # more than one block
    np.testing.assert_array_equal(model.query(many).codes, model.encode(many))


@every_model
def test_weights_of_a_query_do_not_depend_on_the_others(name):
    model = fitted(name)
    codes, weights = model.query(NEW / 16)
    for i in range(0, 60, 7):
        alone = model.query(NEW[i : i + 1] / 16)
        np.testing.assert_array_equal(alone.codes[0], codes[i])
        np.testing.assert_allclose(alone.weights[0], weights[i], rtol=1e-6, atol=1e-9 * weights.max())


@every_model
def test_weights_do_not_depend_on_the_type_of_the_items(name):
    model = fitted(name)
    codes, weights = model.query(NEW / 16)  # sixteenths are exact
    single = model.query((NEW / 16).astype(np.float32))
    np.testing.assert_array_equal(single.codes, codes)
    np.testing.assert_allclose(single.weights, weights, rtol=1e-4, atol=1e-5 * weights.max())


@with_margins
def test_a_bit_never_counts_less_further_from_its_boundary(name):
    model = fitted(name)
    distances = np.abs(model._margins(DIGITS / 16))[:, : model.n_bits_]
    weights = model.query(DIGITS / 16).weights
    order = np.argsort(distances, axis=0)
    assert np.all(np.diff(np.take_along_axis(weights, order, axis=0), axis=0) >= 0)
    assert np.any(np.ptp(weights, axis=0) > 0)


@with_margins
def test_bits_are_signs_of_the_margins(name):
    model = fitted(name)
    signs = model._margins(NEW / 16)[:, : model.n_bits_] > 0
    np.testing.assert_array_equal(signs, model.transform(NEW / 16) == 1)


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_without_margins_all_queries_have_the_weights_of_the_model(name):
    model = fitted(name)
    np.testing.assert_array_equal(model.query(NEW / 16).weights, np.tile(model.weights_, (60, 1)))


@every_model
def test_truncation_keeps_what_a_bit_counts(name):
    model = fitted(name)
    if not getattr(model, "prefixes", True):
        return
    shorter = model.truncate(2)
    np.testing.assert_array_equal(shorter.query(NEW / 16).codes, shorter.encode(NEW / 16))
    used = shorter.weights_ > 0
    assert used.any()
    expected = shares(model, NEW / 16)[:, :2]
    np.testing.assert_allclose(shares(shorter, NEW / 16)[:, used], expected[:, used], rtol=1e-9, atol=1e-12)


@every_model
def test_a_saved_model_gives_the_same(name, tmp_path):
    if name == "classifier":
        return  # no file holds it
    model = fitted(name)
    model.save(tmp_path / "model")
    for one, other in zip(load(tmp_path / "model").query(NEW / 16), model.query(NEW / 16), strict=True):
        np.testing.assert_array_equal(one, other)


@every_model
def test_models_that_are_not_fitted_and_other_items_are_refused(name):
    with pytest.raises(ValueError, match="63 features"):
        fitted(name).query(NEW[:, :63])
    kind = getattr(peers, name) if name in peers.PEERS else CGHash
    with pytest.raises(ValueError, match="not fitted"):
        kind().query(NEW)


# Values


def by_hand(coef, intercept, weights):
    """A CGHash of linear functions of two features."""
    model = CGHash(len(coef), C=1e-3, n_neighbors=1, random_state=0).fit(X[:20, 20:22], Y[:20])
    model.functions_ = LinearFunctions(np.array(coef, dtype=float), np.array(intercept, dtype=float))
    model.weights_, model.n_bits_ = np.array(weights, dtype=float), len(coef)
    return model


@pytest.mark.parametrize(("unlabelled", "far"), [(False, 0.5), (True, 8.0)])
def test_a_linear_bit_counts_by_mean_margins_up_to_half_where_labels_were_learned_from(unlabelled, far):
    model = by_hand([[1, 0], [0, 2]], [-1, 0], [3, 4])
    model._measure_margins(np.array([[0.0, 0.0], [2.0, 1.0]]), unlabelled)  # margins (-1, 0) and (1, 2)
    np.testing.assert_array_equal(model.mean_margins_, [1, 1])
    codes, weights = model.query([[1.25, -0.125], [9.0, 0.0]])  # margins (1/4, -1/4) and (8, 0)
    assert codes.tolist() == [[0b01], [0b01]]
    np.testing.assert_array_equal(weights, [[0.75, 1.0], [3 * far, 0.0]])


def test_what_was_learned_from_says_whether_the_share_is_cut():
    triplets = [[0, 1, 2], [3, 4, 5]]
    assert CGHash(2, random_state=0).fit(X[:50], Y[:50]).query_cut_ == 0.5
    assert CGHash(2, random_state=0).fit(X[:50], triplets=triplets).query_cut_ == 0.5
    assert CGHash(2, random_state=0).fit(X[:50]).query_cut_ == np.inf


def test_mean_margins_are_those_of_the_training_items():
    model = fitted("linear")
    margins = X / 16 @ model.functions_.coef.T + model.functions_.intercept
    np.testing.assert_allclose(model.mean_margins_, np.abs(margins).mean(axis=0), rtol=1e-9)


def test_a_bit_whose_margins_are_all_zero_never_counts():
    model = by_hand([[0, 0], [1, 0]], [0, 0], [1, 1])
    model._measure_margins(np.array([[0.0, 0.0], [2.0, 1.0]]), unlabelled=True)
    np.testing.assert_array_equal(model.query([[2.0, 5.0]]).weights, [[0.0, 2.0]])


def test_a_bit_of_random_hyperplanes_counts_by_the_distance_from_them():
    model = peers.LSH(2, random_state=0).fit([[0.0, 0.0], [2.0, 2.0]])
    model.directions_ = np.array([[3.0, 4.0], [0.0, -0.5]])  # through the mean (1, 1)
    codes, weights = model.query([[2.0, 3.0]])
    assert codes.tolist() == [[0b01]]
    np.testing.assert_allclose(weights, [[11 / 5, 2.0]])


@pytest.mark.parametrize(
    ("name", "normals"), [("ITQ", "directions_"), ("SPLH", "directions_"), ("BRE", "coef_"), ("STH", "coef_")]
)
def test_a_step_away_from_a_hyperplane_adds_its_length(name, normals):
    model = fitted(name)
    at, w = model.query(NEW[:1] / 16), getattr(model, normals)[0]
    outwards = w if at.codes[0, 0] & 1 else -w
    moved = model.query(NEW[:1] / 16 + 0.25 * outwards / np.linalg.norm(w))
    assert moved.weights[0, 0] == pytest.approx(at.weights[0, 0] + 0.25)


def test_kernel_functions_of_any_length_count_alike():
    model = fitted("KSH")
    np.testing.assert_allclose(model.query(model.anchors_).weights.mean(axis=0), 1.0)


def test_weights_of_a_query_rank_as_the_margins_do():
    """Sign bits of two items that differ from the query in one bit each: nearer is the one in the weaker bit."""
    model = peers.SignBits(2).fit([[1.0, 1.0], [-1.0, -1.0]])
    asked = model.query([[0.1, 5.0]])
    apart = unpack(asked.codes, 2)[:, None] != unpack(model.encode([[-1.0, 1.0], [1.0, -1.0]]), 2)
    np.testing.assert_allclose((apart * asked.weights[:, None]).sum(axis=2), [[0.1, 5.0]])


# Other items and other files


def test_sparse_items():
    model = fitted("linear")
    dense, sparse = model.query(NEW / 16), model.query(sp.csr_matrix(NEW / 16))
    np.testing.assert_array_equal(sparse.codes, dense.codes)
    np.testing.assert_allclose(sparse.weights, dense.weights, rtol=1e-9, atol=1e-12)
    items = sp.csr_matrix(X / 16)
    again = CGHash(8, C=1e-3, n_neighbors=3, random_state=0, n_jobs=1).fit(items, Y)
    margins = items @ again.functions_.coef.T + again.functions_.intercept
    np.testing.assert_allclose(again.mean_margins_, np.abs(margins).mean(axis=0), rtol=1e-9)


@pytest.mark.parametrize("family", ["linear", "rbf", "stump", "tree"])
def test_models_of_earlier_files_give_their_own_weights(family):
    model = load(FIXTURES / f"model-v1-{family}.cghash")
    then = json.loads((FIXTURES / f"model-v1-{family}.json").read_text())
    codes, weights = model.query(DIGITS[: then["n_items"], :40])
    assert [bytes(code).hex() for code in codes] == then["codes"]
    np.testing.assert_array_equal(weights, np.tile(then["weights"], (len(codes), 1)))
    assert model.truncate(1).query(DIGITS[:3, :40]).weights.shape == (3, 1)


def test_a_file_with_mean_margins_gives_the_weights_that_it_gave():
    then = json.loads((FIXTURES / "model-v1-margins.json").read_text())
    codes, weights = load(FIXTURES / "model-v1-margins.cghash").query(DIGITS[: then["n_items"], :40])
    assert [bytes(code).hex() for code in codes] == then["codes"]
    np.testing.assert_allclose(weights, then["query_weights"], rtol=1e-9, atol=1e-12)


def test_tensors_on_a_gpu_are_refused():
    tensor = type("Tensor", (), {"__module__": "torch", "device": SimpleNamespace(type="cuda")})()
    with pytest.raises(InvalidInputError, match="X must be in host memory for query"):
        fitted("linear").query(tensor)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_items_too_large_for_a_margin_are_named():
    with pytest.raises(InvalidInputError, match="in row 1"):
        peers.LSH(8, random_state=0).fit(X).query(np.stack([X[0], np.full(64, 1e308)]))
