"""The writers that are hit, by name; each in the module of what it writes."""

from __future__ import annotations

from collections.abc import Callable

from .base import Writer
from .careless import Careless
from .files import DuckDBTables, EncodedCodes, FaissFiles, Models, OnnxGraphs, ParquetFiles, PeerModels
from .fits import Checkpoints
from .indexes import Appended, Compacted, Saved, VectorsAppended, VectorsCompacted
from .laboratory import LabResults
from .postgres import PostgresRecords, PostgresTables
from .records import WorkspaceRecords
from .workspaces import LearnedVersions, NewWorkspaces

ALL: tuple[type[Writer], ...] = (
    Appended, Saved, Compacted, VectorsAppended, VectorsCompacted, Models, PeerModels, Checkpoints, EncodedCodes,
    FaissFiles, ParquetFiles, DuckDBTables, OnnxGraphs,
    NewWorkspaces, WorkspaceRecords, LearnedVersions, LabResults, PostgresRecords, PostgresTables,
)  # fmt: skip
_KNOWN: tuple[type[Writer], ...] = (*ALL, Careless)
WRITERS: dict[str, Callable[[], Writer]] = {writer.name: writer for writer in _KNOWN}
NAMES = [writer.name for writer in ALL]
