"""Models as ONNX graphs: the codes are those of `encode`, also where a value is within rounding of zero."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from cghash import CGHash, _kernels
from cghash.exceptions import FormatError, InvalidInputError
from cghash.learning.families.linear import LinearFunctions
from cghash.learning.families.rbf import RBFFunctions
from cghash.peers import LSH
from cghash.stores import Origin, origin_of
from cghash.stores.onnx import KEY, origin_of_onnx, to_onnx

pytestmark = pytest.mark.portable

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

_skipped = pytest.mark.skipif(_kernels.project is _kernels.twins.project, reason="NumPy adds in BLAS's order")


def order_of_sums(test):
    """Speaks of the native kernels alone: `make test` leaves it out of its second round."""
    return pytest.mark.native_only(_skipped(test))


X, Y = load_digits(return_X_y=True)
X = X.astype(np.float32)


@pytest.fixture(scope="module")
def linear():
    return CGHash(37, random_state=0).fit(X[:300], Y[:300])


@pytest.fixture(scope="module")
def rbf():
    return CGHash(21, hash_function="rbf", random_state=0).fit(X[:200], Y[:200])


def of_functions(functions, n_features):
    """A model with these functions, whatever made them."""
    model = copy(CGHash(len(functions)))
    model.functions_, model.n_features_in_, model.n_bits_ = functions, n_features, len(functions)
    model.weights_ = np.ones(len(functions))
    return model


def run(model, items):
    """Outputs by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    graph = to_onnx(model, dtype=str(items.dtype)).SerializeToString()
    session = onnxruntime.InferenceSession(graph, options)
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, {"items": items}), strict=True))


def at_the_border(rng, n, d, n_bits, dtype):
    """Items and functions such that v·x + b is 0, or off by one rounding, for some pairs."""
    items = rng.normal(size=(n, d)).astype(dtype)
    coef = rng.normal(size=(n_bits, d)) * 10.0 ** rng.integers(-3, 4, (n_bits, d))
    chosen = items[rng.integers(0, n, n_bits)].astype(np.float64)
    orders = [rng.permutation(d) for _ in range(n_bits)]
    sums = [np.add.accumulate((x * v)[o])[-1] for x, v, o in zip(chosen, coef, orders, strict=True)]
    moved = np.array(sums) * (1 + rng.integers(-2, 3, n_bits) * 2.0**-53)
    return items, LinearFunctions(coef, -moved)


@order_of_sums
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 20), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=60)
def test_codes_of_linear_functions_are_the_same_also_within_rounding_of_zero(seed, d, n_bits, dtype):
    items, functions = at_the_border(np.random.default_rng(seed), 9, d, n_bits, dtype)
    model = of_functions(functions, d)
    np.testing.assert_array_equal(run(model, items)["codes"], model.encode(items))


def test_those_items_are_ones_that_another_order_of_sums_encodes_otherwise():
    items, functions = at_the_border(np.random.default_rng(0), 50, 40, 64, np.float64)
    kernel = of_functions(functions, 40).transform(items)
    backwards = (items[:, None, ::-1] * functions.coef[None, :, ::-1]).cumsum(axis=2)[:, :, -1] + functions.intercept
    assert np.any(kernel != (backwards > 0))


@order_of_sums
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-320, 1e-160, 1e-30, 1e30, 1e150, 1e306]))
@settings(max_examples=30)
def test_codes_of_linear_functions_are_the_same_where_sums_overflow_or_vanish(seed, scale):
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(5, 13)) * scale
    items[0] = 0.0
    items[1, ::2] = -0.0
    functions = LinearFunctions(rng.normal(size=(9, 13)) * rng.choice([1.0, 1e8], (9, 1)), rng.normal(size=9) * scale)
    model = of_functions(functions, 13)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(model, items)["codes"], model.encode(items))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_of_a_learned_model_are_the_same_for_any_number_of_items(linear, dtype):
    items = X.astype(dtype)
    for n in (1, 2, 7, len(X)):
        np.testing.assert_array_equal(run(linear, items[:n])["codes"], linear.encode(items[:n]))
    assert run(linear, items[:0])["codes"].shape == (0, 5)


def test_shorter_model_gives_the_first_bits(linear):
    np.testing.assert_array_equal(run(linear.truncate(5), X)["codes"], linear.encode(X)[:, :1] & 31)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_of_rbf_functions_are_the_same_and_known_to_be(rbf, dtype):
    items = X.astype(dtype) + np.random.default_rng(0).normal(size=X.shape).astype(dtype)
    given_back = run(rbf, items)
    assert given_back["certain"].all()
    np.testing.assert_array_equal(given_back["codes"], rbf.encode(items))


@given(st.integers(0, 2**32 - 1), st.integers(-6, 12), st.integers(-20, 3))
@settings(max_examples=60)
def test_certain_codes_of_rbf_functions_are_the_same(seed, scale, gamma):
    """Intercepts put some values at 0, where only equal features have equal signs."""
    rng = np.random.default_rng(seed)
    landmarks, coef = rng.normal(size=(20, 6)) * 10.0**scale, rng.normal(size=(9, 20))
    items = rng.normal(size=(15, 6)) * 10.0**scale
    items[:5] = landmarks[:5] + rng.normal(size=(5, 6)) * 10.0 ** (scale - 6)
    mean, width = rng.uniform(size=20), np.array([10.0**gamma])
    features = np.exp(-width[0] * ((items[:9, None] - landmarks) ** 2).sum(axis=2)) - mean
    model = of_functions(RBFFunctions(coef, -(features * coef).sum(axis=1), landmarks, width, mean), 6)
    given_back = run(model, items)
    certain = given_back["certain"]
    if _kernels.project is not _kernels.twins.project:
        np.testing.assert_array_equal(given_back["codes"][certain], model.encode(items)[certain])


def test_code_is_not_called_certain_where_rounding_decides_a_bump():
    """Items so far that γ‖x − landmark‖² is lost in rounding, landmarks at the same place."""
    landmarks = np.array([[0.0, 0.0], [1e9, 1e9]])
    functions = RBFFunctions(np.ones((1, 2)), np.array([-1.0]), landmarks, np.array([1.0]), np.zeros(2))
    given_back = run(of_functions(functions, 2), np.array([[1e9 + 1e-3, 1e9], [1e12, 0.0]]))
    assert given_back["certain"].tolist() == [False, True]  # the second is far from both: exp is 0 however rounded


def test_description_travels_with_the_graph(linear, tmp_path):
    path = tmp_path / "model.onnx"
    made = to_onnx(linear, path)
    onnx.checker.check_model(str(path))
    origin = origin_of_onnx(path)
    assert origin.fingerprint == origin_of(linear).fingerprint == origin_of_onnx(made).fingerprint
    np.testing.assert_array_equal(origin.weights, linear.weights_)
    origin.check(linear, str(path))
    with pytest.raises(InvalidInputError, match="got one with other hash functions"):
        origin.check(Origin(linear.weights_), str(path))


def test_names_of_features_are_in_the_description():
    import pandas as pd

    frame = pd.DataFrame(X[:100, 2:6], columns=["a", "b", "c", "d"])
    made = to_onnx(CGHash(4, random_state=0, hash_function="linear").fit(frame, Y[:100]))
    about = next(entry.value for entry in made.metadata_props if entry.key == KEY)
    assert '"feature_names": ["a", "b", "c", "d"]' in about


def test_graphs_of_others_and_damaged_files_are_format_errors(linear, tmp_path):
    made = to_onnx(linear)
    del made.metadata_props[:]
    with pytest.raises(FormatError, match="no description of cghash codes"):
        origin_of_onnx(made)
    (tmp_path / "x.onnx").write_bytes(to_onnx(linear).SerializeToString()[:-400])
    with pytest.raises(FormatError, match=r"x\.onnx is not an ONNX model"):
        origin_of_onnx(tmp_path / "x.onnx")
    with pytest.raises(FileNotFoundError):
        origin_of_onnx(tmp_path / "none.onnx")


def test_other_functions_and_types_are_refused(linear):
    with pytest.raises(InvalidInputError, match="must be a CGHash of linear or rbf functions for ONNX, got stump"):
        to_onnx(CGHash(4, hash_function="stump", random_state=0).fit(X[:100], Y[:100]))
    with pytest.raises(InvalidInputError, match="for ONNX, got LSH"):
        to_onnx(LSH(4, random_state=0).fit(X[:100]))
    with pytest.raises(InvalidInputError, match="dtype must be one of"):
        to_onnx(linear, dtype="float16")
    with pytest.raises(InvalidInputError, match="must be fitted"):
        to_onnx(CGHash(4))
