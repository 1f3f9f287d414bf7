"""`cghash info`: what a model file, a checkpoint or an index file holds."""

from __future__ import annotations

from typing import Any

import click

from ._inputs import load_model
from ._options import DEFAULTS, json_option
from ._output import show_facts, show_json


@click.command()
@click.argument("model")
@json_option
def info(model: str, as_json: bool) -> None:
    """Show what MODEL, a model file or a checkpoint, holds: bits, weights, how the fit went and what it proves.

    Of an index file it shows what 'cghash index info' does.

    \b
    Examples:
      cghash info model.cghash
      cghash info running.ckpt
      cghash info model.cghash --json | jq .result.gap
    """
    from .. import checkpoints, storage
    from ..index.sections import is_section_file
    from ..peers import peer_files

    if is_section_file(model):
        from .index import show_index

        show_index(model, as_json)
        return
    kind = storage.kind_of(model)
    if kind == peer_files.KIND:
        facts, rows = _of_peer(model), _peer_for_people
    else:
        facts, rows = (_of_checkpoint if kind == checkpoints.KIND else _of_model)(model), _for_people
    if as_json:
        show_json(facts)
    else:
        show_facts(model, rows(facts))


def _of_model(path: str) -> dict[str, Any]:
    model: Any = load_model(path)
    result = model.result_
    facts = _facts("model", model.functions_.family, model.weights_, result.columns)
    facts["n_features"] = model.n_features_in_
    facts["feature_names"] = list(getattr(model, "feature_names_in_", [])) or None
    facts["parameters"] = model.get_params(deep=False)
    told = ("status", "message", "exact", "loss", "regularizer", "n_triplets", "n_pairs", "final_violation", "seconds")
    facts["result"] = {name: getattr(result, name) for name in told} | facts["result"]
    return facts


def _of_peer(path: str) -> dict[str, Any]:
    model: Any = load_model(path, ranks=False)
    return {
        "kind": "peer",
        "method": type(model).__name__,
        "n_bits": model.n_bits_,
        "bytes_per_code": -(-model.n_bits_ // 8),
        "n_features": model.n_features_in_,
        "feature_names": list(getattr(model, "feature_names_in_", [])) or None,
        "parameters": model.get_params(deep=False),
    }


def _peer_for_people(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("kind", f"model of {facts['method']}"),
        ("features", str(facts["n_features"]) + _named(facts["feature_names"])),
        ("bits", f"{facts['n_bits']} ({facts['bytes_per_code']} bytes a code)"),
        ("parameters", ", ".join(f"{k}={v}" for k, v in facts["parameters"].items())),
    ]


def _of_checkpoint(path: str) -> dict[str, Any]:
    from ..checkpoints import read_checkpoint

    state, about = read_checkpoint(path)
    facts = _facts("checkpoint", about["family"], state.weights[-1], state.records)
    facts["seed"] = about["seed"]
    facts["result"]["seconds"] = sum(r.seconds_pricing + r.seconds_master for r in state.records)
    return facts


def _facts(kind: str, family: str, weights: Any, columns: list[Any]) -> dict[str, Any]:
    import numpy as np

    last = columns[-1]
    low, middle, high = np.quantile(weights, [0, 0.5, 1]).tolist()
    return {
        "kind": kind,
        "family": family,
        "n_bits": len(weights),
        "bytes_per_code": -(-len(weights) // 8),
        "weights": {
            "min": low,
            "median": middle,
            "max": high,
            "sum": float(weights.sum()),
            "zero": int(np.sum(weights <= 0)),
            "values": weights.tolist(),
        },
        "result": {
            "objective": last.objective,
            "bound": last.bound,
            "gap": last.gap,
            "satisfied": last.satisfied,
        },
    }


def _for_people(facts: dict[str, Any]) -> list[tuple[str, str]]:
    from ..learning.result import STATUSES

    weights, result = facts["weights"], facts["result"]
    rows = [
        ("kind", "model" if facts["kind"] == "model" else "checkpoint of a fit under way"),
        ("family", facts["family"]),
        ("bits", f"{facts['n_bits']} ({facts['bytes_per_code']} bytes a code)"),
        ("weights", f"{weights['min']:.4g} to {weights['max']:.4g}, median {weights['median']:.4g}"),
        ("zero weights", f"{weights['zero']} of {facts['n_bits']}"),
    ]
    if facts["kind"] == "model":
        rows[2:2] = [("features", str(facts["n_features"]) + _named(facts["feature_names"]))]
        rows += [
            ("parameters", ", ".join(f"{k}={v}" for k, v in _chosen(facts["parameters"]).items()) or "all default"),
            ("learned from", f"{result['n_triplets']} triplets ({result['n_pairs']} pairs)"),
            ("status", f"{result['status']}: {STATUSES.get(result['status'], result['status'])}"),
        ]
    else:
        rows += [("seed", str(facts["seed"]))]
    rows += [
        ("satisfied", f"{100 * result['satisfied']:.1f} % of the triplets"),
        ("objective", f"{result['objective']:.6g}"),
        ("certificate", _certificate(result)),
        ("time", f"{result['seconds']:.1f} s"),
    ]
    return rows


def _named(names: list[str] | None) -> str:
    if not names:
        return ""
    return f": {', '.join(names[:6])}{' …' if len(names) > 6 else ''}"


def _chosen(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters that differ from the estimator's own."""
    return {name: v for name, v in parameters.items() if v != DEFAULTS[name] and name != "verbose"}


def _certificate(result: dict[str, Any]) -> str:
    bound = f"lower bound {result['bound']:.6g}, gap {100 * result['gap']:.3g} %"
    if "exact" not in result:
        return bound
    whole = "proven: the whole family was searched" if result["exact"] else "over the functions that were found"
    return f"{bound}; {whole}"
