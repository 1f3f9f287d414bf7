"""The writers that are hit, by name; each in the module of what it writes."""

from __future__ import annotations

from collections.abc import Callable

from .base import Writer
from .files import DuckDBTables, EncodedCodes, FaissFiles, Models, OnnxGraphs, ParquetFiles, PeerModels
from .fits import Checkpoints
from .indexes import Appended, Compacted, Saved

ALL: tuple[type[Writer], ...] = (
    Appended, Saved, Compacted, Models, PeerModels, Checkpoints, EncodedCodes,
    FaissFiles, ParquetFiles, DuckDBTables, OnnxGraphs,
)  # fmt: skip
WRITERS: dict[str, Callable[[], Writer]] = {writer.name: writer for writer in ALL}
