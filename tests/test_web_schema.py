"""Requests of every shape that the API's description allows, and of many that it does not: never a 500."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from cghash.web.app import create_app
from cghash.workspace import Workspace
from cghash.workspace import jobs as jobs_module
from cghash.workspace.records import Answer

TOKEN = "a token of many characters"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
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


def test_any_request_with_the_token_is_answered_and_without_it_refused(workspace):
    schema = described(create_app(workspace, token=TOKEN, hosts=None, n_jobs=1), BEARER)

    def check(case):
        case.call_and_validate(checks=CHECKS, headers=BEARER)
        refused = case.call(headers={"Authorization": "Bearer no"})
        # a browser is sent on from /metrics to the form that asks for the token
        assert refused.status_code in {"/healthz": (200,), "/metrics": (200,)}.get(case.operation.path, (401, 415))

    assert each_request(schema, GenerationMode.POSITIVE, check) > 20
