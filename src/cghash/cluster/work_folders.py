"""Folders that work goes on in after a kill: `_begun.json` says of what it is, `_manifest.json` that it is whole.

Readers of folders of Parquet files leave out names that begin with _.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .._unfinished import remove_abandoned
from ..exceptions import FormatError, InvalidInputError
from ..storage import write_atomically
from ..stores.origin import Origin, read_header

BEGUN, MODEL, MANIFEST = "_begun.json", "_model.cghash", "_manifest.json"
_VERSION = 1  # of `_begun.json`
_OURS = r"part-\d{6,}\.parquet|shard-\d{6,}\.index|_manifest\.json|_model\.cghash"  # that work in a folder writes


class _File(Protocol):
    @property
    def file(self) -> str: ...


F = TypeVar("F", bound=_File)


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


def write_manifest(folder: Path, kind: str, version: int, origin: Origin, about: dict[str, Any]) -> None:
    """Say of a folder that it is whole, whose codes it holds, and in which files."""
    write_json(folder / MANIFEST, kind, version, {"origin": json.loads(origin.header()), **about})


def read_manifest(
    folder: Path, name: str, kind: str, version: int, missing: str, files_of: Callable[[dict[str, Any]], list[F]]
) -> tuple[Origin, list[F]]:
    """Whose codes a folder holds, and its files, which must all be there; FormatError where it is not whole.

    Parameters
    ----------
    name : of the folder, in messages
    missing : what it holds where it has no manifest
    files_of : the files that a manifest tells of
    """
    path = folder / MANIFEST
    about = read_json(path, kind, version, f"{name} holds {missing}")
    try:
        origin, files = read_header(json.dumps(about["origin"]), str(path))[0], files_of(about)
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is damaged: {error}") from error
    for one in files:
        if not (folder / one.file).is_file():
            raise FormatError(f"{name} is not whole: {one.file} is missing")
    return origin, files


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
