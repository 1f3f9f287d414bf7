"""Requests of every shape that the API's description allows, and of many that it does not: each answered as it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from cghash.web import guard
from cghash.web.app import create_app
from cghash.workspace import Workspace
from cghash.workspace import jobs as jobs_module
from cghash.workspace.records import Answer

TOKEN = "a token of many characters"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    positive_data_acceptance,
    negative_data_rejection,
]
BOUNDED = settings(
    max_examples=12,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)


@pytest.fixture(scope="module")
def workspace(few_digits, tmp_path_factory):
    """A workspace with answers and a job, whose new jobs have no worker: they fail when they are looked at."""
    folder = shutil.copytree(few_digits, tmp_path_factory.mktemp("schema") / "digits.ws")
    with pytest.MonkeyPatch.context() as patch, Workspace.open(folder) as opened:
        patch.setattr(jobs_module.Jobs, "_run", lambda self, number: None)
        patch.setattr(jobs_module, "_COMING_UP", timedelta(0))
        opened.records.add_answers([Answer(f"a{n}", n, 50, 60, "left", "active") for n in range(5)])
        opened.records.change_job(opened.records.add_job({}).id, state="done")
        yield opened


def described(app, headers):
    return schemathesis.openapi.from_asgi("/api/openapi.json", app, headers=headers)


def _silent(check):
    def test(case):
        check(case)

    return test


def each_request(schema, mode, check):
    """Calls `check` with examples of every operation: such as the description allows, or such as it does not."""
    count = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        try:
            requests = operation.as_strategy(generation_mode=mode)
            BOUNDED(given(case=requests)(_silent(check)))()
        except Unsatisfiable:  # an operation that takes nothing cannot be asked wrongly
            assert mode is GenerationMode.NEGATIVE
            continue
        count += 1
    return count


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=str)
def test_any_request_is_answered_as_described(workspace, mode):
    schema = described(create_app(workspace, hosts=None, n_jobs=1), {})
    assert each_request(schema, mode, lambda case: case.call_and_validate(checks=CHECKS)) > 15


def test_any_request_with_the_token_is_answered_and_without_it_refused(workspace, monkeypatch):
    monkeypatch.setattr(guard, "_SECONDS_AFTER_WRONG", 0)
    schema = described(create_app(workspace, token=TOKEN, hosts=None, n_jobs=1), BEARER)

    def check(case):
        case.call_and_validate(checks=[*CHECKS, ignored_auth], headers=BEARER)
        refused = case.call(headers={"Authorization": "Bearer no"})
        assert refused.status_code == (200 if case.operation.path == "/healthz" else 401)

    assert each_request(schema, GenerationMode.POSITIVE, check) > 20


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def test_a_method_that_an_address_does_not_take_is_405_and_names_those_it_takes(few_digits, open_api):
    with open_api(few_digits) as client:
        document = client.get("/api/openapi.json").json()["paths"]
        others = {"/": {"get"}, "/login": {"get", "post"}, "/static/style.css": {"get", "head"}}
        for path, known in (document | others).items():
            address = path.replace("{row}", "1").replace("{number}", "1")
            for method in METHODS:
                if method.lower() in known:
                    continue
                for kind in ({}, {"content-type": "text/plain"}, {"content-type": "application/json"}):
                    response = client.request(method, address, headers=kind)
                    assert response.status_code == 405, (method, path)
                    assert {name.lower() for name in response.headers["allow"].split(", ")} == {*known}, (method, path)


def test_addresses_that_do_not_exist_are_404_whatever_is_sent(few_digits, open_api):
    with open_api(few_digits) as client:
        for method in set(METHODS) - {"TRACE"}:
            assert client.request(method, "/api/nothing").status_code == 404


@pytest.mark.parametrize("asks", ["nothing", "a token"])
def test_an_outsider_finds_nothing(asks, digits, start_server, tmp_path):
    """Schemathesis' own command, with all its checks and phases, against a real server."""
    locked, headers = ([], []) if asks == "nothing" else (["--token", TOKEN], ["-H", f"Authorization: Bearer {TOKEN}"])
    phases = "examples,coverage,fuzzing,stateful" if asks == "nothing" else "coverage,fuzzing"
    options = ["--phases", phases, "--checks", "all", "--max-examples", "6", "--seed", "1", "--continue-on-failure"]
    if asks == "a token":  # a wrong one is made to wait; the test above tries that with every request
        options += ["--exclude-checks", "ignored_auth"]
    with start_server(digits, *locked) as server:
        command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{server.url}/api/openapi.json"]
        run = [*command, *options, *headers]
        told = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=os.environ, check=False)
    assert told.returncode == 0, told.stdout[-8000:] + told.stderr[-2000:]
    assert " 0 passed" not in told.stdout
