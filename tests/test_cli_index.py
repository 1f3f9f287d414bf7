"""`cghash index` and `cghash search`: codes and items in, neighbours out, for people and for programs."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cghash import CGHash, WeightedHammingIndex
from cghash.codes import pack
from cghash.peers import LSH

from .command_line import refused, run

X, y = load_digits(return_X_y=True)
X, y = X[:300], y[:300]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a model of 12 bits, items, their codes and ids; an index of the first 200."""
    folder = tmp_path_factory.mktemp("data")
    model = CGHash(12, random_state=0, n_jobs=1).fit(X, y)
    model.save(folder / "model")
    np.save(folder / "x.npy", X[:200])
    np.save(folder / "more.npy", X[200:])
    np.save(folder / "codes.npy", model.encode(X[:200]))
    np.save(folder / "more-codes.npy", model.encode(X[200:]))
    np.save(folder / "ids.npy", np.arange(200)[::-1] * 3)
    run("index", "build", folder / "codes.npy", "--model", folder / "model", "-q", "-o", folder / "i")
    return folder


@pytest.fixture
def index(data, tmp_path):
    """A copy of the index, to change."""
    (tmp_path / "i").write_bytes((data / "i").read_bytes())
    return tmp_path / "i"


def held(path):
    index = WeightedHammingIndex.load(path)
    return index.ids.tolist(), index.reconstruct(index.ids).tolist()


def model_of(data):
    return CGHash.load(data / "model")


# Build


def test_build_holds_the_codes_and_the_weights_of_the_model(data, tmp_path):
    result = run("index", "build", data / "codes.npy", "--model", data / "model", "-o", tmp_path / "i")
    assert result.stdout == ""
    assert "200 codes of 12 bits, weighted" in result.stderr
    assert f"wrote {tmp_path / 'i'}" in result.stderr
    index = WeightedHammingIndex.load(tmp_path / "i")
    np.testing.assert_array_equal(index.weights, model_of(data).weights_)
    assert held(tmp_path / "i") == (list(range(200)), np.load(data / "codes.npy").tolist())


def test_build_from_items_is_build_from_their_codes(data, tmp_path):
    run("index", "build", "--items", data / "x.npy", "--model", data / "model", "-q", "-o", tmp_path / "i")
    assert held(tmp_path / "i") == held(data / "i")


def test_build_with_ids_of_a_file_or_a_column(data, tmp_path):
    model = ("--model", data / "model", "-q", "-o", tmp_path / "i")
    run("index", "build", data / "codes.npy", "--ids", data / "ids.npy", *model)
    by_file = held(tmp_path / "i")
    assert by_file[0] == np.load(data / "ids.npy").tolist()
    rows = [f"{i},{a},{b}" for i, (a, b) in zip(*by_file, strict=True)]
    (tmp_path / "codes.csv").write_text("\n".join(["number,byte0,byte1", *rows]))
    run("index", "build", tmp_path / "codes.csv", "--id-column", "number", *model)
    assert held(tmp_path / "i") == by_file


def test_build_without_a_model_counts_every_bit_as_one(data, tmp_path):
    run("index", "build", data / "codes.npy", "-q", "-o", tmp_path / "i")
    index = WeightedHammingIndex.load(tmp_path / "i")
    assert (index.n_bits, index.weights, index.prune) == (16, None, True)
    run("index", "build", data / "codes.npy", "-b", "12", "--no-prune", "-q", "-o", tmp_path / "i")
    index = WeightedHammingIndex.load(tmp_path / "i")
    assert (index.n_bits, index.prune) == (12, False)


def test_build_takes_the_first_bits_of_a_model(data, tmp_path):
    run("index", "build", "--items", data / "x.npy", "--model", data / "model", "-b", "5", "-q", "-o", tmp_path / "i")
    short = model_of(data).truncate(5)
    index = WeightedHammingIndex.load(tmp_path / "i")
    np.testing.assert_array_equal(index.weights, short.weights_)
    np.testing.assert_array_equal(index.reconstruct(index.ids), short.encode(X[:200]))
    found = run(
        "search", tmp_path / "i", "--queries", data / "x.npy", "--model", data / "model", "--format", "jsonl", "-q"
    )
    assert json.loads(found.stdout.splitlines()[0])["distances"][0] == 0


def test_codes_from_standard_input(data, tmp_path):
    content = (data / "codes.npy").read_bytes()
    run("index", "build", "-", "--model", data / "model", "-q", "-o", tmp_path / "i", input=content)
    assert held(tmp_path / "i") == held(data / "i")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("-o", "i"), "give CODES, or --items with --model"),
        (("codes.npy", "--items", "x.npy", "-o", "i"), "give CODES, or --items with --model"),
        (("--items", "x.npy", "-o", "i"), "--items needs --model"),
        (("codes.npy",), "Missing option '-o'"),
        (("codes.npy", "-o", "-"), "an index is not written to standard output"),
        (("codes.npy", "-o", "nowhere/i"), "folder 'nowhere' does not exist"),
        (("codes.npy", "--ids", "ids.npy", "--id-column", "n", "-o", "i"), "cannot go together"),
        (("-", "--ids", "-", "-o", "i"), "standard input can be read only once"),
        (("codes.npy", "--ids", "y.npy", "-o", "i"), "one label for each of 200 items|must hold one"),
        (("codes.npy", "--ids", "words.txt", "-o", "i"), "ids must be whole numbers, one a code, got a; without ids"),
        (("codes.npy", "--ids", "twice.npy", "-o", "i"), "ids must be different, got 7 twice"),
        (("x.npy", "--model", "model", "-o", "i"), "x.npy must hold packed codes, uint8 of shape (n, 2) for 12 bits"),
        (("codes.npy", "-b", "40", "-o", "i"), "of shape (n, 5) for 40 bits, got shape (200, 2)"),
        (("codes.npy", "-b", "11", "-o", "i"), "codes must have 0 in the bits past n_bits=11"),
        (("codes.npy", "--model", "model", "-b", "13", "-o", "i"), "--model must have 13 bits or more, got 12"),
        (("nowhere.npy", "-o", "i"), "no such file or directory: 'nowhere.npy'"),
        (("codes.npy", "--model", "i", "-o", "j"), "i is not a cghash file"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_line(data, tmp_path, monkeypatch, args, words):
    for name in ("codes.npy", "x.npy", "model", "i", "ids.npy"):
        (tmp_path / name).write_bytes((data / name).read_bytes())
    np.save(tmp_path / "y.npy", y[:7])
    np.save(tmp_path / "twice.npy", np.full(200, 7))
    (tmp_path / "words.txt").write_text("\n".join(["a"] * 200))
    monkeypatch.chdir(tmp_path)
    line = refused("index", "build", *args, input=b"")
    assert any(word in line for word in words.split("|"))


# Add, info, verify, compact


def test_add_is_durable_and_compact_folds_it_in(data, index):
    result = run("index", "add", index, data / "more-codes.npy")
    assert result.stderr == f"cghash: 100 codes added, 300 in {index}\n"
    codes = model_of(data).encode(X).tolist()
    assert held(index) == (list(range(300)), codes)
    assert index.with_name("i.log").stat().st_size > 200
    run("index", "add", index, "--items", data / "x.npy", "--model", data / "model", "--ids", data / "ids.npy", code=2)
    np.save(index.with_name("n.npy"), np.arange(1000, 1200))
    ids = ("--ids", index.with_name("n.npy"))
    run("index", "add", index, "--items", data / "x.npy", "--model", data / "model", *ids, "-q")
    with WeightedHammingIndex.load(index, writable=True) as opened:
        opened.remove([1000, 1001])
    assert "3 log records" in run("index", "verify", index).stderr
    result = run("index", "compact", index)
    assert result.stderr == f"cghash: 3 log records folded in, 2 removed codes dropped, 498 in {index}\n"
    assert held(index) == ([*range(300), *range(1002, 1200)], codes + codes[2:200])
    assert "and 0 log records" in run("index", "verify", index).stderr


def test_add_takes_all_or_nothing(data, index):
    before = held(index)
    line = refused("index", "add", index, data / "codes.npy", "--ids", data / "ids.npy")
    assert line.startswith("ids must be new to the index, got ")
    assert refused("index", "add", index, data / "x.npy").startswith(f"{data / 'x.npy'} must hold packed codes")
    assert held(index) == before


def test_add_waits_for_nobody(data, index):
    with WeightedHammingIndex.load(index, writable=True):
        assert "is open for writing elsewhere" in refused("index", "add", index, data / "codes.npy", code=1)
        assert "is open for writing elsewhere" in refused("index", "compact", index, code=1)


def test_info_for_people_and_for_programs(data, index):
    run("index", "add", index, data / "more-codes.npy", "-q")
    shown = run("index", "info", index).stdout
    lines = ["codes    300", "bits     12 (2 bytes a code)", "ids      row numbers; next 300", "log      1 records"]
    assert all(line in shown for line in lines)
    facts = json.loads(run("index", "info", index, "--json").stdout)
    assert facts["kind"] == "index"
    assert (facts["n_codes"], facts["n_bits"], facts["next_id"], facts["log_records"]) == (300, 12, 300, 1)
    assert facts["weights"] == model_of(data).weights_.tolist()
    assert run("info", index).stdout == shown


def test_verify_names_what_is_wrong(index):
    assert run("index", "verify", index).stderr.startswith(f"cghash: {index}: 200 codes; ")
    content = bytearray(index.read_bytes())
    content[8192] ^= 1
    index.write_bytes(content)
    assert refused("index", "verify", index) == f"{index} is damaged: section 'codes' does not match its checksum"
    index.write_bytes(content[:5000])
    assert "must have" in refused("index", "info", index)
    assert "no such file" in refused("index", "verify", index.with_name("nowhere"))


# Search


def expected(data, queries, k):
    index = WeightedHammingIndex.load(data / "i")
    return index.search(model_of(data).encode(queries), k)


def test_search_prints_a_table(data):
    result = run("search", data / "i", "--queries", data / "more-codes.npy", "-k", "3")
    distances, ids = expected(data, X[200:], 3)
    rows = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert rows[0] == ["query", "rank", "id", "distance"]
    assert rows[2] == ["0", "1", str(ids[0, 0]), f"{distances[0, 0]:.6g}"]
    assert rows[3][:2] == ["2", str(ids[0, 1])]
    assert len(rows) == 2 + 3 * 20
    assert "shown: 20 of 100 queries" in result.stderr
    assert "100 queries, 3 of 200 codes each" in result.stderr


@pytest.mark.parametrize(
    "queries", [("more-codes.npy",), ("more.npy", "--model", "model"), ("more-codes.npy", "--model", "model")]
)
def test_search_for_programs(data, tmp_path, monkeypatch, queries):
    monkeypatch.chdir(data)
    distances, ids = expected(data, X[200:], 4)
    ask = ("search", "i", "--queries", *queries, "-k", "4", "-q")
    rows = list(csv.DictReader(io.StringIO(run(*ask, "--format", "csv").stdout)))
    assert [int(row["id"]) for row in rows] == ids.ravel().tolist()
    assert [float(row["distance"]) for row in rows] == distances.ravel().tolist()
    assert [(row["query"], row["rank"]) for row in rows[3:5]] == [("0", "4"), ("1", "1")]
    objects = [json.loads(line) for line in run(*ask, "--format", "jsonl").stdout.splitlines()]
    assert [o["ids"] for o in objects] == ids.tolist()
    assert [o["distances"] for o in objects] == distances.tolist()
    run(*ask, "-o", tmp_path / "found.npy")
    found = np.load(tmp_path / "found.npy", allow_pickle=False)
    np.testing.assert_array_equal(found["id"], ids)
    np.testing.assert_array_equal(found["distance"], distances)
    piped = np.load(io.BytesIO(run(*ask, "--format", "npy").stdout_bytes))
    np.testing.assert_array_equal(piped, found)


def test_search_from_standard_input_and_with_names(data, tmp_path):
    content = (data / "more-codes.npy").read_bytes()
    found = run("search", data / "i", "--queries", "-", "-k", "1", "--format", "csv", "-q", input=content).stdout
    assert len(found.splitlines()) == 101
    rows = [f"q{n}," + ",".join(map(str, code)) for n, code in enumerate(np.load(data / "more-codes.npy").tolist())]
    (tmp_path / "q.csv").write_text("\n".join(["name,byte0,byte1", *rows]))
    by_name = ("--queries", tmp_path / "q.csv", "--id-column", "name")
    named = run("search", data / "i", *by_name, "-k", "1", "-q", "-o", tmp_path / "f.csv")
    assert named.output == ""
    assert (tmp_path / "f.csv").read_text().replace("\nq", "\n") == found


def test_an_index_smaller_than_k(tmp_path):
    index = WeightedHammingIndex(8)
    index.add(np.array([[1], [3]], dtype=np.uint8))
    index.save(tmp_path / "i")
    np.save(tmp_path / "q.npy", np.zeros((1, 1), dtype=np.uint8))
    ask = ("search", tmp_path / "i", "--queries", tmp_path / "q.npy", "-k", "3", "-q")
    assert run(*ask, "--format", "csv").stdout == "query,rank,id,distance\n0,1,0,1.0\n0,2,1,2.0\n"
    assert json.loads(run(*ask, "--format", "jsonl").stdout) == {"query": 0, "ids": [0, 1], "distances": [1.0, 2.0]}
    run(*ask, "-o", tmp_path / "f.npy")
    assert np.load(tmp_path / "f.npy").tolist() == [[(0, 1.0), (1, 2.0), (-1, np.inf)]]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("x.npy",), "queries must be packed codes, uint8 of shape (q, 2), or items with --model, got shape (200, 64)"),
        (("wide.npy", "--model", "model"), "or items of the model's 64 features, got shape (3, 5), dtype float64"),
        (("codes.npy", "--model", "short"), "--model must have 12 bits or more, got 4"),
        (("codes.npy", "-k", "0"), "Invalid value for '-k'"),
        (("codes.npy", "-o", "found.txt"), "a table is for people: end 'found.txt' in .csv, .jsonl or .npy"),
        (("nowhere.npy",), "no such file or directory: 'nowhere.npy'"),
    ],
)
def test_queries_that_cannot_be_are_said_in_one_line(data, tmp_path, monkeypatch, args, words):
    for name in ("codes.npy", "x.npy", "model", "i"):
        (tmp_path / name).write_bytes((data / name).read_bytes())
    np.save(tmp_path / "wide.npy", np.zeros((3, 5)))
    model_of(data).truncate(4).save(tmp_path / "short")
    monkeypatch.chdir(tmp_path)
    assert words in refused("search", "i", "--queries", *args)


@pytest.fixture
def two_models(tmp_path):
    """Two models that differ only in their hash functions, and an index of the first's codes."""
    for seed in (1, 2):
        LSH(16, random_state=seed).fit(X).save(tmp_path / f"l{seed}")
    np.save(tmp_path / "x.npy", X)
    run("index", "build", "--items", tmp_path / "x.npy", "--model", tmp_path / "l1", "-q", "-o", tmp_path / "i")
    return tmp_path


def test_a_model_that_did_not_make_the_codes_is_refused(two_models):
    items, own, other = two_models / "x.npy", two_models / "l1", two_models / "l2"
    run("search", two_models / "i", "--queries", items, "--model", own, "--format", "csv", "-q")
    run("index", "add", two_models / "i", "--items", items, "--model", own, "-q")
    words = refused("search", two_models / "i", "--queries", items, "--model", other)
    assert "model must be the one whose codes" in words
    assert "got one with other hash functions" in words
    assert "other hash functions" in refused("index", "add", two_models / "i", "--items", items, "--model", other)
    assert len(WeightedHammingIndex.load(two_models / "i")) == 2 * len(X)


def test_codes_that_came_without_a_model_are_searched_with_any(two_models):
    codes, i = two_models / "codes.npy", two_models / "plain"
    np.save(codes, LSH.load(two_models / "l1").encode(X))
    run("index", "build", codes, "-q", "-o", i)
    run("search", i, "--queries", two_models / "x.npy", "--model", two_models / "l2", "--format", "csv", "-q")


def test_only_an_index_is_searched(data):
    line = refused("search", data / "model", "--queries", data / "codes.npy")
    assert "is not an index of cghash" in line


def test_search_follows_the_learned_distance(data):
    """The nearest of an item that is in the index is at distance 0, in the order of ids."""
    codes = pack(model_of(data).transform(X[:200]))
    found = run(
        "search", data / "i", "--queries", data / "x.npy", "--model", data / "model", "-k", "1", "--format", "jsonl"
    )
    first = [json.loads(line) for line in found.stdout.splitlines()]
    same = [int(np.flatnonzero((codes == code).all(axis=1))[0]) for code in codes]
    assert [answer["ids"][0] for answer in first] == same
    assert {answer["distances"][0] for answer in first} == {0.0}
