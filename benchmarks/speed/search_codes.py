"""Codes to search: uniform ones, and those that CGHash learned on MNIST, of noise-augmented copies up to any number."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from cghash import CGHash
from cghash.exceptions import FewerBitsWarning
from common import load

FOLDER = Path(__file__).parents[2] / "build" / "search"  # models and codes that were made once
MOST_BITS = 128
N_LEARN, N_TRAIN = 5000, 60000  # items that the codes are learned from; items that are augmented
NOISE = 16.0  # standard deviation, of pixels from 0 to 255
KINDS = ("uniform", "exponential", "learned")


@dataclass(frozen=True)
class CodeSet:
    """A database, queries and weights."""

    kind: str
    codes: np.ndarray  # (n, bytes) uint8
    queries: np.ndarray  # (q, bytes) uint8
    weights: np.ndarray  # (bits,)

    @property
    def bits(self) -> int:
        return len(self.weights)

    def __len__(self) -> int:
        return len(self.codes)


def make(kind: str, n: int, bits: int, n_queries: int = 1000) -> CodeSet:
    """n codes: `uniform` (weights 0.5 to 1.5), `exponential` (uniform, weights halve every 8 bits), `learned`."""
    if kind == "learned":
        codes, queries, weights = learned(n, bits)
        return CodeSet(kind, codes, queries[:n_queries], weights)
    rng = np.random.default_rng([n, bits])
    codes = rng.integers(0, 256, (n, bits // 8), dtype=np.uint8)
    queries = rng.integers(0, 256, (n_queries, bits // 8), dtype=np.uint8)
    falling = rng.permutation(0.5 ** (np.arange(bits) / 8))
    return CodeSet(kind, codes, queries, falling if kind == "exponential" else rng.uniform(0.5, 1.5, bits))


def learned(n: int, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of n augmented items, codes of the held-out items, weights: of the first bits of one model."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    model = the_model()
    head = model.truncate(min(bits, model.n_bits_))
    if head.n_bits_ < bits:
        raise SystemExit(f"the model learned {head.n_bits_} bits, {bits} were asked for")
    pixels, _ = load("mnist")
    queries = model.encode(pixels[N_TRAIN:])
    codes = np.ascontiguousarray(augmented(model, pixels[:N_TRAIN], n)[:n, : bits // 8])
    return codes, np.ascontiguousarray(queries[:, : bits // 8]), head.weights_


def the_model() -> CGHash:
    path = FOLDER / f"mnist_{MOST_BITS}.cghash"
    if not path.exists():
        print(f"learning {MOST_BITS} bits of MNIST", file=sys.stderr)
        pixels, labels = load("mnist")
        rows = np.random.default_rng(0).choice(N_TRAIN, N_LEARN, replace=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewerBitsWarning)
            CGHash(MOST_BITS, random_state=0).fit(pixels[rows], labels[rows]).save(path)
    return CGHash.load(path)


def augmented(model: CGHash, pixels: np.ndarray, n: int) -> np.ndarray:
    """Codes of the items, and of copies of them, shifted by a pixel and with noise, until there are n."""
    path = FOLDER / f"mnist_{MOST_BITS}_{n}.npy"
    if path.exists():
        return np.load(path, mmap_mode="r")
    print(f"encoding {n} augmented items of MNIST", file=sys.stderr)
    rng = np.random.default_rng(1)
    noise = rng.normal(0.0, NOISE, 2 * pixels.size).astype(np.float32)  # copies take random stretches of it
    parts = [model.encode(pixels)]
    for _ in range(-(-n // len(pixels)) - 1):
        shift, first = rng.integers(-1, 2, 2), int(rng.integers(pixels.size))
        moved = np.roll(pixels.reshape(-1, 28, 28), shift, axis=(1, 2)).reshape(pixels.shape)
        parts.append(model.encode(moved + noise[first : first + pixels.size].reshape(pixels.shape)))
    codes = np.concatenate(parts)[:n]
    np.save(path, codes)
    return codes
