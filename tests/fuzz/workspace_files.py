"""Workspaces with one damaged file, asked by the page and the command line; answer files; pictures."""

from __future__ import annotations

import io
import random
import shutil
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from model_files import shown
from mutations import (
    ODD,
    bytes_changed,
    json_changed,
    lines_changed,
    npy_changed,
    safetensors_changed,
    text_changed,
)
from running import Format, scratch

N = 24  # items
ADDRESSES = (
    "/", "/teach", "/metrics", "/api/workspace", "/api/items?count=30", "/api/items?filter=part=a&filter=size>=3",
    "/api/items?filter=part~B&filter=part=", "/api/items/7", "/api/items/5/image?size=96", "/api/items/5/image?size=0",
    "/api/search?item=3&k=5&details=true", "/api/search?item=3&k=5&filters=size<=9", "/api/search?item=1&model=vectors",
    "/api/questions?count=3", "/api/answers", "/api/answers/summary", "/api/answers/contradictions", "/api/models",
    "/api/models/1", "/api/models/1/bits?count=3", "/api/models/1/curve", "/api/jobs", "/api/jobs/1", "/healthz",
)  # fmt: skip


def _picture(kind: str, mode: str = "L", seed: int = 0, **options: Any) -> bytes:
    from PIL import Image

    levels = np.random.default_rng(seed).integers(0, 256, (9, 13)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(levels).convert(mode).save(file, kind, **options)
    return file.getvalue()


@cache
def workspaces() -> dict[str, Path]:
    """A small workspace of each kind, with a model, answers and a job."""
    from cghash.workspace import create_workspace
    from cghash.workspace.fitting import first_model
    from cghash.workspace.records import Answer

    home = scratch() / "sources"
    (home / "pictures").mkdir(parents=True)
    for row in range(N):
        (home / "pictures" / f"{row}.png").write_bytes(_picture("PNG", seed=row))
    rows = "".join(f"i{row},{row}.png,{'abc'[row % 3]},{row / 2}\n" for row in range(N))
    (home / "pictures" / "items.csv").write_text(f"id,image,part,size\n{rows}")
    words = "".join(f"t{row},the {('red', 'blue')[row % 2]} boat {row % 5} at sea,{row % 3}\n" for row in range(N))
    (home / "texts.csv").write_text(f"id,text,part\n{words}")
    np.save(home / "vectors.npy", np.random.default_rng(0).normal(size=(N, 4)).astype(np.float32))
    made = {}
    for kind, source in {"images": "pictures/items.csv", "texts": "texts.csv", "vectors": "vectors.npy"}.items():
        made[kind] = scratch() / f"{kind}.ws"
        labels = None if kind == "vectors" else "part"
        with warnings.catch_warnings(), create_workspace(made[kind], home / source, labels=labels) as workspace:
            warnings.simplefilter("ignore")
            first_model(workspace, bits=8, n_jobs=1)
            answers = [Answer(f"a{n}", n, n + 3, n + 7, ("left", "unsure")[n % 2], "active") for n in range(6)]
            workspace.records.add_answers(answers)
            job = workspace.records.add_job({"bits": 8})
            assert job is not None
            workspace.records.change_job(job.id, state="done", progress={"bit": 8}, version=1)
    return made


def seeds() -> list[bytes]:
    """Each file of each workspace: its name, a zero, its bytes."""
    found = []
    for kind, folder in workspaces().items():
        files = sorted(
            path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm"))
        )
        wanted = [path for path in files if path.suffix != ".png" or path.name.startswith("5.")]
        found += [f"{kind}/{path.relative_to(folder)}".encode() + b"\0" + path.read_bytes() for path in wanted]
    return found


def changed(data: bytes, rng: random.Random) -> bytes:
    """The file changed by what it is; its name stays."""
    name, _, content = data.partition(b"\0")
    ways: dict[bytes, Callable[[bytes, random.Random], bytes]] = {
        b"json": json_changed, b"sqlite": sqlite_changed, b"npy": npy_changed, b"cghash": safetensors_changed,
    }  # fmt: skip
    return name + b"\0" + ways.get(name.rpartition(b".")[2], bytes_changed)(content, rng)


def sqlite_changed(data: bytes, rng: random.Random) -> bytes:
    """A database with another value, row or table; or other bytes."""
    if rng.random() < 0.4:
        return bytes_changed(data, rng, head=len(data) if rng.random() < 0.5 else 400)
    path = scratch() / "changed.sqlite"
    path.write_bytes(data)
    with suppress(sqlite3.Error, OverflowError, UnicodeError), closing(sqlite3.connect(path)) as database, database:
        _one_change(database, rng)
    return path.read_bytes()


def _one_change(database: sqlite3.Connection, rng: random.Random) -> None:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = rng.choice([name for name in tables if not name.startswith("sqlite_")])
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    column = rng.choice(columns)
    count = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
    where = f'rowid IN (SELECT rowid FROM "{table}" LIMIT 1 OFFSET {rng.randrange(max(1, count))})'
    kind = rng.randrange(10)
    if kind < 6:
        plain = [odd for odd in ODD if odd is None or isinstance(odd, int | float | str)]
        odd = [*plain, b"\xff\xfe", b"", "[", "[1]", "[[]]", '{"a": 1}', "[" * 5000, 'a"b', "1e999", "2020-01-01"]
        every = rng.random() < 0.3
        database.execute(
            f'UPDATE "{table}" SET "{column}" = ?' + ("" if every else f" WHERE {where}"), [rng.choice(odd)]
        )
    elif kind == 6:
        database.execute(f'DELETE FROM "{table}"' + ("" if rng.random() < 0.3 else f" WHERE {where}"))
    elif kind == 7:
        database.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{rng.choice(["x", "row", "id"])}"')
    elif kind == 8:
        database.execute(f"PRAGMA user_version = {rng.choice([0, 2, -1, 2**31 - 1])}")
    else:
        database.execute(rng.choice([f'DROP TABLE "{table}"', f'ALTER TABLE "{table}" DROP COLUMN "{column}"']))


def use_workspace(data: bytes) -> None:
    """Serve it, ask everything, answer and export; a request that only a damaged file can explain is a refusal."""
    from starlette.testclient import TestClient

    from cghash.exceptions import CGHashError
    from cghash.web.app import create_app
    from cghash.workspace import Workspace
    from cghash.workspace.exchange import export_workspace

    _quiet()
    name, _, content = data.partition(b"\0")
    kind, _, file = name.decode().partition("/")
    folder = scratch() / "damaged.ws"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(workspaces()[kind], folder)
    (folder / file).write_bytes(content)
    failed = []
    with Workspace.open(folder) as workspace:
        with TestClient(create_app(workspace, hosts=None, n_jobs=1)) as client:
            ask = partial(_asked, client, failed)
            for address in ADDRESSES:
                ask("GET", address)
            ask("POST", "/api/search", json={"text": "red boat", "k": 3})
            ask("POST", "/api/search", json={"vector": [0.5] * 4, "k": 3})
            ask("POST", "/api/search/image", content=_picture("PNG"))
            ask("POST", "/api/answers", json={"key": "new", "anchor": 1, "left": 2, "right": 9, "choice": "left"})
            ask("DELETE", "/api/answers/1")
            ask("POST", "/api/models/current", json={"version": 1})
            ask("POST", "/api/jobs", json={"bits": 8})
        for words in (("workspace", "info", str(folder)), ("workspace", "info", str(folder), "--json")):
            shown(*words)
        shutil.rmtree(scratch() / "exported", ignore_errors=True)
        export_workspace(workspace, scratch() / "exported")
    if failed:
        raise CGHashError(f"answered with an error of the server: {failed[0]}")


def _asked(client: Any, failed: list[str], method: str, address: str, **more: Any) -> None:
    """Ask for an address; an error that is not ours is raised here, one of ours is a status of 500."""
    if client.request(method, address, **more).status_code == 500:
        failed.append(f"{method} {address}")


@cache
def _quiet() -> None:
    """Jobs have no worker, and what is wrong is not written on the screen."""
    import logging

    from cghash.workspace import jobs

    setattr(jobs.Jobs, "_run", lambda self, number: None)  # noqa: B010
    setattr(jobs, "_COMING_UP", timedelta(0))  # noqa: B010
    for name in ("cghash", "httpx"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def answer_files() -> list[bytes]:
    told = "anchor,near,far,source,created,key\ni1,i2,i3,test,2026-01-01T00:00:00.000+00:00,k1\ni4,i5,i6,active,,k2\n"
    unsure = "anchor,left,right,choice,source,created,key\ni1,i2,i3,unsure,test,2026-01-01T00:00:00.000+00:00,k1\n"
    lines = '{"anchor": "i1", "near": "i2", "far": "i3", "source": "test", "created": "x", "key": "k"}\n'
    lists = '["i1", "i2", "i3"]\n["i4", "i5", "i6"]\n'
    texts = [("csv", told), ("csv", unsure), ("jsonl", lines), ("jsonl", lists)]
    return [f"{kind}\0{text}".encode() for kind, text in texts]


def answers_changed(data: bytes, rng: random.Random) -> bytes:
    kind, _, content = data.partition(b"\0")
    change = lines_changed if kind == b"jsonl" else text_changed(["i1", "unsure", "test", "key", "9999-12-31"])
    return kind + b"\0" + change(content, rng)


def use_answers(data: bytes) -> None:
    """Import answers into a workspace."""
    from cghash.workspace import Workspace
    from cghash.workspace.exchange import import_files

    kind, _, content = data.partition(b"\0")
    path = scratch() / f"answers.{kind.decode()}"
    path.write_bytes(content)
    with Workspace.open(workspaces()["images"]) as workspace:
        before = workspace.records.count_answers()[0]
        found = import_files(workspace, [path])
        assert workspace.records.count_answers()[0] == before + found.answers
        assert len(workspace.records.answers()) == before + found.answers


@cache
def pictures() -> list[bytes]:
    plain = [_picture(kind) for kind in ("PNG", "JPEG", "BMP", "GIF", "TIFF", "PPM")]
    others = [
        _picture("PNG", "RGBA"), _picture("PNG", "P"), _picture("JPEG", "CMYK"),
        _picture("JPEG", "RGB", progressive=True),
        _picture("TIFF", "RGB", compression="tiff_deflate"), _picture("TIFF", "1", compression="group4"),
    ]  # fmt: skip
    return [*plain, *others]


def use_picture(data: bytes) -> None:
    """Decode it in every way in which we do."""
    from cghash.exceptions import CGHashError
    from cghash.lab.features.images import read_grey
    from cghash.workspace.pictures import check_picture, digit_of, grey_of

    path = scratch() / "picture"
    path.write_bytes(data)
    refusals = []
    for read in (check_picture, grey_of, read_grey):
        try:
            found: Any = read(path)  # type: ignore[operator]
        except CGHashError as error:
            refusals.append(error)
        else:
            if isinstance(found, np.ndarray):
                assert found.dtype == np.uint8
                assert digit_of(found).shape == (64,)
    if len(refusals) == 3:
        raise refusals[0]


FORMATS = [
    Format("workspace", seeds, use_workspace, changed, ("cghash.workspace", "cghash.web"), sample=50),
    Format("answers", answer_files, use_answers, answers_changed, ("cghash.workspace", "cghash.reading")),
    Format("picture", pictures, use_picture, bytes_changed, ("cghash.workspace.pictures", "cghash.lab.features")),
]
