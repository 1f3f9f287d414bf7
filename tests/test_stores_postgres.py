"""Tables of codes in PostgreSQL: SQL that others call, loads that break off, what was changed by others, names."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cghash.codes import expand, unpack, weighted_hamming
from cghash.exceptions import (
    CGHashWarning,
    FormatError,
    InvalidInputError,
    MissingDependencyError,
    ServerError,
)
from cghash.stores import Origin, postgres, postgres_copy, postgres_tables
from cghash.stores.postgres import PostgresStore
from cghash.stores.postgres_layout import layout_of

pytestmark = pytest.mark.linux

psycopg = pytest.importorskip("psycopg")

NAMES = ["codes", "two words", 'x"; DROP TABLE other; --', "'", "select", "Ünï", "a.b", "?", "$1", "%s", "{}", "A" * 54]


def random_codes(n, n_bits, seed=0, distinct=None):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (distinct or n, n_bits), dtype=np.uint8)
    chosen = rows if distinct is None else rows[rng.integers(0, distinct, n)]
    return np.packbits(chosen, axis=1, bitorder="little")


def in_sql(url, statement, values=None):
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(statement, values)
        return found.fetchall() if found.description else []


def as_bits(code, n_bits):
    return "".join(map(str, unpack(code[None], n_bits)[0]))


def brute_force(origin, query, codes, ids, k):
    """(id, distance) of the k nearest, order (distance, id)."""
    bits = unpack(query[None], origin.n_bits), unpack(codes, origin.n_bits)
    distances = weighted_hamming(*bits, origin.weights)[0]
    order = np.lexsort((ids, distances))[:k]
    return list(zip(ids[order].tolist(), distances[order].tolist(), strict=True))


def assert_nearest(found, origin, queries, codes, ids, k):
    """Proven answers are those of brute force."""
    assert found.exact.all()
    for query, distances, nearest in zip(queries, *found[:2], strict=True):
        real = nearest >= 0
        answer = list(zip(nearest[real].tolist(), distances[real].tolist(), strict=True))
        assert answer == brute_force(origin, query, codes, ids, k)


@pytest.fixture
def origin():
    return Origin(np.random.default_rng(0).exponential(size=75))


@pytest.fixture
def codes():
    return random_codes(400, 75)


@pytest.fixture
def url(postgres):
    """A place with a table of someone else."""
    place = postgres()
    in_sql(place, "CREATE TABLE other (answer integer)")
    in_sql(place, "INSERT INTO other VALUES (42)")
    return place


@pytest.fixture(scope="module")
def one_url(postgres):
    return postgres()


@pytest.fixture
def store(url, origin, codes):
    with PostgresStore.write(url, origin, codes, hnsw=False) as written:
        yield written


# What is found


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 3, 8, 13, 64, 90]),
    st.integers(0, 150),
    st.integers(1, 300),
    st.booleans(),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_exact_search_and_the_sql_function_find_what_brute_force_finds(one_url, seed, n_bits, n, expanded, hnsw):
    rng = np.random.default_rng(seed)
    origin = Origin(rng.exponential(size=n_bits) * rng.integers(0, 3, n_bits))
    codes, ids = random_codes(n, n_bits, seed, distinct=int(rng.integers(1, 40))), rng.permutation(n) * 7
    queries, k = random_codes(3, n_bits, seed + 1), int(rng.integers(1, 9))
    with PostgresStore.write(one_url, origin, codes, ids, n_bits=expanded, hnsw=hnsw) as store:
        found = store.search(queries, k, candidates=k, exact=True)
    assert_nearest(found, origin, queries, codes, ids, k)
    for query in queries:
        told = in_sql(one_url, f"SELECT * FROM codes_nearest(%s::bit({n_bits}), %s)", [as_bits(query, n_bits), k])
        assert told == brute_force(origin, query, codes, ids, k)


def test_columns_are_the_bits_of_the_codes_in_order_and_their_expansion(store, url, origin, codes):
    rows = in_sql(url, "SELECT id, code::text, expanded::text FROM codes ORDER BY id")
    assert [row[0] for row in rows] == list(range(400))
    assert [row[1] for row in rows] == [as_bits(code, 75) for code in codes]
    assert [row[2] for row in rows] == [as_bits(code, 256) for code in expand(codes, origin.weights, 256)]


def test_distance_in_sql_is_that_of_the_weights(store, url, origin, codes):
    statement = (
        "SELECT codes_distance(a.code, b.code) FROM codes a, codes b WHERE a.id < 9 AND b.id < 9 ORDER BY a.id, b.id"
    )
    found = np.array(in_sql(url, statement)).reshape(9, 9)
    np.testing.assert_array_equal(found, weighted_hamming(unpack(codes[:9], 75), unpack(codes[:9], 75), origin.weights))


def test_statements_of_the_guide_run_as_they_stand(url):
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "engines.md").read_text("utf-8")
    (block,) = re.findall(r"^```sql\n(.*?)^```", guide, re.M | re.S)
    exact, condition, likely = filter(str.strip, re.sub(r"--.*", "", block).split(";"))
    codes, titles = random_codes(100, 32), [f"digit {i}" for i in range(100)]
    with PostgresStore.write(url, Origin(np.ones(32)), codes, table="photos", payload={"title": titles}) as store:
        query = np.packbits([int(bit) for bit in re.search(r"B'(\d+)'", exact)[1]], bitorder="little")
        found = store.search(query[None], 100)
    order = [(titles[i], d) for i, d in zip(found.ids[0], found.distances[0], strict=True)]
    seen = f"{url}%2Cpublic"  # where pgvector's operators are
    assert in_sql(seen, exact) == order[:10]
    assert in_sql(seen, condition) == [row for row in order if row[0] != "digit 3"][:10]
    assert [dict(order)[title] for (title,) in in_sql(seen, likely)] == [d for _, d in order[:10]]


def test_row_that_sql_inserts_is_expanded_and_found(store, url, codes):
    in_sql(url, "INSERT INTO codes (id, code) VALUES (1000, %s::bit(75))", [as_bits(codes[3], 75)])
    found = store.search(codes[3:4], 2, exact=True)
    assert found.ids.tolist() == [[3, 1000]]
    assert found.distances.tolist() == [[0, 0]]
    with pytest.raises(psycopg.errors.GeneratedAlways):
        in_sql(url, "UPDATE codes SET expanded = B'1'::bit(256)")


@pytest.fixture(scope="module")
def clustered():
    """5000 codes around 50 centres, and weights whose bits are lost by an expansion to 32."""
    rng = np.random.default_rng(5)
    centres = rng.integers(0, 2, (50, 64), dtype=np.uint8)
    bits = centres[rng.integers(0, 50, 5000)] ^ (rng.random((5000, 64)) < 0.1)
    return Origin(rng.exponential(size=64) ** 2), np.packbits(bits, axis=1, bitorder="little")


@pytest.fixture(scope="module")
def graph(postgres, clustered):
    with PostgresStore.write(postgres(), *clustered, n_bits=32) as store:
        yield store


def test_graph_answers_are_not_proven_and_a_scan_proves_them(graph, clustered):
    origin, codes = clustered
    assert graph.hnsw
    likely, proven = (graph.search(codes[:20], 5, candidates=5, exact=exact) for exact in (False, True))
    assert not likely.exact.any()
    assert (likely.distances >= proven.distances).all()
    assert (likely.distances > proven.distances).any()  # 32 bits lose some
    assert_nearest(proven, origin, codes[:20], codes, np.arange(5000), 5)


def test_more_candidates_find_no_less(graph, clustered):
    _, codes = clustered
    few, many = (graph.search(codes[:20], 5, candidates=n).distances.sum() for n in (5, 500))
    assert many < few
    with pytest.raises(InvalidInputError, match="candidates must be at least k=5, got 4"):
        graph.search(codes[:1], 5, candidates=4)
    with pytest.raises(InvalidInputError, match="k must be"):
        graph.search(codes[:1], "5", candidates=10)


def test_graph_is_used_when_it_is_asked_for_and_a_scan_when_it_is_not(graph, clustered):
    _, codes = clustered
    relation = graph.layout.relation.as_string()

    def scans():
        counted = "SELECT seq_scan FROM pg_stat_user_tables WHERE relid = %s::regclass"
        graph.session.change(lambda cursor: cursor.execute("SELECT pg_stat_force_next_flush()"))
        return graph.session.change(lambda cursor: cursor.execute(counted, [relation]).fetchone()[0])

    before = scans()
    graph.search(codes[:3], 5)
    between = scans()
    graph.search(codes[:3], 5, exact=True)
    after = scans()
    assert (between - before, after - between) == (1, 1 + 3)  # one to see that there are enough rows


def test_answer_is_whole_where_more_are_asked_for_than_a_graph_reaches(graph, clustered):
    _, codes = clustered
    found = graph.search(codes[:2], 5000)
    assert found.exact.all()  # 50 000 candidates: there are fewer rows
    found = graph.search(codes[:2], 3000, candidates=3000)
    assert np.isfinite(found.distances).all()
    assert (np.sort(found.ids)[:, 1:] != np.sort(found.ids)[:, :-1]).all()


def test_graph_that_reaches_too_few_is_not_the_last_word(postgres, clustered):
    origin, codes = clustered
    with PostgresStore.write(postgres(), origin, codes[:2000], n_bits=64) as store:
        store.remove(np.arange(1990))
        url = store.session._url
        in_sql(
            url,
            "INSERT INTO codes (id, code) SELECT 5000 + i, ~code FROM codes, generate_series(1, 50) i WHERE id = 1999",
        )
        store.session.change(lambda cursor: cursor.execute("SET hnsw.max_scan_tuples = 1"))
        found = store.search(codes[1990:1991], 10, candidates=20)
        assert np.isfinite(found.distances).all()


def test_items_are_searched_exactly_where_asked(postgres):
    from sklearn.datasets import load_digits

    from cghash import CGHash

    X, y = load_digits(return_X_y=True)
    model = CGHash(16, random_state=0, n_jobs=1).fit(X[:300], y[:300])
    with PostgresStore.write(postgres(), model, model.encode(X[:300])) as store:
        found = store.search_items(model, X[:10], 3, candidates=3, exact=True)
        assert found.exact.all()
        assert (found.distances[:, 0] == 0).all()


@pytest.mark.parametrize("weights", [np.zeros(9), np.r_[1.0, np.zeros(8)], 2.0 ** -np.arange(0, 90, 10)])
def test_weights_that_an_expansion_cannot_show_still_give_proven_answers(postgres, weights):
    origin, codes = Origin(weights), random_codes(300, 9)
    with PostgresStore.write(postgres(), origin, codes, n_bits=8) as store:
        found = store.search(codes[:5], 4, exact=True)
    assert_nearest(found, origin, codes[:5], codes, np.arange(300), 4)


def test_codes_of_1024_bits_and_expansions_longer_than_a_number(postgres):
    origin, codes = Origin(np.random.default_rng(0).exponential(size=1024)), random_codes(20, 1024)
    with PostgresStore.write(postgres(), origin, codes) as store:
        assert store.search(codes[:3], 1, exact=True).ids.tolist() == [[0], [1], [2]]
    heavy, codes = Origin([1.0, 1000.0]), random_codes(20, 2)
    url = postgres()
    with PostgresStore.write(url, heavy, codes, n_bits=2002) as store:
        assert store.layout.counts.tolist() == [1, 1000]
    texts = [row[0] for row in in_sql(url, "SELECT expanded::text FROM codes ORDER BY id")]
    assert texts == [as_bits(code, 2002) for code in expand(codes, heavy.weights, 2002)]


# Rows: payload, upsert, removal


def test_payload_is_columns_of_its_types(url, origin, codes):
    payload = {
        "title": [f"Ünï\t\\N\n{i}" for i in range(400)],
        "price": np.arange(400),
        "share": np.linspace(0, 1, 400),
        "Old?": np.arange(400) % 2 == 0,
        'odd"name': [None if i % 2 else {"i": i} for i in range(400)],
        "raw": [bytes([i % 256, 0]) for i in range(400)],
        "empty": [None] * 400,
        "mixed": [1, 2.5] * 200,
    }
    with PostgresStore.write(url, origin, codes, payload=payload, hnsw=False) as store:
        kinds = ["text", "bigint", "double precision", "boolean", "jsonb", "bytea", "text", "double precision"]
        assert store.info()["payload"] == dict(zip(payload, kinds, strict=True))
        assert store.search(codes[:1], 1).ids.tolist() == [[0]]
    rows = in_sql(url, 'SELECT title, price, share, "Old?", "odd""name", raw, empty, mixed FROM codes ORDER BY id')
    expected = zip(*(list(column) for column in payload.values()), strict=True)
    assert [tuple(row) for row in rows] == [tuple(row) for row in expected]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ([1, 2], "payload must be columns by name, got list"),
        ({"a": [1]}, r"payload\['a'\] must be 2 values, one a code, got shape \(1,\)"),
        ({"a": [[1], [2]]}, r"payload\['a'\] must be all bool, int, float, str, bytes, dict, got list"),
        ({"a": [1, "x"]}, "got int, str"),
        ({"a": np.zeros((2, 2))}, r"got shape \(2, 2\)"),
        ({"id": [1, 2]}, "a column of payload must not be called id or code or expanded, got 'id'"),
        ({"": [1, 2]}, "a column of payload must be a name of 1 to 63 bytes"),
        ({"x" * 64: [1, 2]}, "a column of payload must be a name of 1 to 63 bytes"),
        ({"ctid": [1, 2]}, 'column name "ctid" conflicts'),
        ({"a": ["x", "a\0b"]}, "NUL"),
        ({"a": np.array([1, 2**64 - 1], dtype=np.uint64)}, "out of range"),
    ],
)
def test_payload_that_is_none_is_refused_and_nothing_is_made(url, payload, message):
    with pytest.raises(InvalidInputError, match=message):
        PostgresStore.write(url, Origin(np.ones(8)), random_codes(2, 8), payload=payload)
    assert in_sql(url, "SELECT to_regclass('codes')") == [(None,)]


@given(st.lists(st.tuples(st.sampled_from(["upsert", "remove"]), st.sets(st.integers(0, 30), max_size=12)), max_size=6))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_upserts_and_removals_leave_what_a_dictionary_would_hold(one_url, changes):
    origin, held = Origin([4.0, 2.0, 1.0, 0.5]), {}
    rng = np.random.default_rng(0)
    with PostgresStore.write(one_url, origin, np.zeros((0, 1), np.uint8), table="held") as store:
        for kind, ids in changes:
            listed = np.array(sorted(ids), dtype=np.int64)
            if kind == "remove":
                assert store.remove(listed) == len(ids & set(held))
                held = {i: code for i, code in held.items() if i not in ids}
                continue
            new = dict(zip(sorted(ids), rng.integers(0, 16, len(ids)).tolist(), strict=True))
            codes = np.array(list(new.values()), dtype=np.uint8).reshape(-1, 1)
            assert store.upsert(origin, codes, listed) == sum(held.get(i) != code for i, code in new.items())
            assert store.upsert(origin, codes, listed) == 0
            held |= new
        assert len(store) == len(held)
    rows = in_sql(one_url, "SELECT id, code::text FROM held ORDER BY id")
    assert rows == [(i, f"{code:04b}"[::-1]) for i, code in sorted(held.items())]


def test_upsert_changes_named_columns_and_leaves_the_others(url, origin, codes):
    given_ = {"title": ["a", "b", "c"], "price": [1, 2, 3]}
    with PostgresStore.write(url, origin, codes[:3], payload=given_) as store:
        assert store.upsert(origin, codes[1:4], [1, 2, 3], payload={"price": [2, 30, 40]}) == 2
        assert store.upsert(origin, codes[5:6], [0]) == 1
        assert store.search(codes[5:6], 1).ids.tolist() == [[0]]
        with pytest.raises(InvalidInputError, match=r"payload must be columns of table 'codes' of .*, got 'colour'"):
            store.upsert(origin, codes[:1], [0], payload={"colour": ["red"]})
        with pytest.raises(InvalidInputError, match="invalid input syntax for type bigint"):
            store.upsert(origin, codes[:2], [0, 9], payload={"price": ["5", "dear"]})
    rows = in_sql(url, "SELECT id, title, price FROM codes ORDER BY id")
    assert rows == [(0, "a", 1), (1, "b", 2), (2, "c", 30), (3, None, 40)]


def test_upsert_takes_only_codes_of_the_same_model(store, codes):
    with pytest.raises(InvalidInputError, match="got one with other weights"):
        store.upsert(Origin(np.ones(75)), codes, np.arange(400))
    with pytest.raises(InvalidInputError, match="got one with 8 bits where 75 are stored"):
        store.upsert(Origin(np.ones(8)), codes, np.arange(400))
    with pytest.raises(InvalidInputError, match="ids must be different, got 1 twice"):
        store.upsert(store.origin, codes[:2], [1, 1])
    assert len(store) == 400


def test_two_that_upsert_the_same_rows_at_once_both_succeed(url, store, origin, codes):
    errors = []

    def upsert(seed):
        order = np.random.default_rng(seed).permutation(400)
        try:
            with PostgresStore.open(url, origin) as mine:
                for _ in range(5):
                    mine.upsert(origin, np.roll(codes, seed + 1, axis=0)[order], order)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=upsert, args=[seed]) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(store) == 400


# Whole or nothing


def test_replacing_keeps_readers_and_is_noticed_by_them(url, store, origin, codes):
    other = Origin(np.ones(75))
    PostgresStore.write(url, other, codes[:7], hnsw=False).close()
    with pytest.raises(FormatError, match="was replaced since it was opened"):
        store.search(codes[:1], 1)
    with pytest.raises(FormatError, match="was replaced since it was opened"):
        store.upsert(origin, codes[:1], [0])
    in_sql(url, "DROP TABLE codes")
    with pytest.raises(FormatError, match="table 'codes' of"):
        store.search(codes[:1], 1)


def test_functions_indexes_and_tables_of_a_load_have_the_names_of_the_table_and_no_others(url, origin, codes):
    def names():
        found = in_sql(
            url,
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace UNION ALL "
            "SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'ph%'",
        )
        return sorted(name for (name,) in found if not name.startswith("pg_toast"))

    for _ in range(2):
        PostgresStore.write(url, origin, codes, table="photos").close()
        expected = [
            "other",
            "photos",
            "photos_distance",
            "photos_expand",
            "photos_hnsw",
            "photos_nearest",
            "photos_pkey",
        ]
        assert names() == expected


def slow_copy(monkeypatch, act):
    """Do something in the middle of a load: after half of its rows."""
    send = postgres_copy._send_blocks

    def half(copy, ids, codes, n_bits):
        parts = []
        send(type("Kept", (), {"write": staticmethod(parts.append)}), ids, codes, n_bits)
        whole = b"".join(parts)
        copy.write(whole[: len(whole) // 2])
        act()
        copy.write(whole[len(whole) // 2 :])

    monkeypatch.setattr(postgres_copy, "_send_blocks", half)


def kill_loads(url):
    """End the connections that are in the middle of a COPY, as an operator or a failing network would."""
    ended = []
    for _ in range(200):
        ended = in_sql(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND query LIKE 'COPY%' AND state = 'active'",
        )
        if ended:
            break
        time.sleep(0.02)
    assert ended


UNFINISHED = "SELECT count(*) FROM pg_class WHERE relname LIKE 'cghash%'"  # others have such tables too


def test_connection_that_the_server_ends_in_the_middle_of_a_load_leaves_the_old_table(
    url, store, origin, codes, monkeypatch
):
    before = in_sql(url, UNFINISHED)
    slow_copy(monkeypatch, lambda: kill_loads(url))
    many = random_codes(300_000, 75)
    with pytest.raises(ServerError, match=r"table 'codes' of .*connection was lost"):
        PostgresStore.write(url, Origin(np.ones(75)), many)
    assert store.search(codes[:2], 1).ids.tolist() == [[0], [1]]
    assert len(store) == 400
    assert in_sql(url, UNFINISHED) == before
    with pytest.raises(ServerError, match="connection was lost"):
        store.upsert(origin, many, np.arange(300_000))
    assert len(store) == 400  # over a new connection
    monkeypatch.undo()
    assert store.upsert(origin, codes[:1], [400]) == 1


def test_client_that_is_killed_in_the_middle_of_a_load_leaves_the_old_table(url, store, codes):
    before = in_sql(url, UNFINISHED)
    program = f"""
import numpy as np, time
from cghash.stores import Origin, postgres_copy
from cghash.stores.postgres import PostgresStore
send = postgres_copy._send_blocks
def slow(copy, ids, codes, n_bits):
    for first in range(100):
        copy.write(postgres_copy._START if first == 0 else b"")
        print("loading", flush=True)
        time.sleep(1)
postgres_copy._send_blocks = slow
PostgresStore.write({url!r}, Origin(np.ones(75)), np.zeros((5, 10), np.uint8))
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as client:
        assert client.stdout.readline() == b"loading\n"
        os.kill(client.pid, signal.SIGKILL)
    for _ in range(100):
        left = in_sql(url, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active'")
        if left == [(0,)]:
            break
        time.sleep(0.05)
    assert len(store) == 400
    assert store.search(codes[:2], 1).ids.tolist() == [[0], [1]]
    assert in_sql(url, UNFINISHED) == before


def test_interrupt_in_the_middle_of_a_load_leaves_the_old_table(url, store, origin, codes, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    slow_copy(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        PostgresStore.write(url, origin, codes[:3])
    with pytest.raises(KeyboardInterrupt):
        store.upsert(origin, codes[:3], [1000, 1001, 1002])
    assert len(store) == 400


@pytest.mark.parametrize("first", range(3))
def test_after_ctrl_c_anywhere_the_same_store_goes_on(url, store, origin, codes, interrupted, first):
    def held():
        return [row[0] for row in in_sql(url, "SELECT code FROM codes WHERE id < 3 ORDER BY id")]

    texts = [as_bits(code, origin.n_bits) for code in codes]
    for at in itertools.count(1 + first, 30):
        assert store.upsert(origin, codes[:3], [0, 1, 2]) in (0, 2)
        assert held() == texts[:3]
        hit = interrupted(lambda: store.upsert(origin, codes[3:5], [0, 1]), at)
        assert held() in [texts[:3], [*texts[3:5], texts[2]]]
        if not hit:
            break


def test_ctrl_c_just_after_a_transaction_began_leaves_none_on_the_server(url, store, origin, codes, monkeypatch):
    class Beginning:
        def __init__(self, connection):
            self.connection = connection

        def __getattr__(self, name):
            return getattr(self.connection, name)

        def execute(self, sql, *values):
            done = self.connection.execute(sql, *values)
            if str(sql).startswith("BEGIN"):
                raise KeyboardInterrupt
            return done

    len(store)
    with monkeypatch.context() as patch:
        patch.setattr(store.session, "_connection", Beginning(store.session._connection))
        with pytest.raises(KeyboardInterrupt):
            store.upsert(origin, codes[:1], [1])
    state = store.session._connection.info.transaction_status
    assert state == psycopg.pq.TransactionStatus.IDLE


def test_ctrl_c_while_a_change_is_taken_back_leaves_nothing_of_it(url, store, origin, codes, monkeypatch):
    def again(*nothing):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store.session, "_undo", again)
        patch.setattr(postgres, "merge_rows", lambda cursor, *rest: again(cursor.execute("DELETE FROM codes")))
        with pytest.raises(KeyboardInterrupt):
            store.upsert(origin, codes[:1], [1])
    store.upsert(origin, codes[:1], [1])
    with PostgresStore.open(url) as others:
        assert len(others) == len(store) > 1


def test_search_goes_on_over_a_new_connection_when_the_old_one_was_ended(url, store, codes):
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'idle'"
    assert in_sql(url, others)
    assert store.search(codes[:2], 1).ids.tolist() == [[0], [1]]
    assert in_sql(url, others)
    assert store.remove([0, 1]) == 2


def test_closed_store_says_so(store, codes):
    store.close()
    with pytest.raises(InvalidInputError, match=r"table 'codes' of .* was closed"):
        store.search(codes[:1], 1)


# What others changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ALTER TABLE codes DROP COLUMN expanded", "must have a column 'expanded': .* GENERATED, got none"),
        ("ALTER TABLE codes ALTER expanded DROP EXPRESSION", "'expanded': .* GENERATED, got bit.256. NOT NULL"),
        ("ALTER TABLE codes ALTER id TYPE integer", "a column 'id': bigint NOT NULL, got integer NOT NULL"),
        ("ALTER TABLE codes ALTER code DROP NOT NULL", "a column 'code': bit.75. NOT NULL, got bit.75."),
        ("ALTER TABLE codes DROP CONSTRAINT codes_pkey", "must have unique ids, got no primary key|a column 'id'"),
        ("ALTER TABLE codes RENAME code TO bits", "is not a table of codes"),
        ("DROP FUNCTION codes_nearest", "must have the function codes_nearest.bit, integer., got none"),
        ("CREATE OR REPLACE FUNCTION codes_distance(first bit, second bit) RETURNS double precision IMMUTABLE "
         "LANGUAGE sql AS 'SELECT 1.0::double precision'", "must have the function codes_distance.bit, bit., got"),
        ("COMMENT ON COLUMN codes.code IS NULL", "is not a table of codes"),
        ("COMMENT ON COLUMN codes.code IS 'bits'", "holds no description"),
        ("ALTER TABLE codes RENAME TO kodes", "is not a table of codes, or does not exist"),
        ("DROP TABLE codes", "is not a table of codes, or does not exist"),
    ],
)  # fmt: skip
def test_table_whose_columns_functions_or_description_were_changed_is_a_format_error(store, url, change, message):
    in_sql(url, change)
    with pytest.raises(FormatError, match=rf"table 'codes' of .*{message}"):
        PostgresStore.open(url)


def test_code_of_another_length_is_a_format_error(url, origin, codes):
    PostgresStore.write(url, origin, codes, hnsw=False).close()
    in_sql(url, "ALTER TABLE codes DROP COLUMN expanded")
    in_sql(url, "ALTER TABLE codes ALTER code TYPE bit(80) USING code::bit(80)")
    with pytest.raises(FormatError, match=r"a column 'code': bit\(75\) NOT NULL, got bit\(80\) NOT NULL"):
        PostgresStore.open(url)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"table_version": 2}, "table version 2; this cghash reads versions 1 to 1"),
        ({"table_version": "1"}, "table version '1'"),
        ({"version": 9}, "format version 9"),
        ({"weights": [1.0] * 75}, "was altered: its weights and its fingerprint do not agree"),
        ({"counts": [1]}, "expansion is not one of 75 bits"),
        ({"counts": [-1] * 75}, "expansion is not one of 75 bits"),
        ({"counts": ["x"] * 75}, "parts do not fit together"),
        ({"expanded_bits": None}, "parts do not fit together"),
        ({"expanded_bits": 3}, "expansion is not one of 75 bits"),
        ({"expanded_bits": 300}, r"must have a column 'expanded': bit\(300\)"),
    ],
)
def test_description_of_another_version_or_whose_parts_do_not_fit_is_a_format_error(store, url, more, message):
    (about,) = in_sql(url, "SELECT col_description('codes'::regclass, 2)")[0]
    text = psycopg.sql.Literal(json.dumps(json.loads(about) | more)).as_string()
    in_sql(url, f"COMMENT ON COLUMN codes.code IS {text}")
    with pytest.raises(FormatError, match=rf"table 'codes' of .*{message}"):
        PostgresStore.open(url)


def test_columns_and_indexes_that_a_database_adds_are_welcome(store, url, origin, codes):
    in_sql(url, "ALTER TABLE codes ADD COLUMN seen timestamptz DEFAULT now()")
    in_sql(url, "CREATE VIEW near AS SELECT * FROM codes_nearest(B'1'::bit(75), 3)")
    with PostgresStore.open(url, origin) as again:
        assert again.info()["payload"] == {"seen": "timestamp with time zone"}
        assert again.upsert(origin, codes[:1], [7]) == 1
        with pytest.raises(InvalidInputError, match="cannot be replaced, others depend on it"):
            PostgresStore.write(url, origin, codes)
        assert len(again) == 400


def test_dump_of_a_table_of_version_1_restores_to_a_table_that_answers_the_same(postgres):
    fixtures = Path(__file__).parent / "fixtures"
    expected = json.loads((fixtures / "codes-v1.json").read_text())
    anywhere = postgres().split("&options")[0]
    in_sql(anywhere, (fixtures / "codes-v1.sql").read_text())
    origin = Origin(expected["weights"], expected["functions"])
    with PostgresStore.open(f"{anywhere}&options=-csearch_path%3Dcghash_v1", origin) as store:
        assert store.origin.fingerprint == expected["fingerprint"]
        found = store.search(np.array(expected["queries"], dtype=np.uint8), 4, exact=True)
        assert (found.distances.tolist(), found.ids.tolist()) == (expected["distances"], expected["found"])
        assert store.upsert(origin, np.array(expected["codes"], dtype=np.uint8), expected["ids"]) == 0
        assert store.info()["payload"] == {"title": "text"}


# Names and safety


@pytest.mark.parametrize("table", NAMES)
def test_any_name_is_a_name_and_never_sql(url, origin, codes, table):
    payload = {name: np.arange(400) for name in NAMES if name != "codes"}
    with PostgresStore.write(url, origin, codes, table=table, payload=payload) as store:
        assert store.search(codes[:3], 1, exact=True).ids.tolist() == [[0], [1], [2]]
        assert store.upsert(origin, codes[:3], [3, 4, 5], payload={name: [1, 2, 3] for name in payload}) == 3
        assert store.remove([5]) == 1
        assert store.info()["table"] == table
        assert list(store.info()["payload"]) == list(payload)
    assert in_sql(url, "SELECT answer FROM other") == [(42,)]
    found = in_sql(
        url, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    )
    assert {name for (name,) in found} == {"other", table}


@pytest.mark.parametrize("table", ["", None, "a\0b", "A" * 55, "Ü" * 28, "\ud800", 7])
def test_what_is_no_name_is_refused(url, origin, codes, table):
    for call in (
        lambda: PostgresStore.write(url, origin, codes, table=table),
        lambda: PostgresStore.open(url, table=table),
    ):
        with pytest.raises(InvalidInputError, match="table must be a name of 1 to 54 bytes, none of them NUL"):
            call()


def test_table_of_someone_else_is_never_replaced(url, origin, codes):
    in_sql(url, "CREATE VIEW shown AS SELECT 1 AS code")
    in_sql(url, "CREATE TABLE theirs (id bigint, code bit(75))")
    for table in ("other", "shown", "theirs"):
        with pytest.raises(InvalidInputError, match="table must be new or hold codes, got"):
            PostgresStore.write(url, origin, codes, table=table)
        with pytest.raises(FormatError, match="is not a table of codes"):
            PostgresStore.open(url, table=table)
    assert in_sql(url, "SELECT answer FROM other") == [(42,)]


def test_table_that_someone_else_makes_during_a_load_is_not_replaced(url, store, origin, codes, monkeypatch):
    def another():
        in_sql(url, "DROP TABLE codes")
        in_sql(url, "CREATE TABLE codes AS SELECT 7 AS answer")

    slow_copy(monkeypatch, another)
    with pytest.raises(InvalidInputError, match="table must be new or hold codes"):
        PostgresStore.write(url, origin, codes, hnsw=False)
    assert in_sql(url, "SELECT answer FROM codes") == [(7,)]


def test_function_of_someone_else_is_never_replaced_and_ours_is_where_its_table_is_gone(url, origin, codes):
    in_sql(url, "CREATE FUNCTION theirs_distance(bit, bit) RETURNS integer LANGUAGE sql AS 'SELECT 7'")
    with pytest.raises(InvalidInputError, match='function "theirs_distance" already exists'):
        PostgresStore.write(url, origin, codes, table="theirs", hnsw=False)
    assert in_sql(url, "SELECT theirs_distance(B'1', B'1'), to_regclass('theirs')") == [(7, None)]
    PostgresStore.write(url, origin, codes, hnsw=False).close()
    in_sql(url, "DROP TABLE codes")  # its functions stay
    PostgresStore.write(url, Origin(np.ones(75)), codes[:5], hnsw=False).close()


def test_password_is_in_no_message(origin, codes):
    for url in ("postgresql://ann:secret@127.0.0.1:1/shop", "postgresql://ann:secret@127.0.0.1/shop?nonsense=secret"):
        with pytest.raises((ServerError, InvalidInputError)) as error:
            PostgresStore.write(url, origin, codes)
        assert "secret" not in str(error.value)


@pytest.mark.parametrize("url", ["codes.duckdb", "/no/such/file", None, 7, "mysql://x/y"])
def test_what_is_no_url_is_refused(origin, codes, url):
    with pytest.raises(InvalidInputError, match="url must be"):
        PostgresStore.write(url, origin, codes)


def test_server_that_is_not_there_is_named(origin):
    with pytest.raises(ServerError, match=r"table 'codes' of shop at 127\.0\.0\.1 cannot be reached"):
        PostgresStore.open("postgresql://127.0.0.1:1/shop")


def test_role_that_may_only_read_searches_and_cannot_write(url, store, origin, codes):
    schema = in_sql(url, "SELECT current_schema()")[0][0]
    role = f"reader_{schema}"
    for statement in (
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON codes TO {role}",
    ):
        in_sql(url, statement)
    theirs = url.replace("postgres:", f"{role}:", 1)
    with PostgresStore.open(theirs, origin) as reader:
        assert reader.search(codes[:2], 1, exact=True).ids.tolist() == [[0], [1]]
        with pytest.raises(ServerError, match="permission denied"):
            reader.upsert(origin, codes[:1], [1])
        with pytest.raises(ServerError, match="permission denied"):
            reader.remove([1])
    with pytest.raises(ServerError, match="permission denied"):
        PostgresStore.write(theirs, origin, codes, table="mine")


# pgvector


def test_database_without_pgvector_says_so_and_is_scanned(postgres, origin, codes, monkeypatch):
    in_sql(postgres(), "CREATE DATABASE bare")
    bare = postgres().split("&options")[0].replace("/postgres?", "/bare?")
    with PostgresStore.write(bare, origin, codes, hnsw=False) as store:
        assert store.search(codes[:3], 2).exact.all()
    assert in_sql(bare, "SELECT count(*) FROM pg_extension WHERE extname = 'vector'") == [(0,)]
    monkeypatch.setattr(postgres_tables, "_EXTENSION", "no_such_extension")
    with pytest.raises(MissingDependencyError, match=r"needs the extension pgvector .* hnsw=False"):
        PostgresStore.write(bare, origin, codes[:5])
    with PostgresStore.open(bare) as store:  # nothing was lost
        assert len(store) == 400
    monkeypatch.undo()
    with PostgresStore.write(bare, origin, codes) as store:  # made where it is not there
        assert store.hnsw


def test_bits_that_pgvector_or_we_cannot_index_are_refused(url):
    with pytest.raises(InvalidInputError, match="n_bits must be at most 64000 for pgvector, got 64001"):
        PostgresStore.write(url, Origin(np.ones(8)), random_codes(2, 8), n_bits=64001)
    with pytest.raises(InvalidInputError, match="codes must have at most 1024 bits for PostgreSQL, got 1025"):
        PostgresStore.write(url, Origin(np.ones(1025)), random_codes(2, 1025))
    with PostgresStore.write(url, Origin(np.r_[1.0, 1.0]), random_codes(3, 2), n_bits=64000) as store:
        assert store.hnsw
        assert store.search(random_codes(1, 2), 3, exact=True).exact.all()


def test_memory_of_the_graph_is_that_asked_for_and_too_little_is_warned_of(url):
    origin, codes = Origin(np.ones(64)), random_codes(3500, 64)
    with pytest.warns(CGHashWarning, match="maintenance_work_mem.*memory= gives more"):
        PostgresStore.write(url, origin, codes, memory=1).close()
    with pytest.raises(InvalidInputError, match="memory must be a whole number of at least 1, got 0"):
        PostgresStore.write(url, origin, codes, memory=0)


def test_functions_look_up_every_byte_of_a_code():
    layout = layout_of(Origin([8.0, 4.0, 2.0, 1.0]), "s", "t", 15)
    assert layout.counts.tolist() == [8, 4, 2, 1]
    arguments, result, body = layout.functions()["nearest"]
    assert (arguments, result.split()[0]) == ("query bit, k integer", "TABLE")
    assert body == 'SELECT t.id, "s"."t_distance"(t.code, $1) FROM "s"."t" t ORDER BY 2, 1 LIMIT $2'
    assert layout.lost == 0
