"""A writer as it should not be, by which it is seen that this program finds what is lost."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from .files import WholeFile


class Careless(WholeFile):
    """Overwrites a file in place, in two steps, and says nothing of errors."""

    name = "careless"

    def open(self, folder: Path) -> Any:
        return None

    def write(self, thing: Any, path: Path, version: int) -> None:
        with suppress(OSError), open(path, "wb", buffering=0) as file:
            file.write(b"version ")
            time.sleep(0.002)
            file.write(str(version).encode())

    def version(self, path: Path) -> int:
        return int(path.read_bytes().removeprefix(b"version "))
