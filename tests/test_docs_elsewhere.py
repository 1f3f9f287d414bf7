"""Blocks of the pages that need a server, a cluster, a device or files: what stands there runs."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
import tomllib
import urllib.request
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from cghash import WeightedHammingIndex
from cghash.cli import main
from cghash.client import Client

_SPEC = importlib.util.spec_from_file_location("pages", Path(__file__).with_name("test_docs.py"))
pages = sys.modules["pages"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(pages)

GUIDES = pages.ROOT / "docs" / "guides"


def elsewhere(name, language):
    """The blocks of a guide that are marked to be run here."""
    found = [b.text for b in pages.blocks(GUIDES / name) if b.language == language and b.mark == "run elsewhere"]
    assert found
    return found


def call(line):
    done = CliRunner().invoke(main, shlex.split(line, comments=True)[1:])
    assert done.exit_code == 0, f"{line}: {done.output}"
    return done.output


def test_every_block_that_is_marked_is_run_here():
    marked = {page.name for page in pages.PAGES if any(b.mark == "run elsewhere" for b in pages.blocks(page))}
    assert marked == {"cluster.md", "gpu.md", "laboratory.md", "page.md", "ten_million.md"}


def asked(line, url):
    """What a server answers to a line of curl."""
    words = shlex.split(line)
    assert words[:2] == ["curl", "-s"]
    address, options = words[2].replace("localhost:8000", url.removeprefix("http://")), words[3:]
    told = dict(zip(options[::2], options[1::2], strict=True))
    body = told.get("-d", "").replace("…", ", ".join(["0"] * 62)).encode() or None
    if "--data-binary" in told:
        body = Path(told["--data-binary"].removeprefix("@")).read_bytes()
    kind, _, value = told.get("-H", "Accept: */*").partition(": ")
    request = urllib.request.Request(f"http://{address}", data=body, headers={kind: value})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_the_api_answers_the_lines_of_curl_and_the_client(school, start_server, tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    image = load_digits().images[3]
    Image.fromarray((255 - image * 15.9).astype(np.uint8)).resize((64, 64)).save("three.png")
    (lines,) = (text.splitlines() for text in elsewhere("page.md", "bash") if text.startswith("curl"))
    (program,) = elsewhere("page.md", "python")
    with start_server(school) as server:
        for line in lines:
            found = asked(line.replace('"bits": 64', '"bits": 8'), server.url)
            assert found
            if line.endswith("/api/jobs/1"):
                assert Client(server.url).wait(1) == 2
        exec(program.replace("http://127.0.0.1:8000", server.url).replace("bits=64", "bits=8"), {})


@pytest.mark.slow
def test_workspaces_are_made_and_exchanged_as_the_guide_says(tmp_path, monkeypatch):
    from PIL import Image

    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    images, digits = load_digits().images[:12], load_digits().target[:12]
    Path("photos").mkdir()
    for number, image in enumerate(images):
        Image.fromarray((image * 15.9).astype(np.uint8)).resize((64, 64)).save(f"photos/{number}.png")
    texts = [f"item {d} of {'red' if d % 2 else 'blue'} cloth, number {n}" for n, d in enumerate(digits)]
    Path("items.csv").write_text("id,description\n" + "\n".join(f'{n},"{t}"' for n, t in enumerate(texts)) + "\n")
    pq.write_table(pa.table({"id": np.arange(12), "kind": digits}), "items.parquet")
    np.save("v.npy", images.reshape(12, 64))
    made, exchanged = (text for text in elsewhere("page.md", "bash") if text.startswith("cghash workspace"))
    with threadpool_limits(1):
        for line in made.splitlines():
            if line.startswith("cghash workspace") and "sentences" not in line:  # which needs a model from elsewhere
                call(line)
        call("cghash workspace new other.ws --items photos/")
        for line in exchanged.splitlines():
            if "other.ws" not in line:
                call(line)
        (Path("out") / "triplets.csv").write_text("anchor,near,far\n0.png,1.png,2.png\n")
        for line in exchanged.splitlines():
            if "other.ws" in line:
                call(line.replace(" out/model.cghash", ""))  # a workspace that has learned nothing has no model
    assert {path.name for path in tmp_path.glob("*.ws")} == {"photos.ws", "shop.ws", "mine.ws", "other.ws"}


@pytest.mark.slow
def test_the_small_experiment_leaves_its_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (text,) = elsewhere("laboratory.md", "bash")
    run, report = text.splitlines()
    call(f"{run.partition('#')[0]} --splits 1 --method CGHash,LSH")
    call(report)
    assert Path("out/lab/digits/report/index.html").is_file()


@pytest.mark.slow
def test_a_cluster_is_commanded_as_the_guide_says(tmp_path, monkeypatch):
    """With one worker for all commands."""
    pytest.importorskip("distributed")
    from cghash.cluster import connected

    monkeypatch.chdir(tmp_path)
    first = next(b for b in pages.blocks(GUIDES / "cluster.md") if b.language == "python")
    exec(first.text.replace("CGHash(32", "CGHash(4"), {"__name__": "page"})
    np.save("new.npy", load_digits().data[:3].astype(np.float32))
    (text,) = elsewhere("cluster.md", "bash")
    with threadpool_limits(1), connected(n_workers=1) as client:
        for line in text.splitlines():
            line = re.sub(r" --(scheduler|workers) \S+", "", line).replace("-b 32", "-b 4")
            said = call(f"{line} --scheduler {client.scheduler.address}")
    assert len(said.splitlines()) >= 3


def test_filters_are_timed_as_the_guide_says(capsys):
    """Of fewer codes."""
    (text,) = elsewhere("ten_million.md", "python")
    names = {"np": np, "WeightedHammingIndex": WeightedHammingIndex, "rng": np.random.default_rng(0)}
    exec(text.replace("10_000_000", "20_000"), names)
    assert [float(line) >= 0 for line in capsys.readouterr().out.splitlines()] == [True, True]


# What is not run: its commands, options, targets and extras are known


def not_run():
    for page in pages.PAGES:
        for block in pages.blocks(page):
            if block.mark == "not run":
                assert block.language == "bash", f"{page.name}, line {block.line}: Python can be run"
                for line in block.text.splitlines():
                    for command in shlex.split(line, comments=True) and line.partition("#")[0].split("&&"):
                        yield command.strip()


def known(words):
    """Whether `cghash` has such a command, with these options."""
    group, name = main, "cghash"
    while isinstance(group, click.Group):
        context = click.Context(group, info_name=name)
        name, command, words = group.resolve_command(context, words)
        group = command
    group.make_parser(click.Context(group, info_name=name)).parse_args(list(words))
    return True


@pytest.mark.parametrize("line", sorted(set(not_run())))
def test_commands_that_are_not_run_are_known(line):
    words = shlex.split(re.sub(r"^CGHASH_TOKEN=\S+\(.*\) ", "", line))
    if words[0] == "cghash":
        assert known(words[1:])
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (pages.ROOT / "Makefile").read_text(), re.M)
    elif words[:2] == ["pip", "install"]:
        extras = tomllib.loads((pages.ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        asked_for = re.search(r"\[(.*)\]", words[2])
        assert not asked_for or set(asked_for[1].split(",")) <= set(extras)
    else:
        assert words[0] in ("python", "."), line  # a virtual environment
