"""Where data lie: the user's data folder, and the cache."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ...exceptions import InvalidInputError

__all__ = ["CACHE", "DATA", "cache_folder", "data_folder"]

DATA, CACHE = "CGHASH_DATA", "CGHASH_CACHE"  # environment variables


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder that is looked in first: the one given, else the one that CGHASH_DATA names, else none."""
    named = folder if folder is not None else os.environ.get(DATA) or None
    if named is None:
        return None
    path = Path(named).expanduser()
    if not path.is_dir():
        what = "folder" if folder is not None else f"the environment variable {DATA}"
        raise InvalidInputError(f"{what} must name a folder, got {os.fspath(named)!r}")
    return path


def cache_folder() -> Path:
    """Where downloads and prepared files are kept: CGHASH_CACHE, else the system's place for such things."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "cghash"
