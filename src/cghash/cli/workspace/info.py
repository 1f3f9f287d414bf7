"""`cghash workspace info`: what a workspace holds."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .._options import json_option
from .._tables import show_facts
from ._options import database_option

if TYPE_CHECKING:
    from ...workspace import Workspace


@click.command()
@click.argument("folder", metavar="DIR")
@database_option
@json_option
def info(folder: str, database: str | None, as_json: bool) -> None:
    """Show what the workspace in DIR holds: items, attributes, vectors, answers, models.

    \b
    Examples:
      cghash workspace info birds
      cghash workspace info birds --json | jq .answers
    """
    from ...workspace import Workspace

    with Workspace.open(folder, database) as workspace:
        facts = _facts(workspace)
    if as_json:
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        show_facts(folder, _for_people(facts))


def _facts(workspace: Workspace) -> dict[str, Any]:
    damaged = workspace.records.damage()  # first: what is damaged is not counted
    n, undone = workspace.records.count_answers()
    return {
        **workspace.about,
        "attributes": [asdict(attribute) for attribute in workspace.items.attributes],
        "answers": {"count": n, "undone": undone},
        "models": [{"version": v.version, "name": v.name, "bits": v.bits} for v in workspace.records.versions()],
        "current": workspace.records.current,
        "damaged": damaged,
    }


def _for_people(facts: dict[str, Any]) -> list[tuple[str, str]]:
    skipped = facts["skipped"]["count"]
    current = f", version {facts['current']} is used" if facts["current"] is not None else ""
    model = f" by {facts['vectors']['model']}" if "model" in facts["vectors"] else ""
    undone = f", {facts['answers']['undone']} of them taken back" if facts["answers"]["undone"] else ""
    return [
        ("title", facts["title"]),
        ("items", f"{facts['items']} ({facts['kind']})" + (f", {skipped} left out" if skipped else "")),
        ("vectors", f"{facts['dimension']} numbers ({facts['vectors']['source']}{model})"),
        ("attributes", "; ".join(map(_attribute, facts["attributes"])) or "none"),
        ("labels", facts["labels"] or "none"),
        ("answers", f"{facts['answers']['count']}{undone}"),
        ("models", f"{len(facts['models'])}{current}"),
        ("created", facts["created"]),
        *(("damaged", row) for row in facts["damaged"]),
    ]


def _attribute(about: dict[str, Any]) -> str:
    """An attribute in a few words.

    >>> _attribute({"name": "year", "kind": "number", "values": None, "least": 1990, "most": 2001})
    'year (1990 to 2001)'
    """
    if about["kind"] == "number":
        return f"{about['name']} ({about['least']} to {about['most']})"
    values = about["values"]
    return f"{about['name']} ({'many values' if values is None else f'{len(values)} values'})"
