"""Disks that are full or read-only under a workspace."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from cghash.cli import main
from cghash.exceptions import CGHashError
from cghash.workspace import create_workspace
from cghash.workspace.database import open_database
from cghash.workspace.item_writer import ItemWriter, NewItem, disk_errors

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")

LIMITED = """
import resource, sys
from cghash.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
main(sys.argv[1:])
"""


def made_on_a_full_disk(tmp_path, *settings):
    """What `cghash workspace new` says where no file may grow past 300 000 bytes."""
    command = [sys.executable, "-c", LIMITED, "workspace", "new", "ws", *settings]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert not list(tmp_path.glob(".*"))
    assert not (tmp_path / "ws").exists()
    return done.returncode, done.stderr


def test_vectors_take_room_on_the_disk_as_they_are_written(tmp_path):
    """Not a map of the whole file, which the first touch of a page that does not fit would end the process with."""
    sizes = []

    def look(stage, done, total):
        if stage == "vectors":
            [file] = tmp_path.glob(".ws.*.tmp/vectors.npy")
            sizes.append((file.stat().st_size, done))

    X = np.random.default_rng(0).normal(size=(10_000, 30)).astype(np.float32)
    with create_workspace(tmp_path / "ws", X, progress=look) as workspace:
        np.testing.assert_array_equal(workspace.vectors, X)
    assert len(sizes) == 3
    assert all(size <= 128 + done * X[:1].nbytes for size, done in sizes)


def test_vectors_that_do_not_fit_name_their_file(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((2000, 100), dtype=np.float32))
    code, told = made_on_a_full_disk(tmp_path, "--items", "v.npy")
    assert (code, told) == (1, f"cghash: error: file too large: '{tmp_path}/ws/vectors.npy'\n")


def test_items_that_do_not_fit_name_their_file(tmp_path):
    (tmp_path / "i.csv").write_text("id,text\n" + "".join(f"{i},{'words ' * 50}\n" for i in range(3000)))
    code, told = made_on_a_full_disk(tmp_path, "--items", "i.csv")
    assert (code, told) == (1, f"cghash: error: input/output error: '{tmp_path}/ws/items.sqlite'\n")


def test_copies_of_pictures_that_do_not_fit_name_their_file_and_not_the_picture(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    noise = np.random.default_rng(0).integers(0, 256, (400, 400, 3), dtype=np.uint8)
    (tmp_path / "photos").mkdir()
    Image.fromarray(noise).save(tmp_path / "photos" / "noise.png")
    code, told = made_on_a_full_disk(tmp_path, "--items", "photos", "--pictures", "copy")
    assert (code, told) == (1, f"cghash: error: file too large: '{tmp_path}/ws/items/000/000000.png'\n")


def test_a_database_of_items_that_is_full_is_an_error_of_the_disk(tmp_path):
    path = tmp_path / "items.sqlite"
    writer = ItemWriter(path, [])
    writer._connection.execute("PRAGMA max_page_count = 10")
    with pytest.raises(OSError, match="No space left") as caught, disk_errors(path), writer:
        writer.add(NewItem(f"{i:0500d}") for i in range(1000))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, os.fspath(path))


def test_a_database_of_answers_that_is_full_says_so(tmp_path):
    database = open_database(tmp_path / "answers.sqlite")
    database.run("CREATE TABLE cghash_answers (words TEXT)")
    database.run("PRAGMA max_page_count = 10")
    with pytest.raises(CGHashError, match=r"answers\.sqlite could not be changed: the disk is full$"):
        database.run("INSERT INTO cghash_answers VALUES (?)", ["words" * 100_000])
    database.close()


@pytest.mark.parametrize(("flag", "why"), [(os.ST_RDONLY, "its disk is read-only"), (0, "you may not write to")])
def test_a_workspace_that_can_only_be_read_says_so(digits, monkeypatch, flag, why):
    """As on a disk that is mounted so: the tests may run as root, whom permissions do not stop."""
    (digits / "answers.sqlite").unlink(missing_ok=True)
    (digits / "answers.sqlite").mkdir()  # which SQLite cannot open
    found = os.statvfs(digits)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(os, "statvfs", lambda path: type("Found", (), {"f_flag": found.f_flag & ~os.ST_RDONLY | flag}))
    told = CliRunner().invoke(main, ["workspace", "info", os.fspath(digits)])
    assert told.exit_code == 1
    assert f"answers.sqlite cannot be changed: {why}" in told.stderr
    assert "--database names another place for the answers" in told.stderr
