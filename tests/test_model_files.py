"""Models as files: what comes back, what is refused, and that no file is ever half written or believed."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as to_safetensors
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from cghash import CGHash, peers, storage
from cghash.exceptions import CGHashWarning, FormatError, InvalidInputError
from cghash.learning import families
from cghash.learning.families import FAMILIES
from cghash.learning.losses import SquaredHinge
from cghash.model_files import KIND

pytestmark = pytest.mark.core

FIXTURES = Path(__file__).parent / "fixtures"
DIGITS, LABELS = load_digits(return_X_y=True)
X, Y = DIGITS[:60], LABELS[:60]


def fitted(family="linear", n_bits=5, d=64, **changes):
    with_defaults = {"C": 1e-3, "n_neighbors": 2, "random_state": 0, "n_jobs": 1, "hash_function": family} | changes
    return CGHash(n_bits, **with_defaults).fit(X[:, :d], Y)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A model of few bytes: its path, its content, and itself."""
    path = tmp_path_factory.mktemp("small") / "model"
    model = fitted("stump", n_bits=2, d=40)
    model.save(path)
    return path, path.read_bytes(), model


def assert_same_model(model, other, items):
    np.testing.assert_array_equal(model.transform(items), other.transform(items))
    for w, v in zip(model.weights_path_, other.weights_path_, strict=True):
        np.testing.assert_array_equal(w, v)
    np.testing.assert_array_equal(model.weights_, other.weights_)
    assert model.result_.message == other.result_.message
    np.testing.assert_equal(model.result_.to_dict(), other.result_.to_dict())
    assert model.get_params() == other.get_params()
    assert model.n_features_in_ == other.n_features_in_
    assert model.n_bits_ == other.n_bits_


# There and back


@pytest.mark.native
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", [str, Path])
def test_saved_model_comes_back_the_same(family, kind, tmp_path):
    model, path = fitted(family), kind(tmp_path / "model")
    model.save(path)
    loaded = CGHash.load(path)
    assert_same_model(loaded, model, DIGITS)
    assert_same_model(loaded.truncate(3), model.truncate(3), DIGITS)
    assert loaded.score(X, Y) == model.score(X, Y)
    np.testing.assert_array_equal(loaded.encode(DIGITS), model.encode(DIGITS))


@pytest.mark.native
def test_truncated_and_reloaded_model_can_be_saved_again(tmp_path):
    model = fitted().truncate(2)
    model.save(tmp_path / "short")
    CGHash.load(tmp_path / "short").save(tmp_path / "again")
    assert_same_model(CGHash.load(tmp_path / "again"), model, DIGITS)


@pytest.mark.native
def test_feature_names_come_back_and_are_held_to(tmp_path):
    names = [f"größe {i}" for i in range(64)]
    model = CGHash(2, C=1e-3, random_state=0).fit(pd.DataFrame(X, columns=names), Y)
    model.save(tmp_path / "model")
    loaded = CGHash.load(tmp_path / "model")
    assert list(loaded.feature_names_in_) == names
    assert list(loaded.get_feature_names_out()) == ["cghash0", "cghash1"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.transform(pd.DataFrame(X, columns=names[::-1]))


@pytest.mark.native
def test_parameters_of_numpy_and_path_types_come_back_plain(tmp_path):
    model = fitted(n_bits=np.int64(2), C=np.float64(1e-3), checkpoint=tmp_path / "fit", time_limit=60)
    model.save(tmp_path / "model")
    loaded = CGHash.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params() | {"checkpoint": str(tmp_path / "fit")}
    assert type(loaded.n_bits) is int


class Own(SquaredHinge):
    code = None


@pytest.mark.native
@pytest.mark.parametrize(
    ("name", "value", "loaded_as"),
    [
        ("random_state", np.random.RandomState(0), None),
        ("loss", Own(), CGHash().loss),
        ("hash_function", DecisionTreeClassifier(max_depth=2), "tree"),
    ],
)
def test_parameter_that_is_an_object_is_not_stored_and_the_save_says_so(name, value, loaded_as, tmp_path):
    model = fitted(n_bits=3, **{name: value})
    instead = "tree" if loaded_as == "tree" else "the default"
    with pytest.warns(CGHashWarning, match=f"parameter {name}=.* is not stored.*fitting it again would use {instead}"):
        model.save(tmp_path / "model")
    loaded = CGHash.load(tmp_path / "model")
    assert getattr(loaded, name) == loaded_as
    np.testing.assert_array_equal(loaded.encode(DIGITS), model.encode(DIGITS))


@pytest.mark.native
def test_model_without_a_seed_can_be_saved(tmp_path):
    model = fitted(random_state=None)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(CGHash.load(tmp_path / "model").encode(X), model.encode(X))


@pytest.mark.native
def test_model_of_classifiers_says_what_to_do_instead(tmp_path):
    model = fitted(LogisticRegression(C=1e-4), n_bits=1)
    with pytest.raises(InvalidInputError, match=r"cannot be saved.*use hash_function='linear'.*or keep the object"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_model_that_was_not_fitted_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        CGHash().save(tmp_path / "model")


def test_loading_never_unpickles(small, monkeypatch):
    def refuse(*args, **kwargs):
        pytest.fail("a file was unpickled")

    for name in ("load", "loads", "Unpickler", "_Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    path, _, model = small
    assert_same_model(CGHash.load(path), model, DIGITS[:, :40])


def test_pickled_model_is_refused_as_foreign(small, tmp_path):
    content = io.BytesIO()
    pickle.dump(small[2], content)
    assert_refused(tmp_path, content.getvalue(), "not a cghash file")


# Writing


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_failure_while_writing_leaves_the_old_file_alone(step, small, tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"what was there before")

    def fail(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="no space left"):
        small[2].save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"what was there before"


def test_saved_file_has_the_permissions_of_a_new_file(small, tmp_path):
    (tmp_path / "plain").touch()
    small[2].save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_saving_leaves_the_umask_alone(small, tmp_path, monkeypatch):
    """It belongs to the process: another thread could make a file while it is changed."""
    monkeypatch.setattr(os, "umask", None)
    small[2].save(tmp_path / "model")


def test_what_is_not_a_number_is_strict_json_and_comes_back(tmp_path):
    model = fitted("stump", n_bits=2, d=40).truncate(1)
    model.feature_names_in_ = np.array(["Infinity", *map(str, range(39))], dtype=object)
    model.result_.columns[0].bound = -np.inf
    model.set_params(time_limit=np.inf).save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])["__metadata__"]["cghash"]

    def fail(word):
        raise AssertionError(word)

    assert json.loads(header, parse_constant=fail)["result"]["final_violation"] is None
    again = CGHash.load(tmp_path / "model")
    assert np.isnan(again.result_.final_violation)
    assert again.result_.columns[0].bound == -np.inf
    assert again.time_limit == np.inf
    assert again.checkpoint is None
    assert again.feature_names_in_[0] == "Infinity"


def test_files_that_hold_nan_still_load(small, tmp_path):
    model = small[2].truncate(1)
    model.save(tmp_path / "model")
    arrays, header = storage.load(tmp_path / "model", KIND, 1)
    text = json.dumps(header)
    assert "NaN" in text
    metadata = {"cghash": text, "checksum": storage.checksum(text, arrays)}
    (tmp_path / "old").write_bytes(to_safetensors(arrays, metadata=metadata))
    assert_same_model(CGHash.load(tmp_path / "old"), model, X[:, :40])


def test_folder_that_does_not_exist_is_named(small, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        small[2].save(tmp_path / "nowhere" / "model")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        CGHash.load(tmp_path / "nowhere")


# Files that are not what they must be


def assert_refused(folder, content, match=None):
    path = folder / "broken"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=match) as caught:
        CGHash.load(path)
    assert str(path) in str(caught.value)


def assert_refused_or_same(folder, content, model, items):
    """A change that a file survives must not be one that matters."""
    path = folder / "changed"
    path.write_bytes(content)
    try:
        loaded = CGHash.load(path)
    except FormatError:
        return False
    assert_same_model(loaded, model, items)
    return True


@pytest.fixture
def least(small, tmp_path):
    """The first bit of that model, and its content."""
    model = small[2].truncate(1)
    model.save(tmp_path / "least")
    return model, (tmp_path / "least").read_bytes()


@pytest.mark.slow
def test_file_that_is_cut_short_is_refused(least, tmp_path):
    content = least[1]
    n = len(content)
    for length in (*range(256), *range(256, n - 256, 8), *range(n - 256, n)):  # all at both ends
        assert_refused(tmp_path, content[:length])


@pytest.mark.slow
def test_any_flipped_byte_is_refused_or_does_not_matter(least, tmp_path):
    model, content = least
    survived = 0
    for place in range(len(content)):
        for flip in (0x01, 0x20, 0xFF) if place % 8 == 0 else (1 << place % 8,):
            changed = bytearray(content)
            changed[place] ^= flip
            survived += assert_refused_or_same(tmp_path, bytes(changed), model, DIGITS[:, :40])
    assert survived <= 8  # blanks that fill the header up


def test_appended_bytes_are_refused(small, tmp_path):
    assert_refused(tmp_path, small[1] + b"\0")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"hello, world, this is a text of some length",
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2**40) + b"{}",
        struct.pack("<Q", 2**64 - 1) + b"{}",
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 100_000) + b"[" * 100_000,
        struct.pack("<Q", 4) + b"\xff\xfe\xfd\xfc",
    ],
    ids=["empty", "one byte", "text", "image", "2^63", "2^40", "2^64", "no entry", "list", "deep", "not utf-8"],
)
def test_foreign_file_is_refused(content, tmp_path):
    assert_refused(tmp_path, content, "cghash")


def test_folder_is_refused(tmp_path):
    with pytest.raises(FormatError):
        CGHash.load(tmp_path)


def written(tmp_path, about, arrays=None, kind=KIND, version=1):
    path = tmp_path / "written"
    storage.save(path, kind, version, {"weights": np.ones(1)} if arrays is None else arrays, about)
    return path


def parts_of(path, kind=KIND):
    """The description and the arrays of a file, to write another from."""
    arrays, about = storage.load(path, kind, 1)
    return {name: value for name, value in about.items() if name not in ("format", "version")}, arrays


def test_safetensors_of_others_are_refused(tmp_path):
    arrays = {"weights": np.ones(3)}
    for metadata in (None, {"format": "pt"}, {"cghash": "no JSON"}, {"cghash": "[1]"}, {"cghash": "[" * 100_000}):
        assert_refused(tmp_path, to_safetensors(arrays, metadata=metadata), "not one of cghash|damaged")


def test_another_kind_and_a_later_version_are_named(tmp_path):
    with pytest.raises(FormatError, match="must be a cghash-model file, got a 'cghash-checkpoint' file"):
        CGHash.load(written(tmp_path, {}, kind="cghash-checkpoint"))
    for version in (2, 0, -1, "1", None, 1.5):
        with pytest.raises(FormatError, match=r"has format version .* reads versions 1 to 1"):
            CGHash.load(written(tmp_path, {}, version=version))


def test_missing_checksum_is_refused(small, tmp_path):
    arrays, header = storage.load(small[0], KIND, 1)
    assert_refused(tmp_path, to_safetensors(arrays, metadata={"cghash": json.dumps(header)}), "checksum")


def swapped(header, **changes):
    """The description with other entries; those of the parameters and of the result by `parameters_` and `result_`."""
    inner = {name[:-1]: header[name[:-1]] | changes.pop(name) for name in ("parameters_", "result_") if name in changes}
    return header | inner | changes


FORGERIES = {
    "no parameters": lambda h, a: (swapped(h, parameters=None), a),
    "unknown parameter": lambda h, a: (swapped(h, parameters={"depth": 3}), a),
    "bits as words": lambda h, a: (swapped(h, parameters_={"n_bits": "many"}), a),
    "unknown family": lambda h, a: (swapped(h, family="forest"), a),
    "classifier": lambda h, a: (swapped(h, family="classifier"), a),
    "features as words": lambda h, a: (swapped(h, n_features_in="many"), a),
    "too few features": lambda h, a: (swapped(h, n_features_in=1), a),
    "too few names": lambda h, a: (swapped(h, feature_names_in=["a"]), a),
    "result is a list": lambda h, a: (swapped(h, result=[]), a),
    "unknown status": lambda h, a: (swapped(h, result_={"status": "done"}), a),
    "fewer records": lambda h, a: (swapped(h, result_={"columns": []}), a),
    "record of words": lambda h, a: (swapped(h, result_={"columns": ["a"] * 2}), a),
    "no weights": lambda h, a: (h, {k: v for k, v in a.items() if k != "weights"}),
    "short weights": lambda h, a: (h, a | {"weights": a["weights"][:-1]}),
    "long weights": lambda h, a: (h, a | {"weights": np.append(a["weights"], 1.0)}),
    "flat weight": lambda h, a: (h, a | {"weights": np.float64(1.0)}),
    "square weights": lambda h, a: (h, a | {"weights": np.ones((3, 3))}),
    "words as weights": lambda h, a: (h, a | {"weights": np.frombuffer(b"abc", np.uint8)}),
    "negative weight": lambda h, a: (h, a | {"weights": -a["weights"]}),
    "nan weight": lambda h, a: (h, a | {"weights": a["weights"] * np.nan}),
    "infinite weight": lambda h, a: (h, a | {"weights": a["weights"] * np.inf}),
    "no function": lambda h, a: (h, {k: v[:0] for k, v in a.items()}),
    "a part is missing": lambda h, a: (h, {k: v for k, v in a.items() if k != "functions.threshold"}),
    "parts differ": lambda h, a: (h, a | {"functions.threshold": a["functions.threshold"][:1]}),
    "nan threshold": lambda h, a: (h, a | {"functions.threshold": a["functions.threshold"] * np.nan}),
    "feature of no item": lambda h, a: (h, a | {"functions.feature": a["functions.feature"] + 1000}),
    "negative feature": lambda h, a: (h, a | {"functions.feature": a["functions.feature"] - 1000}),
    "half a feature": lambda h, a: (h, a | {"functions.feature": a["functions.feature"] + 0.5}),
    "features of no size": lambda h, a: (swapped(h, n_features_in=10**40), a),
    "threads of no size": lambda h, a: (swapped(h, parameters_={"n_jobs": 10**40}), a),
    "a million threads": lambda h, a: (swapped(h, parameters_={"n_jobs": 10**6}), a),
    "C of no size": lambda h, a: (swapped(h, parameters_={"C": 10**400}), a),
    "seed below 0": lambda h, a: (swapped(h, parameters_={"random_state": -1}), a),
    "triplets as words": lambda h, a: (swapped(h, result_={"n_triplets": "many"}), a),
    "unknown field of the result": lambda h, a: (swapped(h, result_={"x": 1}), a),
    "gap of a record is a list": lambda h, a: (
        swapped(h, result_={"columns": [c | {"gap": []} for c in h["result"]["columns"]]}),
        a,
    ),
    "names that are lists": lambda h, a: (swapped(h, feature_names_in=[[]] * h["n_features_in"]), a),
    "names of half a character": lambda h, a: (swapped(h, feature_names_in=["\ud800"] * h["n_features_in"]), a),
    "lists in lists": lambda h, a: (swapped(h, family=nested(100)), a),
    "short mean margins": lambda h, a: (h, a | {"mean_margins": np.ones(1), "query_cut": np.ones(1)}),
    "mean margin of zero": lambda h, a: (h, a | {"mean_margins": np.array([1.0, 0.0]), "query_cut": np.ones(1)}),
    "nan mean margin": lambda h, a: (h, a | {"mean_margins": np.array([1.0, np.nan]), "query_cut": np.ones(1)}),
    "single mean margins": lambda h, a: (h, a | {"mean_margins": np.ones(2, np.float32), "query_cut": np.ones(1)}),
    "mean margins without a cut": lambda h, a: (h, a | {"mean_margins": np.ones(2)}),
    "two cuts": lambda h, a: (h, a | {"mean_margins": np.ones(2), "query_cut": np.ones(2)}),
    "a cut of nan": lambda h, a: (h, a | {"mean_margins": np.ones(2), "query_cut": np.full(1, np.nan)}),
    "single precision": lambda h, a: (h, a | {"functions.threshold": a["functions.threshold"].astype(np.float32)}),
}


def nested(depth):
    return [nested(depth - 1)] if depth else []


@pytest.mark.parametrize("forgery", FORGERIES)
def test_parts_that_do_not_fit_together_are_refused(forgery, small, tmp_path):
    """The checksum is right here: someone wrote such a file on purpose, or another program did by mistake."""
    with pytest.raises(FormatError):
        CGHash.load(written(tmp_path, *FORGERIES[forgery](*parts_of(small[0]))))


@pytest.mark.native
@pytest.mark.parametrize("family", FAMILIES)
def test_functions_of_other_items_are_refused(family, tmp_path):
    fitted(family, n_bits=2).save(tmp_path / "model")
    own, arrays = parts_of(tmp_path / "model")
    with pytest.raises(FormatError, match="features"):
        CGHash.load(written(tmp_path, own | {"n_features_in": 2}, arrays))


@pytest.mark.native
def test_tree_that_walks_in_a_circle_is_refused(tmp_path):
    fitted("tree", n_bits=3).save(tmp_path / "model")
    own, arrays = parts_of(tmp_path / "model")
    assert CGHash.load(written(tmp_path, own, arrays)).n_bits_ == 3
    for name in ("functions.left", "functions.right"):
        for child in (0, 10_000, -1):
            forged = arrays[name].copy()
            forged[0, 1:] = child
            with pytest.raises(FormatError, match=r"node|walk"):
                CGHash.load(written(tmp_path, own, arrays | {"functions.left": forged, "functions.right": forged}))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_pieces_cut_out_doubled_or_changed_are_refused_or_do_not_matter(data, small, tmp_path):
    _, content, model = small
    first = data.draw(st.integers(0, len(content)))
    last = data.draw(st.integers(first, len(content)))
    piece = data.draw(st.binary(max_size=20) | st.just(content[first:last] * 2) | st.just(content[first:last][::-1]))
    assert_refused_or_same(tmp_path, content[:first] + piece + content[last:], model, DIGITS[:, :40])


# Files of earlier versions


KEPT = sorted(path.stem.removeprefix("model-v1-") for path in FIXTURES.glob("model-v1-*.cghash"))


def test_of_every_kind_of_functions_that_is_saved_a_file_is_kept():
    kinds = {kind.family for kind in families._FUNCTIONS} - {"classifier"}
    assert kinds <= set(KEPT), "keep a file of a new family; tests/fixtures/README.md says how"


@pytest.mark.parametrize("family", KEPT)
def test_files_of_version_1_still_load_and_give_their_bits(family):
    model = CGHash.load(FIXTURES / f"model-v1-{family}.cghash")
    kept = json.loads((FIXTURES / f"model-v1-{family}.json").read_text())
    items = DIGITS[: kept["n_items"], : model.n_features_in_]
    assert [code.hex() for code in map(bytes, model.encode(items))] == kept["codes"]
    assert model.weights_.tolist() == kept["weights"]
    assert model.hash_function == {"margins": "linear"}.get(family, family)
    assert model.truncate(1).n_bits_ == 1
    assert model.result_.message


@pytest.mark.parametrize("name", ["LSH", "LCH", "SSC", "FastHash"])
def test_a_peer_of_more_features_than_items_have_is_refused_before_items_of_them_are_made(name, tmp_path, monkeypatch):
    kind = getattr(peers, name)
    model = kind(4, random_state=0) if name != "LCH" else kind(4)
    model.fit(X[:60] + 1, np.arange(60) % 3).save(tmp_path / "peer")
    about, arrays = parts_of(tmp_path / "peer", "cghash-peer")
    forged = written(tmp_path, about | {"n_features_in": 2**27}, arrays, "cghash-peer")
    monkeypatch.setattr(kind, "_bits", lambda *_: pytest.fail("items were made"))
    with pytest.raises(FormatError, match="it says 134217728 features"):
        kind.load(forged)
