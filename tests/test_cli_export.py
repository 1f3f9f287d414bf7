"""`cghash export`: what is written is what the stores read, and what cannot be is said in one line."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cghash import CGHash
from cghash.stores.duckdb import DuckDBStore
from cghash.stores.faiss import FaissStore
from cghash.stores.onnx import origin_of_onnx
from cghash.stores.parquet import ParquetStore
from cghash.stores.postgres import PostgresStore

from .command_line import refused, run

X, y = load_digits(return_X_y=True)
X, y = X[:200], y[:200]


@pytest.fixture(scope="module")
def model():
    return CGHash(12, random_state=0, n_jobs=1).fit(X, y)


@pytest.fixture
def folder(tmp_path, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model.save("model")
    np.save("x.npy", X)
    np.save("codes.npy", model.encode(X))
    np.save("ids.npy", np.arange(200)[::-1] * 3)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "opened"),
    [
        ("faiss codes.npy", FaissStore.open),
        ("faiss codes.npy --kind binary --expanded-bits 64", FaissStore.open),
        ("faiss --items x.npy --kind hnsw", FaissStore.open),
        ("parquet --items x.npy", ParquetStore.open),
        ("duckdb codes.npy", DuckDBStore.open),
        ("duckdb codes.npy --table photos", lambda *a: DuckDBStore.open(*a, table="photos")),
    ],
)
def test_store_holds_the_codes_of_the_model_under_their_ids(folder, model, line, opened):
    said = run(f"export {line} --model model --ids ids.npy -o out").stderr
    assert said == "cghash: 200 codes of 12 bits, wrote out\n"
    store = opened("out", model)
    found = store.search_items(model, X, 1)
    assert np.all(found.distances == 0)
    assert len(store) == 200
    assert np.all(found.ids % 3 == 0)
    if hasattr(store, "close"):
        store.close()


def test_kind_and_bits_of_an_index_are_those_asked_for(folder):
    run("export faiss codes.npy --model model --kind binary --expanded-bits 64 -q -o out")
    about = FaissStore.open("out").info()
    assert (about["kind"], about["expanded_bits"]) == ("binary", 64)


def test_first_bits_of_a_model(folder, model):
    run("export parquet --items x.npy --model model --n-bits 5 -q -o out")
    np.testing.assert_array_equal(ParquetStore.open("out", model.truncate(5)).codes, model.truncate(5).encode(X))
    run("export onnx model --n-bits 5 -q -o model.onnx")
    assert origin_of_onnx("model.onnx").n_bits == 5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_graph_gives_the_codes_that_encode_writes(folder, model, dtype):
    onnxruntime = pytest.importorskip("onnxruntime")
    said = run(f"export onnx model --dtype {dtype} -o model.onnx").stderr
    assert said == f"cghash: a graph from 64 {dtype} to 12 bits, wrote model.onnx\n"
    codes = onnxruntime.InferenceSession("model.onnx").run(["codes"], {"items": X.astype(dtype)})[0]
    np.testing.assert_array_equal(codes, np.load("codes.npy"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("faiss codes.npy -o out", "--model is needed"),
        ("faiss --model model -o out", "give CODES, or --items with --model"),
        ("parquet x.npy --model model -o out", "must hold packed codes"),
        ("parquet codes.npy --model model -o no/such/out", "does not exist"),
        ("duckdb codes.npy --model codes.npy -o out", "codes.npy is not a cghash file"),
        ("onnx codes.npy -o out", "codes.npy is not a cghash file"),
        ("onnx model -o -", "a model is not written to standard output"),
        ("onnx model --n-bits 13 -o out", "--n-bits must be from 1 to 12"),
        ("postgres codes.npy --model model", "Missing option '--database'"),
        ("postgres codes.npy --database postgresql://127.0.0.1:1/x", "--model is needed"),
        ("postgres codes.npy --model model --upsert --database postgresql://127.0.0.1:1/x", "--upsert needs --ids"),
        ("postgres codes.npy --model model --payload x.npy --database postgresql://127.0.0.1:1/x", ".parquet or .npz"),
        ("postgres codes.npy --model model --database shop.duckdb", "url must be a URL such as postgresql://"),
    ],
)
def test_what_cannot_be_exported_is_one_line(folder, line, message, monkeypatch):
    monkeypatch.delenv("CGHASH_DATABASE", raising=False)
    assert message in refused(f"export {line}")
    assert not (folder / "out").exists()


def rows(url, statement):
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


def test_table_of_a_database_holds_the_codes_and_the_columns_beside_them(folder, model, postgres):
    url = postgres()
    np.savez("more.npz", title=np.array([f"digit {label}" for label in y]), ink=X.sum(axis=1))
    line = f"export postgres codes.npy --model model --ids ids.npy --database {url} --table photos"
    assert run(f"{line} --payload more.npz").stderr == "cghash: 200 codes of 12 bits, wrote table photos\n"
    with PostgresStore.open(url, model, table="photos") as store:
        assert store.search_items(model, X[:5], 1).distances.tolist() == [[0.0]] * 5
        assert store.info()["payload"] == {"title": "text", "ink": "double precision"}
        assert store.hnsw
    assert rows(url, "SELECT title, ink FROM photos WHERE id = 597") == [(f"digit {y[0]}", X[0].sum())]
    said = run(f"{line} --upsert").stderr
    assert said == "cghash: 200 codes of 12 bits, 0 of them new or changed, in table photos\n"
    assert rows(url, "SELECT count(title) FROM photos") == [(200,)]


def test_options_of_a_table_in_a_database_are_those_asked_for(folder, postgres, monkeypatch):
    monkeypatch.setenv("CGHASH_DATABASE", postgres())
    run("export postgres --items x.npy --model model --n-bits 5 --no-hnsw --expanded-bits 64 -q")
    with PostgresStore.open(os.environ["CGHASH_DATABASE"]) as store:
        about = store.info()
    assert (about["n_bits"], about["hnsw"], about["expanded_bits"], about["n_codes"]) == (5, False, 64, 200)
    result = run("export postgres codes.npy --model model --ids ids.npy --upsert", code=2)
    assert "got one with 12 bits where 5 are stored" in result.stderr


def test_database_that_is_not_there_is_one_line(folder):
    result = run("export postgres codes.npy --model model --database postgresql://ann:secret@127.0.0.1:1/x", code=1)
    assert "table 'codes' of x at 127.0.0.1 cannot be reached" in result.stderr
    assert "secret" not in result.stderr
