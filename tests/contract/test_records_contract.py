"""What people answered is kept, and kept in order: the same over SQLite and over a real PostgreSQL."""

from __future__ import annotations

import contextlib
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from cghash.exceptions import CGHashError, FormatError, InvalidInputError, MissingDependencyError
from cghash.workspace import database as database_module
from cghash.workspace.database import open_database
from cghash.workspace.records import ACTIVE_STATES, CHOICES, SOURCES, STATES, Answer, Version, open_records

pytestmark = pytest.mark.portable


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    """A database that is empty so far."""
    if request.param == "sqlite":
        return str(tmp_path / "answers.sqlite")
    return request.getfixturevalue("postgres")()


@pytest.fixture
def records(where):
    opened = open_records(where, "photos")
    yield opened
    opened.close()


def answer(key="a", rows=(0, 1, 2), choice="left", source="active", **more):
    return Answer(str(key), *rows, choice, source, **more)


def new_version(records, name="some", *, use=False, **more):
    """A version whose files are whole."""
    begun = records.begin_version(Version(0, name, "CGHash", 8, **more))
    records.finish_version(begun, use=use)
    return begun


def at_the_same_moment(where, work):
    """What `work(records, number, barrier)` gives for each of four that open a database at once."""
    barrier = threading.Barrier(4, timeout=60)

    def one(number):
        try:
            with contextlib.closing(open_records(where, "photos")) as records:
                return work(records, number, barrier)
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(one, number) for number in range(4)]
    errors = [future.exception() for future in found if future.exception() is not None]
    for error in errors:
        if not isinstance(error, threading.BrokenBarrierError):  # which the others have of it
            raise error
    return [future.result() for future in found]


# Answers


def test_an_answer_comes_back_as_it_was_given(records):
    [stored] = records.add_answers([answer("k-1", (7, 2**40, 9), "right", "test", model=3, seconds=1.25)])
    assert stored.id >= 1
    assert stored.created.startswith("20")
    expected = answer("k-1", (7, 2**40, 9), "right", "test", model=3, seconds=1.25)
    assert replace(stored, id=0, created="") == expected
    assert records.answer(stored.id) == stored
    assert stored.triplet == (7, 9, 2**40)


def test_the_same_key_is_stored_once_and_the_first_words_count(records):
    [first] = records.add_answers([answer("k", choice="left")])
    again = records.add_answers([answer("k", choice="right"), answer("new"), answer("new", choice="unsure")])
    assert again[0] == first
    assert again[1] == again[2]
    assert again[1].choice == "left"
    assert records.count_answers() == (2, 0)


def test_undone_answers_stay_and_teach_nothing(records):
    stored = records.add_answers([answer(key, source=source) for key, source in zip("abcd", SOURCES, strict=True)])
    assert len(records.triplets(SOURCES)) == 4
    records.undo(stored[0].id)
    when = records.answer(stored[0].id).undone
    assert when is not None
    records.undo(stored[0].id)
    assert records.answer(stored[0].id).undone == when
    assert records.answer(stored[0].id).triplet is None
    assert [a.key for a in records.answers()] == list("abcd")
    assert records.count_answers() == (4, 1)
    assert len(records.triplets()) == 2  # of list and import; the test is never learned from
    with pytest.raises(InvalidInputError, match="there is no answer 999"):
        records.undo(999)


def test_an_undone_answer_sent_again_stays_undone(records):
    [stored] = records.add_answers([answer("k")])
    records.undo(stored.id)
    assert records.add_answers([answer("k")])[0].undone is not None


def test_answers_are_listed_in_the_order_in_which_they_came(records):
    for key in range(7):
        records.add_answers([answer(key, (key, 10, 11))])
    assert [a.anchor for a in records.answers()] == [*range(7)]
    assert [a.anchor for a in records.answers(2, 3)] == [2, 3, 4]
    assert [a.anchor for a in records.answers(1, 2, newest_first=True)] == [5, 4]
    third = records.answers()[2]
    assert [a.anchor for a in records.answers_after(third.id)] == [3, 4, 5, 6]
    assert records.answers(100) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (answer("b", choice="both"), "choice must be one of"),
        (answer("b", source="guess"), "source must be one of"),
        (answer("b", (1, 1, 2)), "three different items"),
        (answer("b", (1, 2, 2)), "three different items"),
    ],
)
def test_one_wrong_answer_and_none_is_stored(records, wrong, words):
    with pytest.raises(InvalidInputError, match=words):
        records.add_answers([answer("a"), wrong])
    assert records.count_answers() == (0, 0)


def test_answers_are_all_stored_or_none(records):
    """The second breaks a rule of the database itself, in the middle of the transaction."""
    with pytest.raises(CGHashError):
        records.add_answers([answer("a"), answer("b", (None, 1, 2))])
    assert records.count_answers() == (0, 0)
    records.add_answers([answer("c")])
    assert records.count_answers() == (1, 0)


# Damage


def damaged(records, statement, *values):
    """Change the database as another program might."""
    records.database.run(statement, values)


BOTH = [
    ("cghash_answers", "choice = 'both'", "answer 2: choice and source must be known, got 'both' and 'active'"),
    ("cghash_answers", "source = ''", "choice and source must be known, got 'left' and ''"),
    ("cghash_answers", "righthand = lefthand", "three different items of the workspace, got (1, 2, 2)"),
    ("cghash_answers", "anchor = -1", "three different items of the workspace, got (-1, 2, 3)"),
    ("cghash_answers", "anchor = 100", "three different items of the workspace, got (100, 2, 3)"),
    ("cghash_jobs", "parameters = '{'", "job 2: parameters must be JSON"),
    ("cghash_jobs", "progress = '[1]'", "progress must be a JSON object, got [1]"),
    ("cghash_jobs", "state = 'odd'", f"state must be one of {', '.join(STATES)}, got 'odd'"),
    ("cghash_jobs", "changed = 'yesterday'", "yesterday"),
    ("cghash_jobs", "changed = '2026-01-01'", "a time with its zone"),
]
OF_SQLITE = [
    ("cghash_answers", "anchor = 'first'", "answer 2: anchor must be int, got 'first'"),
    ("cghash_answers", "token = x'00ff'", "token must be str, got"),
    ("cghash_answers", "choice = CAST(x'ff' AS TEXT)", "choice and source must be known"),
    ("cghash_answers", "seconds = 9e999", "seconds must be finite, got inf"),
    ("cghash_answers", "model = 'x'", "model must be int or NoneType, got 'x'"),
    ("cghash_models", "bits = 'many'", "version 2: bits must be int, got 'many'"),
    ("cghash_jobs", "parameters = x'7b7d00'", "parameters must be JSON"),
    ("cghash_jobs", "version = 'x'", "version must be int or NoneType, got 'x'"),
]


@pytest.fixture
def three(where):
    """Three answers, jobs and versions of a workspace of 100 items."""
    records = open_records(where, "photos", 100)
    records.add_answers([answer(key, (key, key + 1, key + 2)) for key in range(3)])
    for _ in range(3):
        new_version(records)
        records.change_job(records.add_job({"bits": 8}).id, state="done")
    yield records
    records.close()


def columns_of(records):
    return (
        [a.anchor for a in records.answers()],
        [v.version for v in records.versions()],
        [job.id for job in records.jobs()],
    )


@pytest.mark.parametrize(("table", "change", "words"), [*BOTH, *OF_SQLITE], ids=lambda value: str(value)[:40])
def test_a_damaged_row_is_named_and_hides_no_other(three, table, change, words, caplog):
    if (table, change, words) in OF_SQLITE and not hasattr(three.database, "path"):
        return  # PostgreSQL's columns take nothing else
    number = "version" if table == "cghash_models" else "id"
    damaged(three, f"UPDATE {table} SET {change} WHERE {number} = 2")
    whole = {"cghash_answers": [0, 1, 2], "cghash_models": [1, 2, 3], "cghash_jobs": [3, 2, 1]}
    whole[table].pop(1)
    for _ in range(2):
        assert columns_of(three) == tuple(whole.values())
    assert three.count_answers() == (len(whole["cghash_answers"]), 0)
    assert len(three.triplets()) == len(whole["cghash_answers"])
    [sentence] = three.damage()
    assert words in sentence
    _, reason = sentence.split(": ", 1)
    assert len([record for record in caplog.records if reason in record.getMessage()]) == 1  # said once


def test_a_row_that_was_mended_is_there_again(three):
    damaged(three, "UPDATE cghash_answers SET choice = 'both' WHERE id = 2")
    assert len(three.answers()) == 2
    damaged(three, "UPDATE cghash_answers SET choice = 'right' WHERE id = 2")
    assert [a.choice for a in three.answers()] == ["left", "right", "left"]
    assert three.count_answers() == (3, 0)
    assert three.damage() == []


def test_a_version_whose_report_is_damaged_is_used_without_it(three):
    three.use(2)
    damaged(three, "UPDATE cghash_models SET report = '{' WHERE version = 2")
    assert (three.current, three.version(2).report) == (2, {})
    assert "report of version 2" in three.damage()[0]


def test_a_current_version_that_cannot_be_read_is_none(three):
    three.use(2)
    damaged(three, "UPDATE cghash_current SET version = 9")
    assert three.current is None
    assert "there is no such version" in three.damage()[0]
    three.use(3)
    assert three.current == 3


def test_a_damaged_row_keeps_no_other_from_being_written(three):
    damaged(three, "UPDATE cghash_answers SET choice = 'both' WHERE id = 2")
    damaged(three, "UPDATE cghash_jobs SET parameters = '{', state = 'running' WHERE id = 2")
    with pytest.raises(InvalidInputError, match="the answer with the key '1' is damaged"):
        three.add_answers([answer(1, (1, 2, 3))])
    assert len(three.add_answers([answer("new")])) == 1
    assert three.add_job({}).id == 4
    assert three.begin_version(Version(0, "next", "CGHash", 8)).version == 4


def test_a_damaged_version_keeps_no_other_from_being_numbered(three):
    if hasattr(three.database, "path"):
        damaged(three, "UPDATE cghash_models SET version = 'x' WHERE version = 2")
        damaged(three, "UPDATE cghash_format SET format = 'x'")
        assert open_records(three.database.path, "photos").versions()[-1].version == 3
    assert three.begin_version(Version(0, "next", "CGHash", 8)).version == 4


# Workspaces and openings


def test_workspaces_in_one_database_do_not_see_each_other(where):
    one, other = open_records(where, "one"), open_records(where, "other")
    [mine], [theirs] = one.add_answers([answer("k")]), other.add_answers([answer("k", choice="right")])
    assert mine.id != theirs.id
    assert [a.choice for a in other.answers()] == ["right"]
    with pytest.raises(InvalidInputError):
        one.undo(theirs.id)
    new_version(one, use=True)
    assert (one.current, other.current) == (1, None)
    assert other.begin_version(Version(0, "first", "CGHash", 8)).version == 1
    job, their_job = one.add_job({}), other.add_job({})
    assert None not in (job, their_job)
    assert not one.change_job(their_job.id, state="failed")
    assert not one.has_job(their_job.id)
    for opened in (one, other):
        opened.close()


def test_everything_is_there_after_reopening(where):
    first = open_records(where, "photos")
    answers = first.add_answers([answer(key, choice=choice) for key, choice in zip("abc", CHOICES, strict=True)])
    first.undo(answers[1].id)
    new_version(first, use=True, report={"mean": 0.5})
    job = first.add_job({"bits": 8})
    first.change_job(job.id, state="running", progress={"bit": 3})
    kept = (first.answers(), first.versions(), first.current, first.jobs())
    first.close()
    second = open_records(where, "photos")
    assert (second.answers(), second.versions(), second.current, second.jobs()) == kept
    assert second.active_job().progress == {"bit": 3}
    second.close()


def test_several_open_a_new_database_at_the_same_moment(where):
    barrier = threading.Barrier(4, timeout=60)

    def opened(number):
        barrier.wait()
        with contextlib.closing(open_records(where, "photos")) as records:
            records.add_answers([answer(number)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(opened, range(4)))
    with contextlib.closing(open_records(where, "photos")) as records:
        assert records.count_answers() == (4, 0)
        assert records.database.run("SELECT format FROM cghash_format") == [{"format": 1}]


def test_a_database_of_a_newer_format_is_refused_and_left_as_it_was(where):
    database = open_database(where)
    database.run("CREATE TABLE cghash_format (format INTEGER NOT NULL)")
    database.run("INSERT INTO cghash_format VALUES (2)")
    with pytest.raises(FormatError, match="format 1 or older, got 2"):
        open_records(where, "photos")
    with pytest.raises(CGHashError):
        database.run("SELECT * FROM cghash_answers")
    database.close()


# Model versions


def test_a_version_is_seen_once_its_files_are_whole(records):
    begun = records.begin_version(Version(0, "one", "CGHash", 8, answers=3, last_answer=9, job=4, report={"a": [1]}))
    assert begun.version == 1
    assert records.versions() == []
    with pytest.raises(InvalidInputError, match="no model version 1"):
        records.use(1)
    assert records.begin_version(Version(0, "two", "CGHash", 8)).version == 2  # a number is never given twice
    records.finish_version(begun, use=True)
    assert records.versions() == [begun]
    assert records.version(1) == begun
    assert records.current == 1
    with pytest.raises(InvalidInputError, match="no model version 2"):
        records.version(2)


def test_going_back_to_an_older_version(records):
    for name in ("one", "two"):
        new_version(records, name, use=True)
    assert records.current == 2
    records.use(1)
    assert records.current == 1
    with pytest.raises(InvalidInputError):
        records.use(3)
    assert records.current == 1
    assert [v.name for v in records.versions()] == ["one", "two"]


def test_versions_begun_at_the_same_moment_have_different_numbers(where):
    def begin(records, _, barrier):
        barrier.wait()
        return [records.begin_version(Version(0, "x", "CGHash", 8)).version for _ in range(3)]

    assert sorted(itertools.chain(*at_the_same_moment(where, begin))) == [*range(1, 13)]


# Jobs


def test_one_job_at_a_time_also_when_several_ask_at_the_same_moment(where):
    def add(records, _, barrier):
        won = []
        for _ in range(5):
            barrier.wait()
            job = records.add_job({"bits": 8})
            barrier.wait()
            if job is not None:
                won.append(job.id)
                records.change_job(job.id, state="done")
            barrier.wait()
        return won

    won = [*itertools.chain(*at_the_same_moment(where, add))]
    assert len(won) == len(set(won)) == 5


def test_a_job_changes_only_from_the_states_that_are_named(records):
    job = records.add_job({"bits": 8, "C": None})
    assert (job.state, job.parameters, job.progress, job.version) == ("queued", {"bits": 8, "C": None}, {}, None)
    assert records.add_job({}) is None
    assert not records.change_job(job.id, when=("running",), state="done")
    assert records.change_job(job.id, when=("queued",), state="running", progress={"bit": 1, "gap": None})
    assert records.job(job.id).progress == {"bit": 1, "gap": None}
    assert records.change_job(job.id, state="done", version=3, message="learned")
    done = records.job(job.id)
    assert (done.state, done.version, done.message, done.created) == ("done", 3, "learned", job.created)
    assert records.active_job() is None
    later = records.add_job({})
    assert [j.id for j in records.jobs()] == [later.id, job.id]
    with pytest.raises(InvalidInputError, match="state must be one of"):
        records.change_job(job.id, state="sleeping")
    with pytest.raises(InvalidInputError, match="no job 999"):
        records.job(999)


# Threads, and connections that break


def test_threads_share_one_connection(records):
    def add(number):
        [stored] = records.add_answers([answer(number, (number, 100, 101))])
        records.undo(stored.id) if number % 2 else records.answers(0, 3)
        return stored.id

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(add, range(40)))
    assert len(set(numbers)) == 40
    assert records.count_answers() == (40, 20)


@pytest.mark.parametrize("first", range(4))
def test_after_ctrl_c_anywhere_the_same_records_go_on(where, interrupted, first):
    records, kept, maybe = open_records(where, "photos"), set(), []
    job, hit = records.add_job({}), True
    for at in itertools.count(1 + first, 4):
        pair = {f"{at}-a", f"{at}-b"}
        hit = interrupted(lambda pair=pair: records.add_answers([answer(key) for key in sorted(pair)]), at)
        maybe.append(pair)
        if not hit:
            kept |= pair
            break
        assert records.change_job(job.id, progress={"at": at})
        records.add_answers([answer(f"{at}-after")])
        kept.add(f"{at}-after")
        with contextlib.closing(open_records(where, "photos")) as others:
            found = {a.key for a in others.answers()}
            assert others.job(job.id).progress == {"at": at}
        assert found >= kept
        assert all(pair <= found or not pair & found for pair in maybe)
    assert {a.key for a in records.answers()} >= kept
    records.close()


def test_ctrl_c_while_a_change_is_taken_back_leaves_nothing_of_it(where, monkeypatch):
    records = open_records(where, "photos")

    def again(*nothing):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(records.database, "_undo", again)
        patch.setattr(records, "_by_key", again)
        with pytest.raises(KeyboardInterrupt):
            records.add_answers([answer("never")])
    job = records.add_job({})
    assert records.change_job(job.id, state="done")
    records.add_answers([answer("after")])
    with contextlib.closing(open_records(where, "photos")) as others:
        assert [a.key for a in others.answers()] == ["after"]
        assert others.job(job.id).state == "done"
    records.close()


def test_an_error_inside_a_change_takes_it_back(records):
    def work():
        records.add_answers([answer("a")])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        records.database.change(work)
    assert records.count_answers() == (0, 0)


def cut(url):
    """End all other connections to a database, as a restart of its server does."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_cut_connection_to_postgresql_is_made_again(postgres):
    url = postgres()
    records = open_records(url, "photos")
    records.add_answers([answer("a")])
    cut(url)
    assert records.count_answers() == (1, 0)
    cut(url)
    records.add_answers([answer("b")])
    job = records.add_job({})
    cut(url)
    assert records.change_job(job.id, state="running")
    records.close()


def test_a_connection_cut_in_the_middle_of_a_change_takes_it_back(postgres):
    url = postgres()
    records = open_records(url, "photos")

    def work():
        records.add_answers([answer("a")])
        cut(url)
        records.add_answers([answer("b")])

    with pytest.raises(CGHashError, match="did not take it"):
        records.database.change(work)
    assert records.count_answers() == (0, 0)
    records.add_answers([answer("a"), answer("b")])
    assert records.count_answers() == (2, 0)
    records.close()


def test_a_database_that_cannot_be_reached_is_one_line(tmp_path):
    for where, words in [
        ("postgresql://127.0.0.1:1/nothing", "cannot be reached"),
        ("mysql://here/answers", "must be a file or a postgresql:// URL, got the scheme 'mysql'"),
        (str(tmp_path / "no" / "folder.sqlite"), "must be a SQLite database"),
    ]:
        with pytest.raises(CGHashError, match=words) as error:
            open_records(where)
        assert "\n" not in str(error.value)
    (tmp_path / "foreign").write_bytes(b"no database at all" * 100)
    with pytest.raises(FormatError):
        open_records(tmp_path / "foreign")


def test_postgresql_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r"cghash\[postgres\]"):
        database_module.PostgreSQL("postgresql://here/answers")


# Everything at once, against plain lists

KEYS = st.sampled_from(["a", "b", "c", "d", "e"])
NAMES = st.sampled_from(["photos", "texts"])


class Books(RuleBasedStateMachine):
    """Two workspaces in one database, and what plain Python lists say of them."""

    def __init__(self, new_database):
        super().__init__()
        self.where = new_database()
        self.records = {name: open_records(self.where, name) for name in ("photos", "texts")}

    @initialize()
    def begin(self):
        self.answers = {name: {} for name in self.records}  # key → [choice, undone]
        self.numbers = {name: {} for name in self.records}  # key → id
        self.versions = {name: [] for name in self.records}  # ready or not
        self.current = dict.fromkeys(self.records)
        self.jobs = {name: [] for name in self.records}  # [id, state]

    @rule(name=NAMES, given=st.lists(st.tuples(KEYS, st.sampled_from(CHOICES)), max_size=3))
    def answer(self, name, given):
        stored = self.records[name].add_answers([answer(key, choice=choice) for key, choice in given])
        for (key, choice), found in zip(given, stored, strict=True):
            self.answers[name].setdefault(key, [choice, False])
            assert self.numbers[name].setdefault(key, found.id) == found.id

    @rule(name=NAMES, key=KEYS)
    def undo(self, name, key):
        if key in self.answers[name]:
            self.records[name].undo(self.numbers[name][key])
            self.answers[name][key][1] = True

    @rule(name=NAMES, finished=st.booleans(), use=st.booleans())
    def version(self, name, finished, use):
        begun = self.records[name].begin_version(Version(0, "x", "CGHash", 8))
        self.versions[name].append(finished)
        assert begun.version == len(self.versions[name])
        if finished:
            self.records[name].finish_version(begun, use=use)
            self.current[name] = begun.version if use else self.current[name]

    @rule(name=NAMES, number=st.integers(1, 4))
    def use(self, name, number):
        if number <= len(self.versions[name]) and self.versions[name][number - 1]:
            self.records[name].use(number)
            self.current[name] = number
        else:
            with pytest.raises(InvalidInputError):
                self.records[name].use(number)

    @rule(name=NAMES)
    def add_job(self, name):
        job = self.records[name].add_job({})
        busy = any(state in ACTIVE_STATES for _, state in self.jobs[name])
        assert (job is None) == busy
        if job is not None:
            self.jobs[name].append([job.id, "queued"])

    @rule(name=NAMES, state=st.sampled_from(STATES), when=st.sets(st.sampled_from(STATES), min_size=1))
    def change_job(self, name, state, when):
        if self.jobs[name]:
            last = self.jobs[name][-1]
            assert self.records[name].change_job(last[0], when=sorted(when), state=state) == (last[1] in when)
            last[1] = state if last[1] in when else last[1]

    @rule(name=NAMES)
    def reopen(self, name):
        self.records[name].close()
        self.records[name] = open_records(self.where, name)

    @invariant()
    def agree(self):
        for name, records in self.records.items():
            told = self.answers[name]
            found = {a.key: [a.choice, a.undone is not None] for a in records.answers()}
            assert found == told
            assert [*found] == sorted(told, key=self.numbers[name].get)
            assert records.count_answers() == (len(told), sum(undone for _, undone in told.values()))
            assert records.current == self.current[name]
            ready = [i + 1 for i, whole in enumerate(self.versions[name]) if whole]
            assert [v.version for v in records.versions()] == ready
            assert [[j.id, j.state] for j in records.jobs()] == self.jobs[name][::-1]

    def teardown(self):
        for records in self.records.values():
            records.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_any_sequence_of_calls_keeps_what_lists_would(kind, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("books")
    new = request.getfixturevalue("postgres") if kind == "postgresql" else None
    files = (str(folder / f"{number}.sqlite") for number in range(10**6))
    run_state_machine_as_test(
        lambda: Books(new or (lambda: next(files))),
        settings=settings(max_examples=25 if new is None else 8, stateful_step_count=20),
    )
