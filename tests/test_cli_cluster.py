"""`cghash cluster`: files in, files out, on a real cluster; errors are one line."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from cghash.cluster import connected
from cghash.peers import LSH

from .command_line import refused, run

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("distributed")

X = np.random.default_rng(0).normal(size=(600, 4))


@pytest.fixture(scope="module")
def scheduler():
    with connected(n_workers=1) as client:
        yield client.scheduler.address


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"embedding": list(X), "key": np.arange(600) * 2}
    pq.write_table(pa.table(columns), "items.parquet", row_group_size=150)
    pq.write_table(pa.table({name: X[:, i] for i, name in enumerate("abcd")}), "columns.parquet")
    LSH(16, random_state=0).fit(X).save("model.cghash")
    np.save("new.npy", X[:5])
    return tmp_path


def test_items_to_codes_to_an_index_to_answers(folder, scheduler):
    to = f"--scheduler {scheduler}"
    encode = f"cluster encode model.cghash items.parquet --vector-column embedding --id-column key -o codes {to}"
    assert run(encode).stderr.splitlines()[-1] == "cghash: 600 codes of 16 bits, 4 parts, wrote codes"
    said = run(encode).stderr
    assert said.splitlines()[-1] == "cghash: 600 codes of 16 bits, 4 parts, 4 of them were there, wrote codes"
    assert run(f"{encode} -q").stderr == ""
    said = run(f"cluster index codes -o index --codes-per-shard 200 {to}").stderr
    assert said.splitlines()[-1] == "cghash: 600 codes of 16 bits in 2 shards, wrote index"
    run(f"cluster search index --queries new.npy --model model.cghash -k 3 -o found.npy {to}")
    model = LSH(16, random_state=0).fit(X)
    expected = model.build_index(X, np.arange(600) * 2).search(model.encode(X[:5]), 3)
    found = np.load("found.npy")
    np.testing.assert_array_equal(found["distance"], expected[0])
    np.testing.assert_array_equal(found["id"], expected[1])


def test_columns_are_those_that_the_model_was_fitted_on(folder, scheduler):
    import pandas as pd

    LSH(16, random_state=0).fit(pd.DataFrame(X, columns=list("abcd"))).save("named.cghash")
    run(f"cluster encode named.cghash columns.parquet --partition file -o codes --scheduler {scheduler}")
    table = pq.read_table("codes")
    codes = np.array([list(code.as_py()) for code in table["code"]], dtype=np.uint8)
    np.testing.assert_array_equal(codes, LSH(16, random_state=0).fit(X).encode(X))
    LSH(16, random_state=0).fit(pd.DataFrame(X, columns=[f"embedding[{i}]" for i in range(4)])).save("lists.cghash")
    run(f"cluster encode lists.cghash items.parquet -b 8 -o first --scheduler {scheduler}")
    np.testing.assert_array_equal([code.as_py()[0] for code in pq.read_table("first")["code"]], codes[:, 0])


def test_errors_are_one_line(folder, scheduler, monkeypatch):
    monkeypatch.setattr("cghash.cluster.clients._SECONDS", 0.5)
    to = f"--scheduler {scheduler}"
    encode = "cluster encode model.cghash items.parquet --vector-column embedding"
    (folder / "index").mkdir()
    wrong = [
        (f"{encode} -o codes --scheduler tcp://127.0.0.1:1", 1, "the scheduler at tcp://127.0.0.1:1 cannot be reached"),
        (f"{encode} -o codes --workers 2 {to}", 2, "--workers are processes of this machine"),
        (f"{encode} -o items.parquet {to}", 2, "'items.parquet' is not a folder"),
        (f"{encode} -o . {to}", 2, "out must be a new or empty folder"),
        (f"{encode}s -o codes {to}", 2, "must have one column 'embeddings', got 'embedding', 'key'"),
        (f"cluster encode model.cghash nothing -o codes {to}", 2, "no such file or folder: 'nothing'"),
        (f"{encode} -b 40 -o codes {to}", 2, "--n-bits must be from 1 to 16"),
        (f"cluster index nothing -o index {to}", 2, "nothing holds no codes, or `encode` has not finished"),
        (f"cluster search index --queries new.npy {to}", 2, "index holds no sharded index"),
        (f"cluster search index --queries new.npy -o found.txt {to}", 2, "a table is for people"),
    ]
    for line, code, words in wrong:
        assert words in refused(line, code=code)


def test_a_model_of_other_codes_is_refused(folder, scheduler):
    to = f"--scheduler {scheduler}"
    run(f"cluster encode model.cghash items.parquet --vector-column embedding -o codes {to}")
    run(f"cluster index codes -o index {to}")
    LSH(16, random_state=1).fit(X).save("other.cghash")
    assert "other hash functions" in refused(f"cluster search index --queries new.npy --model other.cghash {to}")


@pytest.mark.slow
def test_processes_of_this_machine_are_the_default(folder):
    options = ["--vector-column", "embedding", "-o", "codes", "--workers", "1"]
    command = [sys.executable, "-m", "cghash", "cluster", "encode", "model.cghash", "items.parquet", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "cghash: 600 codes of 16 bits, 4 parts, wrote codes"
