"""Indexes of FAISS that hold our codes: built from codes, and checked when they are read back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Codes, Ints, Singles
from ..codes import repeat_bits
from ..exceptions import FormatError
from .base import require
from .origin import Origin

FINE = 52  # whole weights are in units of 2^-52 of a power of two above their sum
MOST_EXPANDED = 1 << 20  # bits
_LINKS = 32  # of an item in HNSW


def roots(origin: Origin) -> Singles:
    """(8·n_bytes,) √w_j of the weights as shares of a power of two above their sum, 0 past the last bit."""
    scaled = np.zeros(8 * origin.n_bytes)
    scaled[: origin.n_bits] = np.ldexp(origin.whole[0].astype(np.float64), -FINE)
    return np.sqrt(scaled).astype(np.float32)


def centroids(origin: Origin) -> Singles:
    """(n_bytes, 256, 8) what each byte stands for: √w_j·bit_j."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")  # (256, 8)
    return roots(origin).reshape(-1, 1, 8) * bits.astype(np.float32)


def downcast(index: Any) -> Any:
    """The index inside that of ids, as the class that it is."""
    faiss = require("faiss", "faiss")
    binary = isinstance(index, faiss.IndexBinary)
    return faiss.downcast_IndexBinary(index.index) if binary else faiss.downcast_index(index.index)


def build(origin: Origin, codes: Codes, ids: Ints, kind: str, counts: Ints, n_bits: int) -> Any:
    """An index with ids of a kind, filled."""
    faiss = require("faiss", "faiss")
    if kind == "exact":
        inner = _scaled(origin)
        index, add, added = faiss.IndexIDMap(inner), inner.add_sa_codes, codes
    else:
        inner = faiss.IndexBinaryFlat(n_bits) if kind == "binary" else faiss.IndexBinaryHNSW(n_bits, _LINKS)
        index, add, added = faiss.IndexBinaryIDMap(inner), inner.add, repeat_bits(codes, counts, n_bits)
    if len(codes):
        add(added)
    faiss.copy_array_to_vector(ids, index.id_map)
    index.ntotal = len(ids)
    return index


def _scaled(origin: Origin) -> Any:
    faiss = require("faiss", "faiss")
    index = faiss.IndexPQ(8 * origin.n_bytes, origin.n_bytes, 8)
    faiss.copy_array_to_vector(centroids(origin).ravel(), index.pq.centroids)
    index.is_trained = True
    return index


def read_back(content: bytes, kind: str, where: str) -> Any:
    """An index that FAISS serialised."""
    faiss = require("faiss", "faiss")
    read = faiss.deserialize_index if kind == "exact" else faiss.deserialize_index_binary
    try:
        return read(np.frombuffer(content, dtype=np.uint8))
    except RuntimeError as error:
        raise FormatError(f"{where} holds an index that FAISS cannot read: {error}") from error
    except MemoryError:  # so FAISS says that it was told of more than there can be
        raise FormatError(f"{where} holds an index that FAISS cannot read: it names more than it has") from None


def check_kind(index: Any, kind: str, origin: Origin) -> None:
    """The index inside must be the one that `build` makes for its kind, whose scores we know."""
    faiss = require("faiss", "faiss")
    made = {"exact": faiss.IndexPQ, "binary": faiss.IndexBinaryFlat, "hnsw": faiss.IndexBinaryHNSW}[kind]
    if type(index) is not made:
        raise FormatError(f"it must have {made.__name__}, got {type(index).__name__}")
    if kind == "hnsw" and type(faiss.downcast_IndexBinary(index.storage)) is not faiss.IndexBinaryFlat:
        raise FormatError("its graph must be over IndexBinaryFlat")
    if kind == "exact":
        wanted = (8 * origin.n_bytes, origin.n_bytes, 8, faiss.METRIC_L2, faiss.IndexPQ.ST_PQ)
        if (index.d, index.pq.M, index.pq.nbits, index.metric_type, index.search_type) != wanted:
            raise FormatError("its IndexPQ must have a sub-quantizer for each byte, and search by distance")


def check_counts(counts: Ints, kind: str, index: Any, origin: Origin) -> Ints:
    """How often each bit is repeated (n_bits,): as many as the expanded codes have room for."""
    most = 0 if kind == "exact" else min(index.d, MOST_EXPANDED)
    if counts.shape != (origin.n_bits,) or counts.min() < 0 or counts.max() > most or counts.sum() > most:
        raise FormatError(f"it must repeat {origin.n_bits} bits at most {most} times together")
    return counts


def check_centroids(index: Any, origin: Origin) -> None:
    """Read the centroids back: they must be those of the weights."""
    found = require("faiss", "faiss").vector_to_array(index.pq.centroids)
    if not np.array_equal(found, centroids(origin).ravel()):
        raise FormatError("its centroids are not those of its weights")


def check_expanded(index: Any, codes: Codes, counts: Ints) -> None:
    """Read the expanded codes back: they must be those of the codes."""
    faiss = require("faiss", "faiss")
    flat = faiss.downcast_IndexBinary(index.storage) if hasattr(index, "storage") else index
    found = faiss.vector_to_array(flat.xb)
    if not np.array_equal(found, repeat_bits(codes, counts, index.d).ravel()):
        raise FormatError("its expanded codes are not those of its codes")
