"""The items of a workspace: written once, found by row, by id and by filters."""

from __future__ import annotations

import sqlite3
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cghash.exceptions import FormatError, InvalidInputError
from cghash.workspace.item_filters import parse_filter
from cghash.workspace.item_table import Attribute, ItemTable
from cghash.workspace.item_writer import FEW, MOST_ATTRIBUTES, ItemWriter, NewItem

from .workspaces import spoil

ATTRIBUTES = [("colour", "text"), ("year", "number"), ("a=b", "text"), ("a", "number")]
ROWS = [
    ("first", ("red", 1990, "x", 1)),
    ("second", ("dark Red", 2001, None, 2.5)),
    ("<b>third</b>", (None, None, "c", None)),
    ("vierter ☃", ("blue", 1990, "x=1", -3)),
]


def written(path, attributes, items):
    with ItemWriter(path, attributes) as writer:
        writer.add(items)
    return ItemTable(path)


@pytest.fixture
def items(tmp_path):
    table = written(tmp_path / "items.sqlite", ATTRIBUTES, [NewItem(key, values) for key, values in ROWS])
    yield table
    table.close()


# Items


def test_items_come_back_as_they_were_written(items):
    assert len(items) == 4
    got = items.get([2, 0, 2])
    assert [item.row for item in got] == [2, 0, 2]
    assert got[0].id == "<b>third</b>"
    assert got[1].attributes == {"colour": "red", "year": 1990, "a=b": "x", "a": 1}
    assert got[0].attributes == {"colour": None, "year": None, "a=b": "c", "a": None}
    assert items.ids() == [key for key, _ in ROWS]
    assert items.column("year") == [1990, 2001, None, 1990]


def test_file_and_text_stand_beside_the_attributes(tmp_path):
    table = written(
        tmp_path / "i", [("n", "number")], [NewItem("a", (1,), "000/000000.jpg", "words"), NewItem("b", (2,))]
    )
    assert [(item.file, item.text) for item in table.get([0, 1])] == [("000/000000.jpg", "words"), (None, None)]
    assert table.files() == ["000/000000.jpg", None]
    assert list(table.texts(batch=1)) == [["words"], [""]]


def test_ids_are_found_and_others_are_not(items):
    assert [items.find(key) for key, _ in ROWS] == [0, 1, 2, 3]
    assert items.find("fifth") is None
    assert items.find("") is None


@pytest.mark.parametrize("row", [-1, 4, 10**12])
def test_a_row_that_is_not_there_is_named(items, row):
    with pytest.raises(InvalidInputError, match=f"from 0 to 3, got {row}"):
        items.get([0, row])


def test_attributes_tell_their_values_and_bounds(items):
    assert items.attributes == [
        Attribute("colour", "text", ["blue", "dark Red", "red"]),
        Attribute("year", "number", [1990, 2001], 1990, 2001),
        Attribute("a=b", "text", ["c", "x", "x=1"]),
        Attribute("a", "number", [-3, 1, 2.5], -3, 2.5),
    ]


@pytest.mark.parametrize(("n", "listed"), [(FEW, True), (FEW + 1, False)])
def test_values_are_listed_while_they_are_few(tmp_path, n, listed):
    table = written(tmp_path / "i", [("v", "number")], [NewItem(str(i), (i,)) for i in range(n)])
    [attribute] = table.attributes
    assert (attribute.values == list(range(n))) is listed
    assert (attribute.least, attribute.most) == (0, n - 1)


def test_an_attribute_of_nothing_has_no_values(tmp_path):
    [attribute] = written(tmp_path / "i", [("v", "text")], [NewItem("a", (None,))]).attributes
    assert attribute == Attribute("v", "text", [])


# Filters


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        ([], [0, 1, 2, 3]),
        (["colour=red"], [0]),
        (["colour=Red"], []),
        (["colour~RED"], [0, 1]),
        (["colour="], [2]),
        (["colour~"], [0, 1, 3]),
        (["year>=1991"], [1]),
        (["year <= 1990"], [0, 3]),
        (["year=1990.0"], [0, 3]),
        (["year="], [2]),
        (["year>=1990", "year<=2000", "colour~r"], [0]),
        (["a=b=x"], [0]),  # the attribute called a=b
        (["a=b=x=1"], [3]),
        (["a=1"], [0]),
        (["a<=-3"], [3]),
        (["a=b~X"], [0, 3]),
    ],
)
def test_filters_by_hand(items, filters, rows):
    assert items.rows(filters).tolist() == rows
    assert items.rows(list(reversed(filters))).tolist() == rows


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be an attribute"),
        ("colour", "must be an attribute"),
        ("colour>red", "the attributes are 'colour', 'year'"),
        ("size=3", "got 'size=3'"),
        ("colour>=red", "'colour' is text"),
        ("year~19", "'year' is a number"),
        ("year=new", "must end in a number, got 'new'"),
        ("year>=", "must end in a number"),
        ("year>=nan", "must end in a number"),
        ("year<=inf", "must end in a number"),
    ],
)
def test_a_wrong_filter_says_what_is_wrong(items, text, words):
    with pytest.raises(InvalidInputError, match=words):
        items.rows(["colour=red", text])


@given(st.text(max_size=20))
def test_any_text_is_a_filter_or_an_error_of_ours(text):
    known = [Attribute("a", "number"), Attribute("", "text"), Attribute("a~", "text")]
    try:
        found = parse_filter(text, known)
    except InvalidInputError:
        return
    name = known[found.attribute].name
    assert text.startswith(name)
    assert text[len(name) :].lstrip().startswith(found.sign)


values = st.one_of(st.none(), st.sampled_from(["sea", "Sea shore", "straße", "", "  "]), st.text(max_size=5))
numbers = st.one_of(st.none(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False, allow_infinity=False))
storable = values.filter(lambda text: text is None or text.encode("utf-8", "ignore").decode() == text)


@given(
    st.lists(st.tuples(storable, numbers), max_size=20),
    st.sampled_from(["SEA", "s", "STRASSE", "x"]),
    st.floats(-1e6, 1e6),
)
def test_filters_agree_with_a_loop_over_the_items(tmp_path_factory, cells, part, bound):
    path = tmp_path_factory.mktemp("items") / "items.sqlite"
    table = written(path, [("t", "text"), ("n", "number")], [NewItem(str(i), row) for i, row in enumerate(cells)])
    expected = {
        f"t~{part}": [text is not None and part.casefold() in text.casefold() for text, _ in cells],
        f"t={part}": [text == part for text, _ in cells],
        f"n>={bound!r}": [number is not None and number >= bound for _, number in cells],
        f"n<={bound!r}": [number is not None and number <= bound for _, number in cells],
        "n=": [number is None for _, number in cells],
    }
    for text, wanted in expected.items():
        assert table.rows([text]).tolist() == np.flatnonzero(wanted).tolist()
    both = [a and b for a, b in zip(expected[f"t~{part}"], expected[f"n>={bound!r}"], strict=True)]
    assert table.rows([f"n>={bound!r}", f"t~{part}"]).tolist() == np.flatnonzero(both).tolist()
    table.close()


def test_an_answer_is_remembered_and_cannot_be_changed(items):
    rows = items.rows(["colour~red"])
    assert items.rows(["colour~red"]) is rows
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 7
    for i in range(40):  # more than are remembered
        items.rows([f"year>={i}"])
    assert items.rows(["colour~red"]).tolist() == [0, 1]


def test_threads_read_at_the_same_time(tmp_path):
    n = 2000
    table = written(tmp_path / "i", [("v", "number")], [NewItem(f"i{i}", (i % 7,)) for i in range(n)])
    wrong = []

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            rows = rng.integers(0, n, 10)
            good = [item.id for item in table.get(rows)] == [f"i{row}" for row in rows]
            value = int(rng.integers(7))
            good &= table.rows([f"v={value}"]).tolist() == list(range(value, n, 7))
            good &= table.find(f"i{rows[0]}") == rows[0]
            if not good:
                wrong.append(seed)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    table.close()


# Writing


@pytest.mark.parametrize("place", [1, 999, 1000, 1500])  # in the same batch, at its edge, in the next
def test_an_id_that_comes_twice_is_named_with_its_place(tmp_path, place):
    items = [NewItem(f"i{i}", place=f"items.csv, line {i + 2}") for i in range(1600)]
    items[place] = NewItem("i0", place=f"items.csv, line {place + 2}")
    with (
        pytest.raises(InvalidInputError, match=f"line {place + 2}: ids must differ, got 'i0', which item 0 has"),
        ItemWriter(tmp_path / "i", []) as writer,
    ):
        writer.add(items)


@pytest.mark.parametrize("key", ["", "x" * 1001])
def test_an_id_must_be_short_and_not_empty(tmp_path, key):
    with pytest.raises(InvalidInputError, match="1 to 1000 characters"), ItemWriter(tmp_path / "i", []) as writer:
        writer.add([NewItem(key)])


def test_too_many_attributes_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="at most 500 attributes, got 501"):
        ItemWriter(tmp_path / "i", [(str(i), "text") for i in range(MOST_ATTRIBUTES + 1)])


def test_items_are_never_changed_by_reading(items):
    with pytest.raises(sqlite3.OperationalError):
        items._connection().execute("DELETE FROM items")


@pytest.mark.parametrize("content", [b"", b"no database at all, but some words", b"SQLite format 3\0" + bytes(200)])
def test_a_file_of_something_else_is_a_format_error(tmp_path, content):
    (tmp_path / "i").write_bytes(content)
    with pytest.raises(FormatError, match="must be the items of a workspace"):
        ItemTable(tmp_path / "i")


def test_a_database_of_another_program_or_version_is_a_format_error(tmp_path):
    connection = sqlite3.connect(tmp_path / "i")
    connection.execute("CREATE TABLE items (row INTEGER)")
    connection.close()
    with pytest.raises(FormatError, match="its version is 0"):
        ItemTable(tmp_path / "i")
    with pytest.raises(FormatError, match="no such file"):
        ItemTable(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE attributes SET name = ? WHERE position = 1", b"\xff"),
        ("UPDATE attributes SET kind = ? WHERE position = 1", "date"),
        ("UPDATE attributes SET most = ? WHERE position = 1", float("inf")),
        ("DELETE FROM attributes WHERE position = ?", 1),
        ("ALTER TABLE items RENAME COLUMN a2 TO a2x /* ? */", None),
        ("DROP TABLE attributes /* ? */", None),
    ],
)
def test_damaged_attributes_are_a_format_error(items, statement, value):
    spoil(items.path, (statement, [] if "/*" in statement else [value]))
    with pytest.raises(FormatError, match="must be the items of a workspace"):
        ItemTable(items.path)


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("UPDATE columns SET numbers = ?", [None]),
        ("UPDATE columns SET numbers = ?", [b"123"]),
        ("UPDATE columns SET numbers = ?", [np.full(4, 9, dtype="<i4").tobytes()]),
        ("UPDATE columns SET words = ?", ["["]),
        ("UPDATE columns SET words = ?", ["[[1], 2]"]),
        ("UPDATE columns SET words = ?", ["[" * 100_000]),
        ("DELETE FROM columns", []),
        ("DROP TABLE columns", []),
    ],
)
def test_a_damaged_column_is_a_format_error_when_it_is_asked_for(items, statement, values):
    spoil(items.path, (statement, values))
    damaged = ItemTable(items.path)
    assert damaged.get([1])[0].id == "second"
    with pytest.raises(FormatError, match="must be the items of a workspace"):
        damaged.rows(["colour=red"])
    damaged.close()


def test_columns_stay_with_their_rows_where_one_is_lost(items):
    spoil(items.path, "DELETE FROM items WHERE row = 1")
    damaged = ItemTable(items.path)
    assert damaged.ids() == ["first", "damaged item 1", "<b>third</b>", "vierter ☃"]
    assert damaged.column("colour") == ["red", None, None, "blue"]
    assert damaged.files() == [None] * 4
    assert list(damaged.texts(batch=3)) == [["", "", ""], [""]]
    damaged.close()
