"""FAISS's indexes of binary codes. Weights become PQ centroids: the corners of a box with sides √w, whose squared
Euclidean distances are weighted Hamming distances."""

from __future__ import annotations

import faiss
import numpy as np
from search_codes import CodeSet


def as_vectors(codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Bits scaled by √w, (n, bits) float32."""
    bits = np.unpackbits(codes, axis=1, count=len(weights), bitorder="little")
    return bits * np.sqrt(weights).astype(np.float32)


def product_quantizer(data: CodeSet, bits_each: int) -> faiss.IndexPQ:
    """IndexPQ over groups of bits, whose PQ codes are the packed codes themselves."""
    groups = data.weights.reshape(-1, bits_each)
    corners = (np.arange(1 << bits_each)[:, None] >> np.arange(bits_each)) & 1  # (2^b, b)
    index = faiss.IndexPQ(data.bits, len(groups), bits_each)
    centroids = corners * np.sqrt(groups)[:, None, :]  # (groups, 2^b, b)
    faiss.copy_array_to_vector(centroids.astype(np.float32).ravel(), index.pq.centroids)
    faiss.copy_array_to_vector(data.codes.ravel(), index.codes)
    index.ntotal, index.is_trained = len(data), True
    return index


class Rival:
    """An index of FAISS under one way to ask: `prepare` queries outside the timing, then `search(prepared, k)`."""

    weighted = True

    def __init__(self, data: CodeSet) -> None:
        self.weights = data.weights
        self.index = self.build(data)

    def build(self, data: CodeSet) -> faiss.Index:
        raise NotImplementedError

    def prepare(self, queries: np.ndarray) -> np.ndarray:
        return as_vectors(queries, self.weights)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        return self.index.search(queries, k)[1]


class PQ(Rival):
    """256 centroids a byte, look-up tables of float32."""

    def build(self, data: CodeSet) -> faiss.Index:
        return product_quantizer(data, 8)


class FastScan(Rival):
    """4-bit fast scan, tables rounded to bytes; the best k·factor are ranked again by 8-bit tables in float32."""

    factor = 1

    def build(self, data: CodeSet) -> faiss.Index:
        self.scan = faiss.IndexPQFastScan(product_quantizer(data, 4))
        self.exact = product_quantizer(data, 8)
        return faiss.IndexRefine(self.scan, self.exact)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        self.index.k_factor = self.factor  # type: ignore[attr-defined]  # of an IndexRefine
        return self.index.search(queries, k)[1]


class Binary(Rival):
    """Ignores the weights."""

    weighted = False

    def prepare(self, queries: np.ndarray) -> np.ndarray:
        return queries


class BinaryFlat(Binary):
    def build(self, data: CodeSet) -> faiss.IndexBinary:
        index = faiss.IndexBinaryFlat(data.bits)
        index.add(data.codes)
        return index


class BinaryHNSW(Binary):
    def build(self, data: CodeSet) -> faiss.IndexBinary:
        index = faiss.IndexBinaryHNSW(data.bits, 16)
        index.hnsw.efConstruction, index.hnsw.efSearch = 40, 64
        index.add(data.codes)
        return index


class BinaryMultiHash(Binary):
    """4 tables keyed by a quarter of the bits, at most 16; buckets within 2 flips are read."""

    def build(self, data: CodeSet) -> faiss.IndexBinary:
        index = faiss.IndexBinaryMultiHash(data.bits, 4, min(16, data.bits // 4))
        index.nflip = 2
        index.add(data.codes)
        return index


FULL = {"FAISS fast-scan + refine": FastScan, "FAISS PQ, 8 bits": PQ, "FAISS binary flat": BinaryFlat}
GRAPHS = {"FAISS binary HNSW": BinaryHNSW, "FAISS binary multi-hash": BinaryMultiHash}
