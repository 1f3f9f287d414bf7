"""Model versions of a workspace: their files, and search by any of them, at any of their lengths.

| name           | what it is                                                             |
|----------------|------------------------------------------------------------------------|
| `add_model`    | a fitted estimator becomes the next version: model file, index, record |
| `coded_by`     | all vectors of a workspace by an estimator                             |
| `Versions`     | opens versions when they are asked for, and keeps the last few         |
| `CodeSearch`   | one version at one length: codes, weights, and an exact index          |
| `VectorSearch` | the vectors themselves, under the Euclidean distance                   |
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Codes, Floats, Ints
from .._validation import check_whole
from ..codes import unpack
from ..estimator import CodeEstimator, functions_of, load
from ..exceptions import FormatError, InvalidInputError
from ..index import WeightedHammingIndex
from .records import Version

if TYPE_CHECKING:
    from .workspace import Workspace

__all__ = ["VECTORS", "CodeSearch", "Ranking", "VectorSearch", "Versions", "add_model", "coded_by"]


VECTORS = "vectors"  # the name of the method that has no codes
_NUMBERS = 1 << 22  # of vectors that are encoded, or compared, in one piece: many may search at once
_KEPT = 12  # searches that stay open


def add_model(
    workspace: Workspace,
    model: CodeEstimator,
    name: str,
    *,
    use: bool = False,
    about: dict[str, Any] | None = None,
    coded: CodeSearch | None = None,
) -> Version:
    """Make a fitted estimator the next version.

    Parameters
    ----------
    workspace : Workspace
    model : a fitted CGHash or peer for items of the workspace's dimension
    name : what people see of it
    use : whether it is the current model from now on
    about : further fields of the `Version`: `answers`, `last_answer`, `job`, `report`
    coded : what `coded_by` gives for this model, where it is there already
    """
    search = coded or coded_by(model, workspace.vectors)
    search.index.prepare()
    named = Version(0, name, type(model).__name__, search.bits, **(about or {}))
    version = workspace.records.begin_version(named)
    for path in (workspace.model_path(version.version), workspace.index_path(version.version)):
        path.parent.mkdir(exist_ok=True)
    model.save(workspace.model_path(version.version))
    search.index.save(workspace.index_path(version.version))
    workspace.records.finish_version(version, use=use)
    return version


def coded_by(model: CodeEstimator, vectors: Any, n_jobs: int | None = None) -> CodeSearch:
    """All vectors (n, d) by a fitted estimator, ready to be searched."""
    expected, got = vectors.shape[1], model.n_features_in_
    if got != expected:
        raise InvalidInputError(f"the model must take items of {expected} features, as this workspace has, got {got}")
    index = WeightedHammingIndex(model.n_bits_, model.weights_, n_jobs=n_jobs, functions=functions_of(model))
    codes = np.concatenate([model.encode(np.asarray(vectors[part])) for part in _parts(len(vectors), expected)])
    index.add(codes)
    return CodeSearch(model, codes, index)


class CodeSearch:
    """One version at one length.

    Parameters
    ----------
    model : the estimator at this length
    codes : (n, bytes) packed codes of all items, at this length
    index : over the same codes, ids are rows
    """

    def __init__(self, model: CodeEstimator, codes: Codes, index: WeightedHammingIndex) -> None:
        self.model, self.codes, self.index = model, codes, index
        self.bits: int = int(model.n_bits_)
        self.weights = np.asarray(model.weights_, dtype=np.float64)

    def code_of(self, query: Any) -> Codes:
        """The packed code of an item by its row, or of a vector (d,)."""
        if isinstance(query, int | np.integer):
            code: Codes = self.codes[query]
            return code
        encoded: Codes = self.model.encode(np.asarray(query, dtype=np.float32)[None])[0]
        return encoded

    def nearest(self, query: Any, k: int, rows: Ints | None) -> tuple[Floats, Ints]:
        """Distances and rows of the k nearest items among `rows` (all where None), fewer where there are fewer."""
        distances, found = self.index.search(self.code_of(query), k, filter=rows)
        return distances[found >= 0], found[found >= 0]

    def differing(self, query: Any, rows: Ints) -> list[list[int]]:
        """The bits in which each item of some rows differs from the query."""
        changed = np.unpackbits(np.bitwise_xor(self.code_of(query), self.codes[rows]), axis=1, bitorder="little")
        bits = np.nonzero(changed)[1].tolist()  # padding bits are zero in every code
        ends = np.cumsum(changed.sum(axis=1)).tolist()
        return [bits[start:end] for start, end in pairwise([0, *ends])]

    def margins(self, triplets: Ints) -> Floats:
        """d(anchor, far) − d(anchor, near) of triplets (t, 3)."""
        anchors = self.codes[triplets[:, 0]]
        far, near = (
            unpack(np.bitwise_xor(anchors, self.codes[triplets[:, column]]), self.bits) @ self.weights
            for column in (2, 1)
        )
        margins: Floats = far - near
        return margins


class VectorSearch:
    """The vectors as they are, under the Euclidean distance."""

    bits = None

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors

    def nearest(self, query: Any, k: int, rows: Ints | None) -> tuple[Floats, Ints]:
        """Distances and rows of the k nearest items among `rows` (all where None)."""
        of_row = isinstance(query, int | np.integer)
        point = np.asarray(self.vectors[query] if of_row else query, dtype=np.float64)
        best_distances, best_rows = np.empty(0), np.empty(0, dtype=np.int64)
        count = len(self.vectors) if rows is None else len(rows)
        for part in _parts(count, self.vectors.shape[1]):
            some = np.arange(part.start, part.stop) if rows is None else rows[part]
            piece = np.asarray(self.vectors[part if rows is None else some])
            distances = np.linalg.norm(piece - point, axis=1)
            if len(distances) > k:  # all that could be among the k nearest, ties with them
                close = distances <= np.partition(distances, k - 1)[k - 1]
                distances, some = distances[close], some[close]
            best_distances, best_rows = np.append(best_distances, distances), np.append(best_rows, some)
            order = np.lexsort((best_rows, best_distances))[:k]
            best_distances, best_rows = best_distances[order], best_rows[order]
        return best_distances, best_rows

    def margins(self, triplets: Ints) -> Floats:
        """d(anchor, far) − d(anchor, near) of triplets (t, 3)."""
        anchors, near, far = (np.asarray(self.vectors[column], dtype=np.float64) for column in triplets.T)
        margins: Floats = np.linalg.norm(anchors - far, axis=1) - np.linalg.norm(anchors - near, axis=1)
        return margins


Ranking = CodeSearch | VectorSearch


def _parts(n: int, dimension: int) -> Iterator[slice]:
    """All of n items of some dimension, in pieces that take little memory."""
    step = max(1, _NUMBERS // dimension)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


class Versions:
    """Opens the versions of a workspace when they are asked for; threads may share it."""

    def __init__(self, workspace: Workspace, n_jobs: int | None = None) -> None:
        self.workspace, self.n_jobs = workspace, n_jobs
        self.vectors = VectorSearch(workspace.vectors)
        self._open: OrderedDict[tuple[int, int], CodeSearch] = OrderedDict()
        self._lock = threading.Lock()

    def at(self, version: int, bits: int | None = None) -> CodeSearch:
        """A version, or its first `bits` bits with the weights that they had then."""
        whole = self._kept((version, 0), lambda: self._load(version))
        if bits is None or bits == whole.bits:
            return whole
        if check_whole(bits, 1, "bits") > whole.bits:
            raise InvalidInputError(f"bits must be at most {whole.bits}, the bits of version {version}, got {bits}")
        return self._kept((version, bits), lambda: self._shortened(whole, bits))

    def is_open(self, version: object) -> bool:
        """Whether `at` gives this version, whole, without reading a file."""
        return (version, 0) in self._open

    def _kept(self, key: tuple[int, int], make: Callable[[], CodeSearch]) -> CodeSearch:
        try:
            self._open.move_to_end(key)
            return self._open[key]
        except KeyError:
            pass
        with self._lock:
            if key not in self._open:
                self._open[key] = make()
            self._open.move_to_end(key)
            while len(self._open) > _KEPT:
                self._open.popitem(last=False)
            return self._open[key]

    def _load(self, version: int) -> CodeSearch:
        self.workspace.records.version(version)
        model = load(self.workspace.model_path(version))
        index = WeightedHammingIndex.load(self.workspace.index_path(version), n_jobs=self.n_jobs)
        index.check_model(functions_of(model))
        if len(index) != len(self.workspace.items):
            raise FormatError(
                f"the index of version {version} must hold {len(self.workspace.items)} items, got {len(index)}"
            )
        codes = index.reconstruct(np.arange(len(index)))
        return CodeSearch(model, codes, index)

    def _shortened(self, whole: CodeSearch, bits: int) -> CodeSearch:
        model = whole.model.truncate(bits)
        codes = np.ascontiguousarray(whole.codes[:, : -(-bits // 8)])
        if bits % 8:
            codes[:, -1] &= (1 << bits % 8) - 1
        index = WeightedHammingIndex(bits, model.weights_, n_jobs=self.n_jobs)
        index.add(codes)
        return CodeSearch(model, codes, index)
