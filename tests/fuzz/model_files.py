"""Models of CGHash and of its peers, and checkpoints."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from typing import Any

import numpy as np
from mutations import safetensors_changed
from running import Format, scratch

FAMILIES = ("linear", "rbf", "stump", "tree")


@cache
def _items() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    return np.abs(rng.normal(size=(60, 6)) + y[:, None]), y


@cache
def models() -> list[bytes]:
    from cghash import CGHash

    X, y = _items()
    options: dict[str, Any] = {"n_neighbors": 2, "C": 1e-3, "random_state": 0, "n_jobs": 1}
    made = [CGHash(3, hash_function=family, **options).fit(X, y) for family in FAMILIES]
    return [_saved(model) for model in made]


@cache
def checkpoints() -> list[bytes]:
    from cghash import CGHash

    X, y = _items()
    contents = []
    for family in FAMILIES:
        path = scratch() / f"{family}.ckpt"
        CGHash(3, hash_function=family, C=1e-3, random_state=0, n_jobs=1, checkpoint=path).fit(X, y)
        contents.append(path.read_bytes())
    return contents


@cache
def peers() -> list[bytes]:
    import cghash.peers

    X, y = _items()
    small = {"n_anchors": 8, "n_landmarks": 8, "n_trees": 2, "max_depth": 2, "n_pairs": 50, "random_state": 0}
    contents = []
    for name in cghash.peers.PEERS:
        kind = getattr(cghash.peers, name)
        model = kind(80 if name == "RaBitQ" else 8)
        model.set_params(**{key: value for key, value in small.items() if key in model.get_params()})
        contents.append(_saved(model.fit(X, y)))
    return contents


def _saved(model: Any) -> bytes:
    path = scratch() / "seed"
    model.save(path)
    return path.read_bytes()


def use_model(data: bytes) -> None:
    """Load, encode, show, save and load again: a model that is taken must do all this."""
    import cghash
    from cghash.estimator import functions_of
    from cghash.exceptions import CGHashError

    path = scratch() / "model"
    path.write_bytes(data)
    model: Any = cghash.load(path)
    try:
        d = model.n_features_in_
        items = np.zeros((2, d)) if d < 1 << 20 else None
        if items is not None and not hasattr(model, "feature_names_in_"):
            codes = model.encode(items)
            assert codes.shape == (2, -(-model.n_bits_ // 8))
            if getattr(model, "hamming", True):
                model.build_index(items).search(codes, 1)
            assert np.isfinite(model.distances(items, codes)).all()
        repr(model)
        functions_of(model)
        shown("info", str(path))
        shown("info", str(path), "--json")
        model.save(scratch() / "again")
        cghash.load(scratch() / "again")
        if hasattr(model, "result_"):
            model.truncate(1).result_.message.encode()
            repr(model.result_), model.result_.history
    except CGHashError as error:
        raise AssertionError(f"a model that was taken cannot be used: {error}") from error


def use_checkpoint(data: bytes) -> None:
    """Show it, and go on from it."""
    from cghash import CGHash
    from cghash.checkpoints import read_checkpoint

    path = scratch() / "checkpoint"
    path.write_bytes(data)
    try:
        state, _ = read_checkpoint(path)
        assert len(state.records) == len(state.weights)
        shown("info", str(path))
        shown("info", str(path), "--json")
    finally:
        X, y = _items()
        family = next((name for name in FAMILIES if f'"family\\": \\"{name}'.encode() in data), "linear")
        model = CGHash(4, hash_function=family, C=1e-3, random_state=0, n_jobs=1, checkpoint=path)
        model.fit(X, y)


def shown(*words: str) -> str:
    """What a command prints; the errors of the library, not of the command line."""
    import click

    from cghash.cli import main

    out = StringIO()
    with redirect_stdout(out):
        click.Group.main(main, list(words), standalone_mode=False)
    if "--json" in words:
        json.loads(out.getvalue())
    return out.getvalue()


_MODULES = (
    "cghash.storage",
    "cghash.model",
    "cghash.estimator",
    "cghash.checkpoints",
    "cghash.peers",
    "cghash.learning",
)
FORMATS = [
    Format("model", models, use_model, safetensors_changed, _MODULES),
    Format("checkpoint", checkpoints, use_checkpoint, safetensors_changed, _MODULES),
    Format("peer", peers, use_model, safetensors_changed, _MODULES),
]
