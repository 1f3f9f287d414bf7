"""What is written whole: models, the codes of `cghash encode`, and the files of the stores."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import cghash
from cghash import CGHash
from cghash.cli.encode import encode
from cghash.peers import ITQ
from cghash.stores import Origin
from cghash.stores.duckdb import DuckDBStore
from cghash.stores.faiss import FaissStore
from cghash.stores.onnx import origin_of_onnx, to_onnx
from cghash.stores.parquet import ParquetStore

from .base import Change, Random, State, Writer, code_of

N_VERSIONS, N_ITEMS, N_BITS = 3, 60, 16


class WholeFile(Writer):
    """A file that is replaced again and again, by one of three versions."""

    file = "written"

    def write(self, thing: Any, path: Path, version: int) -> None:
        """Write a version to a path."""
        raise NotImplementedError

    def version(self, path: Path) -> int:
        """Which version a file holds."""
        raise NotImplementedError

    def prepare(self, folder: Path) -> None:
        self.write(self.open(folder), folder / self.file, 0)

    def change(self, thing: Any, folder: Path, state: State, number: int, rng: Random) -> Change:
        version = (number + 1) % N_VERSIONS
        return Change({"version": version}, lambda: self.write(thing, folder / self.file, version))

    def state(self, folder: Path) -> State:
        return {"version": self.version(folder / self.file)}


class Models(WholeFile):
    """`CGHash.save`."""

    name, file = "model", "model.cghash"
    steps = 20

    def prepare(self, folder: Path) -> None:
        for version in range(N_VERSIONS):
            _fitted(version).save(folder / f"version-{version}.cghash")
        super().prepare(folder)

    def open(self, folder: Path) -> Any:
        return [cghash.load(folder / f"version-{version}.cghash") for version in range(N_VERSIONS)]

    def write(self, thing: Any, path: Path, version: int) -> None:
        thing[version].save(path)

    def version(self, path: Path) -> int:
        found = cghash.load(path)
        expected = self.open(path.parent)
        return _which(np.array_equal(found.encode(_items()), model.encode(_items())) for model in expected)


class PeerModels(Models):
    """`save` of a method to compare with."""

    name = "peer's model"

    def prepare(self, folder: Path) -> None:
        for version in range(N_VERSIONS):
            ITQ(8, random_state=version).fit(_items()).save(folder / f"version-{version}.cghash")
        WholeFile.prepare(self, folder)


class EncodedCodes(Models):
    """`cghash encode … -o codes.npy`."""

    name, file = "codes of encode", "codes.npy"

    def prepare(self, folder: Path) -> None:
        np.save(folder / "items.npy", _items())
        super().prepare(folder)

    def write(self, thing: Any, path: Path, version: int) -> None:
        model, items = path.parent / f"version-{version}.cghash", path.parent / "items.npy"
        named = {"model": os.fspath(model), "items": os.fspath(items), "output": os.fspath(path), "quiet": True}
        others = dict.fromkeys(("kind", "n_bits", "id_column", "label_column", "device"))
        assert encode.callback is not None
        encode.callback(**named, **others, bits=False)

    def version(self, path: Path) -> int:
        found = np.load(path)
        return _which(np.array_equal(found, model.encode(_items())) for model in self.open(path.parent))


class OnnxGraphs(Models):
    """`to_onnx`."""

    name, file, steps = "ONNX graph", "graph.onnx", 5

    def write(self, thing: Any, path: Path, version: int) -> None:
        to_onnx(thing[version], path)

    def version(self, path: Path) -> int:
        found = origin_of_onnx(os.fspath(path))
        return _which(
            found.fingerprint == cghash.stores.origin.origin_of(m).fingerprint for m in self.open(path.parent)
        )


class Stored(WholeFile):
    """Codes in a store; a version has codes of its own."""

    store: Any

    def open(self, folder: Path) -> Any:
        return None

    def write(self, thing: Any, path: Path, version: int) -> None:
        self.store.write(path, _origin(), _codes(version))

    def version(self, path: Path) -> int:
        store = self.store.open(path)
        assert len(store) == N_ITEMS, f"{len(store)} codes"
        return _which(self._holds(store, version) for version in range(N_VERSIONS))

    def _holds(self, store: Any, version: int) -> bool:
        found = store.search(_codes(version)[:5], k=1)
        return bool((found.distances == 0).all() and (found.ids[:, 0] == np.arange(5)).all())


class FaissFiles(Stored):
    name, file, store = "FAISS file", "codes.faiss", FaissStore


class ParquetFiles(Stored):
    name, file, store = "Parquet file", "codes.parquet", ParquetStore


class DuckDBTables(Stored):
    """A table that is replaced; another one stays as it is."""

    name, file, store, steps, journals = "DuckDB table", "codes.duckdb", DuckDBStore, 3, True

    def prepare(self, folder: Path) -> None:
        DuckDBStore.write(folder / self.file, _origin(), _codes(0), table="other").close()
        super().prepare(folder)

    def write(self, thing: Any, path: Path, version: int) -> None:
        self.store.write(path, _origin(), _codes(version)).close()

    def version(self, path: Path) -> int:
        with DuckDBStore.open(path, table="other") as other:
            assert self._holds(other, 0), "another table was changed"
        return super().version(path)

    def strays(self, folder: Path) -> list[str]:
        return sorted(path.name for path in folder.iterdir() if path.name != self.file)


def _which(matches: Any) -> int:
    return next((version for version, same in enumerate(matches) if same), -1)


@cache
def _items() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((N_ITEMS, 12))


def _fitted(version: int) -> CGHash:
    labels = (_items()[:, version] > 0).astype(int)
    return CGHash(8, random_state=version, n_jobs=1).fit(_items(), labels)


@cache
def _origin() -> Origin:
    return Origin(np.arange(1.0, N_BITS + 1))


@cache
def _codes(version: int) -> np.ndarray:
    return np.array([code_of(item, version, N_BITS // 8) for item in range(N_ITEMS)])
