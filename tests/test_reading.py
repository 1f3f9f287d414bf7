"""Reading items, labels and comparisons: every format, and errors that say which file, which line and what."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cghash.exceptions import FormatError, InvalidInputError, MissingDependencyError
from cghash.reading import alike_labels, read_duplets, read_items, read_labels, read_triplets, sources
from cghash.reading.binary_files import read_columns
from cghash.reading.parquet_footer import read_groups
from cghash.reading.sources import source_of
from cghash.reading.text_files import is_header

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as parquet  # noqa: E402

X = np.array([[1.5, 2.0], [3.0, -4.25], [0.0, 1e-3]])
in_place = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def write(tmp_path):
    """Write text, bytes or an array, and return the path."""

    def to(name, content):
        path = tmp_path / name
        if isinstance(content, np.ndarray):
            np.save(path, content)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return to


@pytest.fixture
def stdin(monkeypatch):
    def set_to(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return set_to


def table(path, **columns):
    parquet.write_table(pa.table(columns), path)
    return str(path)


# Items


def test_npy_items_are_memory_mapped(write):
    items = read_items(write("x.npy", X))
    assert isinstance(items.X, np.memmap)
    np.testing.assert_array_equal(items.X, X)
    assert items.names is None


def test_npz_items_come_with_their_labels(tmp_path):
    np.savez(tmp_path / "xy.npz", X=X, y=[1, 0, 1], other=[0])
    items = read_items(tmp_path / "xy.npz")
    np.testing.assert_array_equal(items.X, X)
    assert items.labels.tolist() == [1, 0, 1]
    assert items.ignored == ["other"]


def test_npz_items_are_the_only_array(tmp_path):
    np.savez(tmp_path / "one.npz", vectors=X)
    np.testing.assert_array_equal(read_items(tmp_path / "one.npz").X, X)
    np.savez(tmp_path / "two.npz", a=X, b=X)
    with pytest.raises(InvalidInputError, match="an array X, or a single array, got 'a', 'b'"):
        read_items(tmp_path / "two.npz")


@pytest.mark.parametrize("name", ["x.npz", "x.csv", "x.parquet"])
def test_columns_beside_the_features_are_found_by_name(write, tmp_path, name):
    np.savez(tmp_path / "x.npz", X=X[:2], kind=["p", "q"], name=["u", "v"], note=[0])
    write("x.csv", "name,a,note,b,kind\nu,1.5,x,2.0,p\nv,3,y,-4.25,q\n")
    columns = {"a": X[:2, 0], "note": ["x", "y"], "b": X[:2, 1], "kind": ["p", "q"]}
    table(tmp_path / "x.parquet", name=["u", "v"], **columns)
    items = read_items(tmp_path / name, label_column="kind", id_column="name")
    np.testing.assert_array_equal(items.X, X[:2])
    assert items.names == (None if name == "x.npz" else ["a", "b"])
    assert items.labels.tolist() == ["p", "q"]
    assert items.ids.tolist() == ["u", "v"]
    assert items.ignored == ["note"]
    with pytest.raises(InvalidInputError, match="a column 'nope'"):
        read_items(tmp_path / name, label_column="nope")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,2\n3,4\n", None),
        ("a,b\n1,2\n3,4\n", ["a", "b"]),
        ("\ufeffa,b\r\n1,2\r\n\r\n3,4\r\n", ["a", "b"]),
        ("a;b\n1;2\n3;4\n", ["a", "b"]),
        ('"a","b, c"\n1,2\n3,4\n', ["a", "b, c"]),
        (",a,b\n0,1,2\n1,3,4\n", ["a", "b"]),
    ],
)
def test_csv_header_is_detected(write, text, names):
    items = read_items(write("x.csv", text))
    assert items.names == names
    assert items.X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (["a", "b"], ["1", "2"], True),
        (["a", "b"], ["c", "d"], True),
        (["1", "2"], ["3", "4"], False),
        (["cat", "2"], ["dog", "3"], False),
        (["0", "1", "2", "3"], ["5", "5", "5", "5"], True),
        (["", "0", "1", "2", "3"], ["0", "5", "5", "5", "5"], True),
        (["0", "1", "kind"], ["5.0", "6.0", "1"], True),
        (["1.0", ""], ["2.0", "3.0"], False),
        (["1.0", "NA", "3.0"], ["2.0", "3.0", "4.0"], False),
        (["0", "1", "?"], ["2.0", "3.0", "4.0"], False),
        (["NA", "NA"], ["2.0", "3.0"], False),
        (["K", "NA"], ["2.0", "3.0"], True),
        (["0", "1", "2", "3", "kind"], ["5", "5", "5", "5", "cat"], True),
        (["1"], None, False),
    ],
)
def test_what_a_header_is(first, second, expected):
    assert is_header(first, second, counted=True) is expected


def test_a_count_is_data_where_rows_are_numbers():
    assert not is_header(["0", "1", "2", "3"], ["0", "1", "2", "4"], counted=False)


def test_csv_columns_by_number_without_a_header(write):
    items = read_items(write("x.csv", "cat,1.5,2.0\ndog,3.0,-4.25\n"), label_column="0")
    assert items.labels.tolist() == ["cat", "dog"]
    np.testing.assert_array_equal(items.X, X[:2])


@pytest.mark.parametrize(
    ("asked", "X", "labels", "ids"),
    [
        ({"label_column": "0"}, [[2, 1, 1], [3, 4, 0]], [0, 1], None),
        ({"label_column": "3", "id_column": "0"}, [[2, 1], [3, 4]], [1, 0], ["0", "1"]),
        ({"label_column": "0", "features": ["a", "b", "c"]}, [[2, 1, 1], [3, 4, 0]], [0, 1], None),
    ],
)
def test_csv_columns_by_number_where_cells_are_such_numbers(write, asked, X, labels, ids):
    items = read_items(write("x.csv", "0,2,1,1\n1,3,4,0\n"), **asked)
    assert items.X.tolist() == X
    assert items.labels.tolist() == labels
    assert (None if items.ids is None else items.ids.tolist()) == ids
    assert items.names is None


def test_csv_columns_whose_names_are_numbers(write):
    years = read_items(write("x.csv", "1990,1991\n1,2\n"), label_column="1991")
    assert (years.names, years.X.tolist(), years.labels.tolist()) == (["1990"], [[1]], [2])
    assert read_items(write("x.csv", "0,1\n5,6\n"), features=["0", "1"]).X.tolist() == [[5, 6]]


def test_csv_first_item_with_a_missing_value_is_not_dropped(write):
    with pytest.raises(InvalidInputError, match="line 1, column '1': must be a number, got 'NA'"):
        read_items(write("x.csv", "1.0,NA,3.0\n2,3,4\n"))
    words = read_items(write("x.csv", "1.0,NA,3.0\n2,good,4\n"))
    assert (words.ignored, words.X.tolist()) == (["1"], [[1, 3], [2, 4]])


def test_labels_of_two_files_are_compared_alike(write):
    padded = read_labels(write("a.csv", "01\n02\n"), 2, as_written=True)
    words = read_labels(write("b.csv", "01\n1b\n"), 2, as_written=True)
    assert [part.tolist() for part in alike_labels(padded, words)] == [["01", "02"], ["01", "1b"]]
    assert [part.tolist() for part in alike_labels(padded, np.array([1, 2]))] == [[1, 2], [1, 2]]
    assert [part.tolist() for part in alike_labels(np.array([1.0]), np.array(["1", "b"]))] == [["1"], ["1", "b"]]


def test_csv_columns_in_the_order_of_the_model(write):
    path = write("x.csv", "b,extra,a\n2,9,1\n4,9,3\n")
    assert read_items(path, features=["a", "b"]).X.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InvalidInputError, match="'c' is missing"):
        read_items(path, features=["a", "c"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,x\n", "x.csv, line 3, column 'b': must be a number, got 'x'"),
        ("a,b\n1,2\n3,\n", "x.csv, line 3, column 'b': must be a number, got ''"),
        ("a,b\n1,2\n\n3\n", "x.csv, line 4: must have 2 cells, as line 1 has, got 1"),
        ("a,b\n1,2\n3,inf\n", "x.csv, line 3, column 'b': must be a finite number, got inf"),
        ("a,a\n1,2\n", "must name each column once, got 'a' twice"),
        ("a,b\n", "got only a header"),
        ("", "got an empty file"),
        ("a,b\nx,y\n", "must hold a column of numbers, got 'a', 'b'"),
    ],
)
def test_csv_errors_name_file_line_and_column(write, text, message):
    with pytest.raises(InvalidInputError if "cells" not in message else FormatError, match=re.escape(message)):
        read_items(write("x.csv", text))


def test_csv_label_cells_must_not_be_empty(write):
    with pytest.raises(InvalidInputError, match="line 3, column 'kind': must not be empty"):
        read_items(write("x.csv", "a,kind\n1,u\n2,\n"), label_column="kind")


def test_parquet_lists_of_one_length_are_features(tmp_path):
    path = table(tmp_path / "x.parquet", vector=[[1.0, 2.0], [3.0, 4.0]], ragged=[[1.0], [1.0, 2.0]])
    items = read_items(path)
    assert items.X.tolist() == [[1, 2], [3, 4]]
    assert items.names == ["vector[0]", "vector[1]"]
    assert read_items(path, features=items.names).X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("names", "values", "message"),
    [
        (["a"], [[1.0, None]], "row 1, column 'a': must be a finite number"),
        (["a", "a"], [[1.0], [2.0]], "each column once"),
    ],
)
def test_parquet_that_is_no_table_of_numbers_is_refused(tmp_path, names, values, message):
    parquet.write_table(pa.Table.from_arrays(list(map(pa.array, values)), names=names), tmp_path / "x.parquet")
    with pytest.raises(InvalidInputError, match=message):
        read_items(tmp_path / "x.parquet")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = table(tmp_path / "x.parquet", a=[1.0])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=re.escape('pip install "cghash[parquet]"')):
        read_items(path)


def test_standard_input_is_csv_or_npy(stdin):
    stdin(b"a,b\n1,2\n")
    assert read_items("-").X.tolist() == [[1, 2]]
    buffer = io.BytesIO()
    np.save(buffer, X)
    stdin(buffer.getvalue())
    np.testing.assert_array_equal(read_items("-").X, X)


def test_a_pipe_is_read_once(tmp_path):
    import threading

    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"a,b\n1,2\n"))
    writer.start()
    assert read_items(path).X.tolist() == [[1, 2]]
    writer.join()


@pytest.mark.parametrize("content", [np.zeros(3), np.zeros((0, 2)), np.zeros((2, 0)), np.array([["a"]])])
def test_items_are_a_matrix_of_numbers(write, content):
    with pytest.raises(InvalidInputError, match=r"x\.npy must hold"):
        read_items(write("x.npy", content))


def test_pickles_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[{}]], dtype=object))
    np.savez(tmp_path / "x.npz", X=np.array([[{}]], dtype=object))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(FormatError, match="plain numbers"):
            read_items(tmp_path / name)


def test_unknown_suffixes_and_missing_files(write, tmp_path):
    with pytest.raises(FormatError, match=r"must end in one of \.npy"):
        read_items(write("x.doc", "a"))
    for name in ("x.npy", "x.npz", "x.csv", "x.parquet", "x"):
        with pytest.raises(FileNotFoundError):
            read_items(tmp_path / name)


@in_place
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.floats(-1e300, 1e300)))
def test_csv_round_trip(write, values):
    names = [f"x{j}" for j in range(values.shape[1])]
    lines = [",".join(names), *(",".join(map(repr, row)) for row in values.tolist())]
    items = read_items(write("x.csv", "\n".join(lines)))
    np.testing.assert_array_equal(items.X, values)
    assert items.names == names


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", b"1,2\n\x00,3\n"),
        ("x.jsonl", b"[" * 100_000),
        ("x.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 9), }"),
        ("x.npz", b"PK\x03\x04"),
        ("x.parquet", b"PAR1PAR1"),
    ],
)
@pytest.mark.parametrize(
    "read",
    [read_items, *(partial(one, n_items=9) for one in (read_labels, read_triplets, read_duplets))],
    ids=["items", "labels", "triplets", "duplets"],
)
def test_bytes_that_are_no_table_are_refused_by_name(write, read, name, content):
    """Bytes that are altered at random are those of test_fuzz.py."""
    with pytest.raises((InvalidInputError, FormatError), match=re.escape(name)):
        read(write(name, content))


# Labels


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("y.csv", "kind\na\nb\na\n", ["a", "b", "a"]),
        ("y.csv", "a\nb\na\n", ["a", "b", "a"]),
        ("y.txt", "3\n1\n3\n", [3, 1, 3]),
        ("y.csv", "label\n3\n1\n3\n", [3, 1, 3]),
        ("y.txt", "0.5\n1\n2\n", [0.5, 1.0, 2.0]),
    ],
)
def test_labels_from_text(write, name, text, expected):
    labels = read_labels(write(name, text), 3)
    assert labels.tolist() == expected


def test_labels_from_arrays(write, tmp_path):
    assert read_labels(write("y.npy", np.array([1, 2])), 2).tolist() == [1, 2]
    assert read_labels(write("y.npy", np.eye(2)), 2).shape == (2, 2)
    np.savez(tmp_path / "y.npz", y=["a", "b"], X=X)
    assert read_labels(tmp_path / "y.npz", 2).tolist() == ["a", "b"]
    assert read_labels(table(tmp_path / "y.parquet", kind=["a", "b"]), 2).tolist() == ["a", "b"]


def test_labels_must_be_as_many_as_items(write, tmp_path):
    with pytest.raises(InvalidInputError, match=r"one label for each of 3 items, got shape \(2,\)"):
        read_labels(write("y.txt", "1\n2\n"), 3)
    with pytest.raises(InvalidInputError, match="one column of labels, got 2"):
        read_labels(write("y.csv", "1,2\n1,2\n1,2\n"), 3)
    with pytest.raises(InvalidInputError, match="must not be missing"):
        read_labels(table(tmp_path / "y.parquet", kind=["a", None]), 2)


# Comparisons


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.npy", np.array([[0, 1, 2], [2, 1, 0]])),
        ("t.csv", "0,1,2\n2,1,0\n"),
        ("t.csv", "anchor,near,far\n0,1,2\n2,1,0\n"),
        ("t.csv", "negative,Anchor,positive,who\n2,0,1,x\n0,2,1,x\n"),
        ("t.jsonl", '{"anchor": 0, "near": 1, "far": 2}\n\n[2, 1, 0]\n'),
        ("t.jsonl", '{"anchor": "0", "positive": 1.0, "negative": 2}\n{"far": 0, "near": 1, "anchor": 2}'),
    ],
)
def test_triplets_by_row_number(write, name, content):
    rows, weights = read_triplets(write(name, content), 3)
    assert rows.tolist() == [[0, 1, 2], [2, 1, 0]]
    assert weights is None


def test_triplets_from_parquet(tmp_path):
    path = table(tmp_path / "t.parquet", far=[2], anchor=[0], near=[1], weight=[2.5])
    rows, weights = read_triplets(path, 3)
    assert rows.tolist() == [[0, 1, 2]]
    assert weights.tolist() == [2.5]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "weight,anchor,near,far\n0.5,0,1,2\n2,2,1,0\n"),
        ("t.csv", "0,1,2,0.5\n2,1,0,2\n"),
        ("t.jsonl", '{"anchor": 0, "near": 1, "far": 2, "weight": 0.5}\n[2, 1, 0, 2]\n'),
    ],
)
def test_triplet_weights(write, name, text):
    rows, weights = read_triplets(write(name, text), 3)
    assert rows.tolist() == [[0, 1, 2], [2, 1, 0]]
    assert weights.tolist() == [0.5, 2]


@pytest.mark.parametrize(
    "ids", [["u", "v", "w"], np.array([10, 20, 30]), np.array([10.0, 20.0, 30.0]), ["10", "20", "30"]]
)
def test_triplets_by_id(write, ids):
    ids = np.asarray(ids)
    names = [str(i).removesuffix(".0") for i in ids]
    rows, _ = read_triplets(write("t.csv", f"anchor,near,far\n{names[2]},{names[0]}, {names[1]}\n"), 3, ids)
    assert rows.tolist() == [[2, 0, 1]]
    as_json = json.dumps({"anchor": ids[2].item(), "near": ids[0].item(), "far": ids[1].item()})
    assert read_triplets(write("t.jsonl", as_json), 3, ids)[0].tolist() == [[2, 0, 1]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "anchor,near,far\n0,1,2\n0,1,3\n", "t.csv, line 3: must be a row number from 0 to 2, got '3'"),
        ("t.csv", "anchor,near,far\n0,x,2\n", "t.csv, line 2: must be a row number from 0 to 2, got 'x'; ids need"),
        ("t.csv", "0,1,1\n", "t.csv, line 1: must name 3 different items, got 0, 1, 1"),
        ("t.csv", "0,1\n", "t.csv: must have the columns anchor, near, far, got 2 columns"),
        ("t.csv", "a,b,c\n0,1,2\n", "t.csv: must have the columns anchor, near, far, got 'a', 'b', 'c'; rename"),
        ("t.csv", "anchor,near,far,weight\n0,1,2,-1\n", "t.csv, line 2: weight must be a number of at least 0"),
        ("t.csv", "anchor,near,far\n", "t.csv must hold at least one row of anchor, near, far"),
        ("t.jsonl", '{"anchor": 0}\n', "t.jsonl, line 1: must have the columns anchor, near, far, got 'anchor'"),
        ("t.jsonl", "[0, 1, 2]\n7\n", "t.jsonl, line 2: must be an object with anchor, near, far, got 7"),
        ("t.jsonl", "[0, 1, 2]\n{oops\n", "t.jsonl, line 2: must be JSON, got '{oops'"),
        ("t.jsonl", "[0, 1, 2, 1]\n[0, 1, 2]\n", "t.jsonl must give every row a weight or none"),
    ],
)
def test_triplet_errors_name_file_and_line(write, name, text, message):
    with pytest.raises((InvalidInputError, FormatError), match=re.escape(message)):
        read_triplets(write(name, text), 3)


def test_unknown_and_repeated_ids(write):
    path = write("t.csv", "anchor,near,far\nu,v,w\nu,v,z\n")
    with pytest.raises(InvalidInputError, match="line 3: no item has the id 'z'"):
        read_triplets(path, 3, np.array(["u", "v", "w"]))
    with pytest.raises(InvalidInputError, match="got 'u' in rows 0 and 2"):
        read_triplets(path, 3, np.array(["u", "v", "u"]))


def test_npy_triplets_must_be_whole_numbers_of_three(write):
    for wrong in (np.zeros((2, 3)), np.zeros((2, 2), dtype=int)):
        with pytest.raises(InvalidInputError, match=r"shape \(m, 3\)"):
            read_triplets(write("t.npy", wrong), 3)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.npy", np.array([[0, 2]])),
        ("d.csv", "second,first\n2,0\n"),
        ("d.csv", "this,that\n0,2\n"),
        ("d.csv", "0,2\n"),
        ("d.jsonl", '{"a": 0, "b": 2}'),
    ],
)
def test_duplets(write, name, content):
    assert read_duplets(write(name, content), 3).tolist() == [[0, 2]]


@in_place
@given(st.lists(st.permutations(range(6)).map(lambda p: p[:3]), min_size=1, max_size=8), st.booleans())
def test_jsonl_round_trip(write, rows, as_objects):
    names = ("anchor", "near", "far")
    lines = [json.dumps(dict(zip(names, row, strict=True)) if as_objects else row) for row in rows]
    assert read_triplets(write("t.jsonl", "\n".join(lines)), 6)[0].tolist() == rows


# Files that promise more than they hold, or hold much more than their size


def npy_of(shape, content=b"", kind="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


@pytest.mark.parametrize("shape", [(2**60,), (2**40, 3), (4, 2)])
@pytest.mark.parametrize("kind", ["<f8", "|S0"])
def test_npy_header_that_promises_more_than_the_file_holds_is_refused(shape, kind, write, stdin):
    promised = npy_of(shape, bytes(7), kind)
    with pytest.raises(FormatError, match="its header names shape"):
        read_items(write("x.npy", promised))
    stdin(promised)
    with pytest.raises(FormatError, match="its header names shape"):
        read_items("-")


def test_npy_header_of_lists_in_lists_is_refused(write):
    header = b"(" * 4000 + b"\n"
    with pytest.raises(FormatError):
        read_items(write("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header))


def test_npz_of_bytes_that_are_no_array_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X", b"not an array")
    with pytest.raises(FormatError, match=r"x\.npz must be an \.npz file"):
        read_items(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["x.npz", "x.parquet"])
def test_a_file_that_inflates_a_hundredfold_is_refused_before_it_is_read(name, tmp_path, monkeypatch):
    zeros = np.zeros((1 << 17, 1))  # a megabyte, in a file of a few kilobytes
    np.savez_compressed(tmp_path / "x.npz", X=zeros)
    parquet.write_table(pa.table({"x": zeros[:, 0]}), tmp_path / "x.parquet", compression="zstd")
    assert len(read_items(tmp_path / name).X) == len(zeros)  # no more than a file may always hold
    monkeypatch.setattr(sources, "ALWAYS", zeros.nbytes // 2)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was read"))
    monkeypatch.setattr(parquet, "ParquetFile", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(FormatError, match="must not hold much more than its size"):
        read_items(tmp_path / name)


def test_parquet_footer_is_read_as_pyarrow_reads_it(tmp_path):
    columns = {"v": np.arange(12.0), "w": [f"word {i}" for i in range(12)], "l": [[1.0, 2.0]] * 12, "b": [True] * 12}
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=5)
    with open(tmp_path / "x.parquet", "rb") as file:
        groups = read_groups(file, "x")
        assert file.tell() == 0
    metadata = parquet.read_metadata(tmp_path / "x.parquet")
    for i, group in enumerate(groups):
        theirs = metadata.row_group(i)
        assert group.n_rows == theirs.num_rows
        for j, chunk in enumerate(group.chunks):
            assert chunk.column == theirs.column(j).path_in_schema.split(".")[0]
            assert chunk.n_values == theirs.column(j).num_values
            assert chunk.n_bytes >= theirs.column(j).total_uncompressed_size
    assert [group.n_rows for group in groups] == [5, 5, 2]


def test_parquet_footer_counts_bytes_of_fixed_width_and_not_nulls(tmp_path):
    fixed = pa.array([b"x" * 1000] * 9, pa.binary(1000))
    parquet.write_table(pa.table({"f": fixed, "n": pa.nulls(9, pa.float64())}), tmp_path / "x.parquet")
    with open(tmp_path / "x.parquet", "rb") as file:
        fixed, nulls = read_groups(file, "x")[0].chunks
    assert fixed.n_bytes == 9000
    assert nulls.n_bytes < 72


@pytest.mark.parametrize("reader", [read_items, partial(read_triplets, n_items=9), partial(read_labels, n_items=9)])
def test_parquet_cut_short_or_altered_is_refused(reader, tmp_path):
    whole = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"a": np.arange(9), "b": np.arange(9.0), "c": np.arange(9)}), whole)
    content = whole.read_bytes()
    for damaged in (content[:-1], content[: len(content) // 2], content[:-8] + b"\xff\xff\xff\xffPAR1", b"PAR1"):
        (tmp_path / "damaged.parquet").write_bytes(damaged)
        with pytest.raises(FormatError, match=r"damaged\.parquet"):
            reader(tmp_path / "damaged.parquet")


def test_labels_that_are_structures_are_refused(write):
    labels = np.zeros(3, dtype=[("a", "<f8"), ("b", "<f8", (2,))])
    with pytest.raises(InvalidInputError, match="labels must be numbers or words"):
        read_labels(write("y.npy", labels), 3)


def texts_of_a_bomb(path, length, rows, **how):
    """A file of a few hundred bytes, whose rows all name one long text."""
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["a" * length]))
    table = pa.table({"x": np.arange(rows) % 3.0, "s": text})
    parquet.write_table(
        table, path, compression="zstd", dictionary_pagesize_limit=1 << 30, store_schema=False, write_statistics=False
    )


def test_a_text_that_every_row_of_a_parquet_names_is_in_memory_once(tmp_path):
    path = tmp_path / "x.parquet"
    texts_of_a_bomb(path, 1 << 20, 30_000)  # 30 GB, were each a text of its own
    assert path.stat().st_size < 2000
    code = (
        "import resource, sys; from cghash.reading import item_blocks, read_items\n"
        "import pyarrow, pyarrow.parquet\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert read_items(sys.argv[1]).ignored == ['s']\n"
        "assert sum(map(len, item_blocks(sys.argv[1], ['x']))) == 30000\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 500_000  # KB


def test_labels_that_take_gigabytes_as_words_are_refused(tmp_path):
    texts_of_a_bomb(tmp_path / "x.parquet", 1 << 20, 30_000)
    with pytest.raises(InvalidInputError, match="labels must be shorter: 30000 of up to 1048576 letters"):
        read_items(tmp_path / "x.parquet", label_column="s")


def test_texts_of_a_parquet_come_as_they_were_written_over_row_groups(tmp_path):
    words = ["ä", None, "b", "ä", ""]
    lists = [["u", "v"], ["w", "x"], ["y"], [], None]
    table = pa.table({"s": words, "b": [b"1", b"2", None, b"1", b"3"], "l": lists, "n": [[1.0, 2.0]] * 5})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    columns = read_columns(source_of(tmp_path / "x.parquet"))
    assert columns["s"].tolist() == words
    assert columns["b"].tolist() == [b"1", b"2", None, b"1", b"3"]
    assert columns["l"].tolist() == [None] * 5  # not read
    assert columns["n"].tolist() == [[1.0, 2.0]] * 5
