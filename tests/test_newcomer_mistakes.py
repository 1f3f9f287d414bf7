"""What a newcomer does wrong, and what she reads: what is wrong, what was expected, what came, what to do.

Mistakes whose messages other files test (`test_bad_input.py`, `test_reading.py`, `test_cli*.py`, …) are not here again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from sklearn.datasets import load_digits

import cghash
from cghash import CGHash, storage
from cghash._items import validated_items
from cghash.codes import pack, unpack, weighted_hamming
from cghash.criteria import evaluate
from cghash.exceptions import FormatError, InvalidInputError, NothingToLearnError
from cghash.index import WeightedHammingIndex
from cghash.peers import ITQ, LSH

from .command_line import refused, run

pytestmark = [
    pytest.mark.filterwarnings("ignore::cghash.exceptions.FewerBitsWarning"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]

DIGITS, LABELS = load_digits(return_X_y=True)
X, Y = DIGITS[:100], LABELS[:100]
TABLE = pd.DataFrame(X, columns=[f"f{j}" for j in range(64)])
TRIPLETS = np.array([[0, 1, 2], [3, 4, 5]])


def hasher(n_bits=3, **changes):
    return CGHash(n_bits, **({"C": 1e-3, "n_neighbors": 3, "random_state": 0, "n_jobs": 1} | changes))


@pytest.fixture(scope="module")
def model():
    return hasher(12).fit(TABLE, Y)


@pytest.fixture(scope="module")
def index(model):
    return model.build_index(TABLE)


def with_nan():
    spoiled = X.copy()
    spoiled[[4, 7], [20, 3]] = np.nan
    return spoiled


# The library: what is handed in, and every word of the answer that counts

BITS = np.random.default_rng(0).integers(0, 2, (100, 12)).astype(np.uint8)
BITS[0] = 1
CODES = pack(BITS)
BIG_ENDIAN = np.packbits(BITS, axis=1)  # 255, 240 for twelve ones; ours are 255, 15

LEARNING = {
    "an item, not a row": (lambda: hasher().fit(X[0]), ["X must be (n, d)", "got shape (64,)", "X.reshape(1, -1)"]),
    "pictures": (lambda: hasher().fit(X.reshape(-1, 8, 8)), ["got shape (100, 8, 8)", "X.reshape(len(X), -1)"]),
    "rows of two lengths": (
        lambda: hasher().fit([[1, 2, 3], [4, 5]]),
        ["X must be (n, d)", "rows of one length", "got rows of 2 to 3 numbers"],
    ),
    "missing values": (
        lambda: hasher().fit(with_nan()),
        ["contains NaN", "2 of 100 items", "row 4, column 20", "Leave such items out, or fill them in"],
    ),
    "missing values, sparse": (
        lambda: hasher().fit(sp.csr_matrix(with_nan())),
        ["contains NaN", "2 of 100 items", "row 4, column 20", "Leave such items out"],
    ),
    "missing values, for a peer": (lambda: LSH(8).fit(with_nan()), ["contains NaN", "row 4, column 20"]),
    "a column of words": (
        lambda: hasher().fit(TABLE.assign(name=["7", *["red"] * 99])),
        ["X must hold numbers", "'red'", "row 1, column 'name'", "leave that column out"],
    ),
    "words in an array": (lambda: ITQ(4).fit(np.array([[1, 2], [3, "b"]], object)), ["'b'", "row 1, column 1"]),
    "a path": (
        lambda: hasher().fit("items.npy"),
        ["X must be an array (n, d)", "got the path 'items.npy'", "read_items(path).X reads it"],
    ),
    "complex numbers": (lambda: hasher().fit(X * 1j), ["Complex data not supported", "X must be real", "X.imag"]),
    "items without a label": (
        lambda: hasher().fit(X, [None, None, *["a", "b"] * 49]),
        ["y must be labels", "got no label (None) for 2 of 100 items", "row 0", "leave these items out"],
    ),
    "labels of pandas, some missing": (
        lambda: hasher().fit(X, pd.Series(["a", None, *["b"] * 98], dtype="string")),
        ["got no label (<NA>) for 1 of 100 items", "row 1"],
    ),
    "lists of tags": (
        lambda: hasher().fit(X, [["a", "b"], *[["a"]] * 99]),
        ["y must be labels", "lists of different lengths", "MultiLabelBinarizer"],
    ),
    "sets of tags": (lambda: hasher().fit(X, [{"a"}] * 100), ["got a set for each item", "MultiLabelBinarizer"]),
    "numbers to predict": (
        lambda: hasher().fit(X, np.linspace(0, 1, 100) ** 2),
        ["y must be labels", "continuous (0, …)", "numpy.digitize"],
    ),
    "triplets as labels": (lambda: hasher().fit(X, TRIPLETS), ["y must be labels", "go to triplets="]),
    "triplets that count from 1": (
        lambda: hasher().fit(X, triplets=TRIPLETS + 95),
        ["from 0 to 99", "got [98, 99, 100] in row 1", "do they count from 1? Subtract 1"],
    ),
    "triplets in columns": (
        lambda: hasher().fit(X, triplets=np.arange(12).reshape(3, 4)),
        ["(anchor, near, far)", "got shape (3, 4)", "transpose"],
    ),
    "weights beside triplets": (
        lambda: hasher().fit(X, triplets=np.c_[TRIPLETS, [1, 1]]),
        ["shape (m, 3)", "got shape (2, 4)", "weights go to triplet_weights"],
    ),
    "one triplet": (lambda: hasher().fit(X, triplets=[0, 1, 2]), ["got shape (3,)", "[[0, 1, 2]]"]),
    "triplets that contradict each other": (
        lambda: hasher().fit(X, triplets=[[0, 1, 2], [0, 2, 1]]),
        ["satisfies more triplets than it breaks", "Or do the comparisons contradict each other?"],
    ),
    "a hyphen in the loss": (
        lambda: hasher(loss="squared-hinge").fit(X, Y),
        ["loss must be one of", "got 'squared-hinge'", "did you mean 'squared_hinge'?"],
    ),
    "a plural": (lambda: hasher(hash_function="trees").fit(X, Y), ["hash_function", "did you mean 'tree'?"]),
    "British spelling": (lambda: hasher(sampling="neighbours").fit(X, Y), ["did you mean 'neighbors'?"]),
    "a capital": (lambda: hasher(regularizer="L1").fit(X, Y), ["did you mean 'l1'?"]),
}


@pytest.mark.parametrize(("mistake", "words"), LEARNING.values(), ids=LEARNING)
def test_fit_says_what_to_do(mistake, words):
    with pytest.raises((InvalidInputError, NothingToLearnError)) as error:
        mistake()
    assert_says(str(error.value), words)


CODING = {
    "items of another dimension": (
        lambda model, index: model.encode(X[:, :10]),
        ["X has 10 features, but CGHash is expecting 64", "X must be items as in fit"],
    ),
    "items on their side": (lambda model, index: model.encode(X[:50].T), ["X has 50 features", "X.T looks like it"]),
    "codes to be encoded": (lambda model, index: model.build_index(CODES), ["X has 2 features", "not their codes"]),
    "columns in another order": (
        lambda model, index: model.encode(TABLE[TABLE.columns[::-1]]),
        ["feature names should match", "same order", "X[model.feature_names_in_]"],
    ),
    "codes where bits are meant": (
        lambda model, index: weighted_hamming(BITS, CODES, model.weights_),
        ["database must hold only 0 and 1", "packed codes?", "cghash.codes.unpack(codes, n_bits)"],
    ),
    "codes to be evaluated": (
        lambda model, index: evaluate(CODES, CODES, model.weights_, Y, Y),
        ["query_bits must hold only 0 and 1", "cghash.codes.unpack"],
    ),
    "signs where bits are meant": (
        lambda model, index: pack(2 * BITS.astype(int) - 1),
        ["bits must hold only 0 and 1", "got -1", "(1 + h) / 2"],
    ),
    "bits where codes are meant": (
        lambda model, index: unpack(BITS, 12),
        ["codes must have 2 bytes an item for n_bits=12", "got 12", "are they bits already?"],
    ),
    "items where codes are meant": (
        lambda model, index: index.search(X, 3),
        ["packed uint8 of shape (n, 2)", "got shape (100, 64)", "a model's encode gives their codes"],
    ),
    "codes as whole numbers of 64 bits": (
        lambda model, index: index.search(CODES.astype(np.int64), 3),
        ["packed uint8", "dtype int64", "astype(numpy.uint8)"],
    ),
    "a mask of numbers": (
        lambda model, index: index.search(CODES, 3, filter=(Y == 3).astype(int)),
        ["filter must be ids, or a boolean mask", "got 100 numbers of 0 and 1", "astype(bool)"],
    ),
    "names as ids": (
        lambda model, index: WeightedHammingIndex(12).add(CODES, [f"item {i}" for i in range(100)]),
        ["ids must be a 1-D array of int64", "dtype <U7", "keep names in a list of your own"],
    ),
}
CODING |= {
    f"bits from the left, {what}": (
        call,
        ["must have 0 in the bits past n_bits=12", "got [255, 240] in row 0", 'bitorder="little"'],
    )
    for what, call in {
        "added": lambda model, index: WeightedHammingIndex(12).add(BIG_ENDIAN),
        "searched": lambda model, index: index.search(BIG_ENDIAN, 3),
        "unpacked": lambda model, index: unpack(BIG_ENDIAN, 12),
        "ranked": lambda model, index: model.distances(TABLE, BIG_ENDIAN),
    }.items()
}


@pytest.mark.native
@pytest.mark.parametrize(("mistake", "words"), CODING.values(), ids=CODING)
def test_codes_and_search_say_what_to_do(model, index, mistake, words):
    with pytest.raises(InvalidInputError) as error:
        mistake(model, index)
    assert_says(str(error.value), words)


def assert_says(message, words):
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} not in: {message}"


# What looks like a mistake, and serves


@pytest.mark.native
def test_labels_of_any_kind_are_the_same_classes():
    words = np.array([f"digit {label}" for label in Y])
    kinds = [words, words.tolist(), pd.Series(words), pd.Series(words).astype("category"), Y.astype(float), Y[:, None]]
    expected = hasher().fit(X, Y).encode(X)
    for labels in kinds:
        np.testing.assert_array_equal(hasher().fit(X, labels).encode(X), expected)


@pytest.mark.native
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("names", [("anchor", "near", "far"), ("anchor", "positive", "negative")])
def test_triplets_of_a_table_are_found_by_name(frame, names):
    expected = hasher().fit(X, triplets=TRIPLETS)
    turned = frame({name: TRIPLETS[:, column] for column, name in reversed(list(enumerate(names)))})
    np.testing.assert_array_equal(hasher().fit(X, triplets=turned).encode(X), expected.encode(X))
    assert expected.score(X, triplets=turned) == expected.score(X, triplets=TRIPLETS)


@pytest.mark.native
def test_triplets_of_a_table_with_other_names_are_taken_in_their_order():
    table = pd.DataFrame(TRIPLETS, columns=["query", "clicked", "skipped"])
    expected = hasher().fit(X, triplets=TRIPLETS).encode(X)
    np.testing.assert_array_equal(hasher().fit(X, triplets=table).encode(X), expected)


@pytest.mark.parametrize(
    ("dtype", "kept_as"),
    [("float64", "float64"), ("float32", "float32"), ("float16", "float32"), ("int8", "float32"), ("uint16", "float32"),
     ("bool", "float32"), ("int32", "float64"), ("longdouble", "float64")],
)  # fmt: skip
def test_items_become_what_holds_them_exactly_and_only_then_are_copied(dtype, kept_as):
    items = (X > 8).astype(dtype) if dtype == "bool" else X.astype(dtype)
    checked = validated_items(CGHash(), items, reset=True)
    assert checked.dtype == kept_as
    assert np.shares_memory(checked, items) == (dtype == kept_as)
    np.testing.assert_array_equal(checked, items.astype(np.float64))


@pytest.mark.native
def test_filter_of_few_ids_is_no_mask():
    index = WeightedHammingIndex(8)
    index.add(np.arange(2, dtype=np.uint8)[:, None])
    assert index.search(np.array([1], np.uint8), 2, filter=[0, 1])[1].tolist() == [1, 0]


# Files that are something else


@pytest.fixture(scope="module")
def files(model, index, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    model.save(folder / "model.cghash")
    index.save(folder / "codes.index")
    checkpointed = hasher(checkpoint=folder / "fit.ckpt").fit(X, Y)
    assert checkpointed.n_bits_ == 3
    (folder / "words.txt").write_text("hello\nworld\n")
    (folder / "empty").touch()
    whole = (folder / "model.cghash").read_bytes()
    (folder / "half.cghash").write_bytes(whole[: len(whole) // 2])
    (folder / "head.cghash").write_bytes(whole[:500])
    content = bytearray((folder / "codes.index").read_bytes())
    content[8] = 99  # the version
    (folder / "newer.index").write_bytes(content)
    with safe_open(folder / "model.cghash", "numpy") as file:
        about = json.loads(file.metadata()["cghash"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    kind = about.pop("format")
    storage.save(folder / "newer.cghash", kind, 99, arrays, {k: v for k, v in about.items() if k != "version"})
    write_tables(folder)
    return folder


def write_tables(folder):
    np.save(folder / "x.npy", X)
    np.save(folder / "narrow.npy", X[:, :10])
    np.save(folder / "one.npy", X[0])
    np.save(folder / "pictures.npy", X.reshape(-1, 8, 8))
    np.save(folder / "nan.npy", with_nan())
    np.save(folder / "objects.npy", np.array([[1.0], "a"], dtype=object), allow_pickle=True)
    np.save(folder / "codes.npy", CODES)
    np.save(folder / "bits.npy", BITS)
    np.save(folder / "y.npy", Y)
    np.savez(folder / "named.npz", items=X, labels=Y)
    numbers = np.random.default_rng(0).normal(size=(30, 2)).round(3).tolist()
    rows = [(100 + i, a, b, "cat" if i % 2 else "dog", i % 2) for i, (a, b) in enumerate(numbers)]
    lines = [",".join(map(str, row)) for row in rows]
    plain = [f"{a},{b}" for _, a, b, *_ in rows]
    tables = {
        "items.csv": ["id,a,b,kind,class", *lines],
        "gap.csv": ["a,b", *plain[:3], "1,", *plain[3:]],
        "comma.csv": ["a;b", *(line.replace(",", ";").replace(".", ",") for line in plain)],
        "spaces.csv": [line.replace(",", " ") for line in plain],
        "counted.csv": ["anchor,near,far", "1,2,100"],
    }
    for name, said in tables.items():
        (folder / name).write_text("\n".join(said) + "\n")
    (folder / "latin.csv").write_bytes("name,a\nHühner,1\n".encode("latin1"))
    with zipfile.ZipFile(folder / "sheet.csv", "w") as sheet:
        sheet.writestr("xl/workbook.xml", "<workbook/>")
    (folder / "no pictures").mkdir()


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "words.txt": ["is not a cghash file", "it is text"],
        "empty": ["is not a cghash file", "it is empty"],
        "half.cghash": ["is damaged", "cut short", "copy or write it again"],
        "head.cghash": ["is damaged", "cut short, at 500 bytes"],
        "codes.index": ["is not a cghash file", "it is an index file", "WeightedHammingIndex.load"],
        "x.npy": ["it is an array of NumPy (.npy)"],
        "named.npz": ["it is a zip archive (.npz"],
        "fit.ckpt": ["must be a cghash-model file", "got a 'cghash-checkpoint' file", "goes on from it"],
        "newer.cghash": ["has format version 99", "reads versions 1 to", "a newer cghash wrote it", "--upgrade"],
    }.items(),
)
def test_file_that_is_no_model_is_called_what_it_is(files, name, words):
    with pytest.raises(FormatError) as error:
        cghash.load(files / name)
    assert_says(str(error.value), [name, *words])


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "model.cghash": ["is not an index of cghash", "it is a model or a checkpoint", "cghash.load"],
        "codes.npy": ["is not an index of cghash", "it is an array of NumPy"],
        "words.txt": ["is not an index of cghash", "it is text"],
        "newer.index": ["has format version 99", "reads version 1", "a newer cghash wrote it", "--upgrade"],
    }.items(),
)
def test_file_that_is_no_index_is_called_what_it_is(files, name, words):
    with pytest.raises(FormatError) as error:
        WeightedHammingIndex.load(files / name)
    assert_says(str(error.value), [name, *words])


# The command line: one line, exit code 2, no trace

COMMANDS = {
    "fot x.npy": ["No such command 'fot'", "Did you mean 'fit'?", "cghash --help"],
    "export onxx model.cghash": ["No such command 'onxx'", "Did you mean 'onnx'?"],
    "fit one.npy -o m": ["one.npy must hold a 2-D array", "got shape (64,)", "reshape(1, -1)"],
    "fit pictures.npy -o m": ["got shape (100, 8, 8)", "reshape(len(X), -1)"],
    "fit nan.npy -o m": ["contains NaN", "2 of 100 items", "row 4, column 20", "fill them in"],
    "fit objects.npy -o m": ["objects.npy", "never unpickled", "numpy.array(rows, dtype=float)"],
    "fit named.npz -o m": ["must hold an array X", "got 'items', 'labels'", "numpy.savez(file, X=items, y=labels)"],
    "fit x.npy --label-column kind -o m": ["x.npy", "which has no columns", "--labels"],
    "fit x.npy --id-column id -o m": ["x.npy", "which has no columns", "numpy.savez(file, X=items, id=ids)"],
    "fit items.csv --label-column Kind -o m": ["must have a column 'Kind'", "got 'id'", "did you mean 'kind'?"],
    "fit gap.csv -o m": ["gap.csv, line 5, column 'b'", "must be a number, got ''", "fill in missing values"],
    "fit comma.csv -o m": ["must hold a column of numbers", "decimals have a point"],
    "fit spaces.csv -o m": ["must hold a column of numbers", "separated by commas, tabs or semicolons"],
    "fit latin.csv -o m": ["must be text in UTF-8", "save it as UTF-8"],
    "fit sheet.csv -o m": ["sheet.csv must be text", "got binary data", "Save it as CSV"],
    "fit - -o m": ["standard input must hold rows", "got an empty file", "piped"],
    "fit x.npy --triplets counted.csv -o m": ["counted.csv, line 2", "from 0 to 99", "'100'", "counted from 0"],
    "fit . -o m": ["is a directory: '.'", "a file is needed"],
    "encode model.cghash narrow.npy": ["narrow.npy must hold items of 64 features", "model.cghash", "(100, 10)"],
    "encode x.npy model.cghash": ["x.npy is not a cghash file", "array of NumPy"],
    "encode model.cghash x.npy -o codes.parquet": ["--output must end in .npy", "'codes.parquet'", "cghash export"],
    "evaluate model.cghash codes.npy --labels y.npy": ["of 64 features", "got shape (100, 2)", "takes items"],
    "evaluate model.cghash x.npy --labels y.npy --database narrow.npy --database-labels y.npy": [
        "narrow.npy must hold"
    ],
    "index build x.npy -o i": ["must hold packed codes", "got shape (100, 64)", "--items x.npy --model MODEL"],
    "index build bits.npy --model model.cghash -o i": ["must hold packed codes", "bits?", "without --bits"],
    "index build --items narrow.npy --model model.cghash -o i": ["narrow.npy must hold items of 64 features"],
    "search codes.index --queries bits.npy": ["queries must be packed codes", "got shape (100, 12)", "bits?"],
    "search model.cghash --queries codes.npy": ["is not an index of cghash", "it is a model or a checkpoint"],
    "workspace new w --items words.txt": ["holds neither texts nor pictures", "column 'text'", "--vectors"],
}


@pytest.mark.native
@pytest.mark.parametrize(("line", "words"), COMMANDS.items(), ids=COMMANDS)
def test_command_says_what_to_do_in_one_line(here, line, words):
    assert_says(refused(line, input="", after_talk=True), words)


@pytest.fixture
def here(files, monkeypatch):
    monkeypatch.chdir(files)


@pytest.mark.native
def test_columns_of_ids_and_labels_among_the_features_are_told(here):
    warned = run("fit items.csv -b 1 -q --seed 0 -o m").stderr.splitlines()
    assert len(warned) == 2
    assert_says(warned[0], ["warning: items.csv: column 'id' is taken as a feature", "--id-column id leaves it out"])
    assert_says(warned[1], ["warning: ", "column 'class'", "looks like labels", "--label-column class learns from it"])
    named = run("fit items.csv --id-column id --label-column class -b 1 -q --seed 0 -o m")
    assert "warning" not in named.stderr


@pytest.mark.native
def test_bits_that_are_indexed_as_codes_are_told(here):
    told = run("index build bits.npy -q -o bits.index").stderr
    assert_says(told, ["warning: bits.npy holds only 0 and 1", "cghash.codes.pack"])
    assert run("index build codes.npy -q -o other.index").stderr == ""


@pytest.mark.native
def test_more_neighbours_than_codes_are_all_codes(here):
    answer = run("search codes.index --queries codes.npy -k 1000 --format jsonl")
    assert "100 queries, 100 of 100 codes each" in answer.stderr
    assert len(json.loads(answer.stdout.splitlines()[0])["ids"]) == 100


@pytest.mark.native
def test_workspace_that_is_there_already_is_offered(here, tmp_path):
    line = f"workspace new {tmp_path / 'w'} --items x.npy"
    run(line)
    assert_says(refused(line), ["folder must not exist yet", f"'cghash serve {tmp_path / 'w'}' opens the workspace"])


# In a process of its own, as she has it

WITHOUT_PSYCOPG = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "psycopg":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from cghash.cli import main
main()
"""


@pytest.mark.parametrize(
    ("how", "line", "code", "words"),
    [
        (["-m", "cghash"], "fit nan.npy -o m", 2, ["contains NaN", "fill them in"]),
        (
            ["-c", WITHOUT_PSYCOPG],
            "export postgres codes.npy --model model.cghash --database postgresql://x",
            1,
            ["psycopg is needed", 'pip install "cghash[postgres]"'],
        ),
    ],
    ids=["missing values", "missing package"],
)
def test_process_says_one_line_and_leaves_with_its_code(files, how, line, code, words):
    command = [sys.executable, *how, *line.split()]
    done = subprocess.run(command, cwd=files, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.count("cghash: error: ") == 1
    assert_says(done.stderr, words)
