"""Every format that we read from strangers, and the module that knows how."""

from __future__ import annotations

from importlib import import_module

from running import Format

HOMES = {  # format: module
    "index": "index_files",
    "vectors": "vector_files",
    "npy": "item_files",
    "npz": "item_files",
    "csv": "item_files",
    "jsonl": "item_files",
    "parquet": "item_files",
    "arrow": "item_files",
    "plan": "lab_files",
    "result": "lab_files",
    "model": "model_files",
    "checkpoint": "model_files",
    "peer": "model_files",
    "faiss": "store_files",
    "duckdb": "store_files",
    "codes-parquet": "store_files",
    "onnx": "store_files",
    "workspace": "workspace_files",
    "answers": "workspace_files",
    "picture": "workspace_files",
}


def format_of(name: str) -> Format:
    """A format by its name."""
    known: dict[str, Format] = {kind.name: kind for kind in import_module(HOMES[name]).FORMATS}
    return known[name]
