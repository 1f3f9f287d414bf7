"""Codes as an index of FAISS.

- `exact`: `IndexPQ` whose bytes are our codes. Byte b has 256 centroids, the 8 numbers √w_j·bit_j, so that FAISS's
  squared Euclidean distance is the weighted Hamming distance, as a share of a power of two, up to rounding in single
  precision. A search takes more than k of it, computes their exact distances, and goes on until none can be missing.
- `binary`, `hnsw`: `IndexBinaryFlat` and `IndexBinaryHNSW` of codes in which bits are repeated by weight
  (`cghash.codes.expand`). A search ranks the nearest of these by the weights; how far an expanded code is away bounds
  its distance, which often proves the answer of `binary`.

A file is what `faiss.write_index` writes, which FAISS itself reads, with our description behind: the codes where the
index has only expanded ones, a header in JSON, its length, SHA-256 over all before, and 8 bytes of magic.
"""

from __future__ import annotations

import hashlib
import os
import struct
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, Codes, Ints
from .._validation import check_choice, check_whole
from ..codes import expansion_of, repeat_bits
from ..exceptions import FormatError, InvalidInputError
from ..index.checks import check_codes
from ..storage import written_atomically
from .base import Found, Path, Store, check_asked, check_file, checked, require
from .faiss_indexes import (
    FINE,
    MOST_EXPANDED,
    build,
    check_centroids,
    check_counts,
    check_expanded,
    check_kind,
    downcast,
    read_back,
    roots,
)
from .origin import Origin, read_header
from .ranking import NONE, Ranked, joined, least_distances, rank

S = TypeVar("S", bound="FaissStore")

KINDS = ("exact", "binary", "hnsw")
MAGIC = b"CGHFAISS"
_TAIL = struct.Struct("<Q32s8s")  # length of the header, SHA-256 over all before, magic
_MORE = 10  # times k items are ranked again, where the engine's order is not ours
_GROWTH = 8  # how much further `exact` looks when it has not seen enough


class FaissStore(Store):
    """Codes in an index of FAISS; made by `to_faiss`.

    Attributes
    ----------
    index : the index of FAISS, with ids
    kind : "exact", "binary" or "hnsw"
    codes : (n, n_bytes) uint8
    ids : (n,) int64
    """

    def __init__(self, origin: Origin, index: Any, kind: str, codes: Codes, ids: Ints, counts: Ints) -> None:
        self.origin, self.index, self.kind, self.where = origin, index, kind, "this index"
        self.codes, self.ids, self.counts = codes, ids, counts  # counts (n_bits,): how often each bit is repeated
        self._inner = downcast(index)
        self._least = least_distances(origin.whole[0], counts)

    @classmethod
    def write(
        cls,
        path: Path,
        model: Any,
        codes: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        kind: str = "exact",
        n_bits: int = 256,
    ) -> Self:
        """Build an index and write it to a file (`Store.write`; `kind` and `n_bits` as in `to_faiss`)."""
        store = _made(cls, model, codes, ids, kind, n_bits)
        store.save(path)
        return store

    def save(self, path: Path) -> None:
        """Write the index to a file that `faiss.read_index`, or `read_index_binary`, reads too."""
        faiss = require("faiss", "faiss")
        serialize = faiss.serialize_index if self.kind == "exact" else faiss.serialize_index_binary
        parts = [serialize(self.index).tobytes(), b"" if self.kind == "exact" else self.codes.tobytes()]
        about = {"kind": self.kind, "n_codes": len(self), "counts": self.counts.tolist(), "index_bytes": len(parts[0])}
        parts.append(self.origin.header(**about).encode())
        total = hashlib.sha256()
        with written_atomically(path) as file:
            for part in parts:
                total.update(part)
                file.write(part)
            file.write(_TAIL.pack(len(parts[-1]), total.digest(), MAGIC))
        self.where = os.fspath(path)

    @classmethod
    def open(cls, path: Path, model: Any = None) -> Self:
        """Read and verify a file that `save` wrote (`Store.open`)."""
        require("faiss", "faiss")
        check_file(path)
        with open(path, "rb") as file:
            content = file.read()
        store = _read(cls, content, os.fspath(path))
        if model is not None:
            store.origin.check(model, store.where)
        return store

    def __len__(self) -> int:
        return len(self.codes)

    def info(self) -> dict[str, Any]:
        """What is stored; of an expansion also `expanded_bits`, and how many bits of positive weight it has `lost`."""
        about = super().info() | {"kind": self.kind}
        if self.kind == "exact":
            return about
        lost = int(np.sum((self.counts == 0) & (self.origin.whole[0] > 0)))
        return about | {"expanded_bits": int(self._inner.d), "lost": lost}

    def search(self, queries: ArrayLike, k: int, *, candidates: int | None = None) -> Found:
        """The k nearest codes of each query, order (distance, id).

        Parameters
        ----------
        queries : (q, n_bytes) uint8, packed codes of the same model
        k : int
        candidates : int, default=None
            How many of FAISS's nearest are ranked by the weights; None is 10 times k, and k + 16 for `exact`, which
            looks at more where these do not prove the answer.
        """
        packed = check_codes(queries, self.origin.n_bits, "queries")
        return self._search(packed, check_asked(packed, k, candidates), candidates)

    def search_items(self, model: Any, X: Any, k: int, *, candidates: int | None = None) -> Found:
        """The k nearest codes of each item; the model is checked to be the one that made the codes."""
        self.origin.check(model, self.where)
        return self.search(model.encode(X), k, candidates=candidates)

    def _search(self, queries: Codes, k: int, candidates: int | None = None) -> Found:
        first = candidates or (k + 16 if self.kind == "exact" else _MORE * k)
        ranked = self._ranked(queries, k, first)
        while self.kind == "exact" and first < len(self):
            first *= _GROWTH
            open_ones = [i for i, one in enumerate(ranked) if not one.exact]
            if not open_ones:
                break
            for i, one in zip(open_ones, self._ranked(queries[open_ones], k, first), strict=True):
                ranked[i] = one
        return Found(*joined(self.origin, ranked, k))

    def _ranked(self, queries: Codes, k: int, candidates: int) -> list[Ranked]:
        wanted = min(candidates, len(self))
        if not wanted or not len(queries):
            return [rank(self.origin, query, self.codes, self.ids, k, NONE) for query in queries]
        if self.kind == "hnsw":
            self._inner.hnsw.efSearch = max(2 * wanted, 64)
        scores, positions = self._inner.search(self._as_queries(queries), wanted)
        ranked = []
        for query, score, rows in zip(queries, scores, positions, strict=True):
            rows = rows[rows >= 0]  # a graph may find fewer
            beyond = NONE if len(rows) == len(self) else self._beyond(score[-1])
            ranked.append(rank(self.origin, query, self.codes[rows], self.ids[rows], k, beyond))
        return ranked

    def _as_queries(self, queries: Codes) -> Array:
        if self.kind == "exact":
            bits = np.unpackbits(queries, axis=1, bitorder="little")
            return np.ascontiguousarray(bits * roots(self.origin), dtype=np.float32)
        return repeat_bits(queries, self.counts, self._inner.d)

    def _beyond(self, last: Any) -> int:
        """The least distance, in whole units, of what FAISS ranks behind an item with this score."""
        if self.kind == "exact":
            # roots, squares, the 8 terms of a byte and the bytes are each rounded to 2^-24
            slack = (self.origin.n_bytes + 16) * 2.0**-23
            return max(0, int((float(last) - slack) * 2.0**FINE))
        return int(self._least[int(last)]) if self.kind == "binary" else 0


def to_faiss(
    model: Any, codes: ArrayLike, kind: str = "exact", *, ids: ArrayLike | None = None, n_bits: int = 256
) -> FaissStore:
    """Put codes into an index of FAISS.

    Parameters
    ----------
    model : the fitted estimator whose codes these are, or an `Origin`
    codes : (n, n_bytes) uint8, packed
    kind : {"exact", "binary", "hnsw"}, default="exact"
    ids : (n,) int64, optional; default: row numbers
    n_bits : bits of the expanded codes of `binary` and `hnsw`, a multiple of 8

    Returns
    -------
    store : `store.index` is FAISS's own object, `store.search` answers in the unit of the weights

    Examples
    --------
    >>> codes = np.array([[0b001], [0b110], [0b111]], dtype=np.uint8)
    >>> to_faiss(Origin([4.0, 2.0, 1.0]), codes, ids=[7, 8, 9]).search(codes[:1], k=2)
    Found(distances=array([[0., 3.]]), ids=array([[7, 9]]), exact=array([ True]))
    """
    return _made(FaissStore, model, codes, ids, kind, n_bits)


def _made(cls: type[S], model: Any, codes: ArrayLike, ids: ArrayLike | None, kind: str, n_bits: int) -> S:
    origin, packed, numbers = checked(model, codes, ids)
    counts = np.zeros(origin.n_bits, dtype=np.int64)
    if check_choice(kind, KINDS, "kind") != "exact":
        if check_whole(n_bits, 8, "n_bits") % 8 or n_bits > MOST_EXPANDED:
            raise InvalidInputError(f"n_bits must be a multiple of 8, at most {MOST_EXPANDED}, for FAISS, got {n_bits}")
        counts = expansion_of(origin.weights, n_bits)
    index = build(origin, packed, numbers, kind, counts, n_bits)
    return cls(origin, index, kind, packed, numbers, counts)


def _read(cls: type[S], content: bytes, where: str) -> S:
    origin, about, end = _described(content, where)
    try:
        kind, n, size = check_choice(about["kind"], KINDS, "kind"), int(about["n_codes"]), int(about["index_bytes"])
        index = read_back(content[:size], kind, where)
        faiss = require("faiss", "faiss")
        inner, ids = downcast(index), faiss.vector_to_array(index.id_map)
        check_kind(inner, kind, origin)
        stored = content[size:end] if kind != "exact" else faiss.vector_to_array(inner.codes)
        codes = np.frombuffer(stored, dtype=np.uint8).reshape(-1, origin.n_bytes)
        counts = check_counts(np.array(about["counts"], dtype=np.int64), kind, inner, origin)
        if len({n, len(ids), len(codes), inner.ntotal}) != 1:
            raise FormatError(f"it says {n} codes, and has {len(codes)} codes and {len(ids)} ids")
        (check_centroids(inner, origin) if kind == "exact" else check_expanded(inner, codes, counts))
        store = cls(origin, index, kind, codes, ids, counts)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise FormatError(f"{where} is an index of codes, but its parts do not fit together: {error}") from error
    store.where = where
    return store


def _described(content: bytes, where: str) -> tuple[Origin, dict[str, Any], int]:
    """Origin, description, and where the description begins."""
    if len(content) < _TAIL.size or content[-len(MAGIC) :] != MAGIC:
        raise FormatError(f"{where} is not an index that cghash wrote, or its end is missing")
    length, total, _ = _TAIL.unpack(content[-_TAIL.size :])
    body = memoryview(content)[: -_TAIL.size]
    if length > len(body) or hashlib.sha256(body).digest() != total:
        raise FormatError(f"{where} is damaged: its checksum does not match its content")
    return *read_header(bytes(body[len(body) - length :]), where), len(body) - length
