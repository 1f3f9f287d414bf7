"""Folders that work goes on in after a kill: `_begun.json` says of what it is, `_manifest.json` that it is whole.

Readers of folders of Parquet files leave out names that begin with _.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .._unfinished import remove_abandoned
from ..exceptions import FormatError, InvalidInputError
from ..storage import write_atomically

BEGUN, MODEL, MANIFEST = "_begun.json", "_model.cghash", "_manifest.json"
_VERSION = 1  # of `_begun.json`
_OURS = r"part-\d{6,}\.parquet|shard-\d{6,}\.index|_manifest\.json|_model\.cghash"  # that work in a folder writes


def begin(folder: Path, kind: str, about: dict[str, Any], words: dict[str, str]) -> None:
    """Make a folder for some work, described in `_begun.json`; one that holds something else is refused.

    Parameters
    ----------
    about : what the work is of
    words : for each entry of it, what to say of a folder where it differs
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / BEGUN).exists():  # a writer may have died before it was whole
        remove_abandoned(folder, re.escape(BEGUN))
    if not any(folder.iterdir()):
        write_json(folder / BEGUN, kind, _VERSION, about)
    found = read_json(folder / BEGUN, kind, _VERSION, f"out must be a new or empty folder, got {folder}, which is not")
    remove_abandoned(folder, _OURS)
    for name, what in words.items():
        if found.get(name) != about[name]:
            raise InvalidInputError(f"out must be a new folder, or hold the same work, got {folder}, {what}")


def write_json(path: Path, kind: str, version: int, about: dict[str, Any]) -> None:
    """Write a description of some kind, whole or not at all."""
    write_atomically(path, json.dumps({"format": kind, "version": version, **about}, indent=1).encode())


def read_json(path: Path, kind: str, version: int, missing: str) -> dict[str, Any]:
    """What `write_json` wrote; FormatError for anything else, in the given words where it is not there."""
    try:
        about = json.loads(path.read_bytes())
        found, number = about["format"], about["version"]
    except FileNotFoundError as error:
        raise FormatError(f"{missing}: {path.name} is missing") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} is damaged, or not a file of cghash") from error
    if found != kind or type(number) is not int or not 1 <= number <= version:
        raise FormatError(f"{path} must be {kind}, version 1 to {version}, got {found!r}, version {number!r}")
    return about  # type: ignore[no-any-return]
