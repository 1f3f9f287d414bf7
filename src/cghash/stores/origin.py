"""Where codes come from: how many bits they have, what each counts, and which hash functions made them.

A short description of it travels with every store. Its fingerprint tells codes of different models apart, which
would otherwise be compared without complaint and rank at random.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Ints
from ..codes import check_weights, whole_weights
from ..estimator import MOST_BITS, CodeEstimator, functions_of
from ..exceptions import FormatError, InvalidInputError

FORMAT, VERSION = "cghash-codes", 1
UNKNOWN = ""  # functions of codes that no model is known of


@dataclass(frozen=True, eq=False)
class Origin:
    """What must agree between codes before they are compared.

    Parameters
    ----------
    weights : (n_bits,) what each bit counts
    functions : SHA-256 over the hash functions; empty where they are not known

    Examples
    --------
    >>> Origin([1.0, 0.5]).n_bits
    2
    >>> Origin([1.0, 0.5]).fingerprint == Origin([1.0, 0.25]).fingerprint
    False
    """

    weights: ArrayLike
    functions: str = UNKNOWN

    def __post_init__(self) -> None:
        weights = check_weights(self.weights, np.size(self.weights))
        if not 1 <= len(weights) <= MOST_BITS:
            raise InvalidInputError(f"weights must be 1 to {MOST_BITS} numbers, got {len(weights)}")
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return int(np.size(self.weights))

    @property
    def n_bytes(self) -> int:
        """Bytes of a packed code."""
        return -(-self.n_bits // 8)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over bits, weights and functions, in hexadecimal."""
        weights = np.asarray(self.weights, dtype="<f8")
        return hashlib.sha256(f"{self.n_bits} {self.functions} ".encode() + weights.tobytes()).hexdigest()

    @cached_property
    def whole(self) -> tuple[Ints, float]:
        """The weights as whole multiples of a unit, and the unit (`cghash.codes.whole_weights`)."""
        return whole_weights(self.weights, self.n_bits)

    @cached_property
    def byte_tables(self) -> Ints:
        """(n_bytes, 256) whole weights of the bits set in each byte of a difference."""
        padded = np.zeros(8 * self.n_bytes, dtype=np.int64)
        padded[: self.n_bits] = self.whole[0]
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.int64)
        return padded.reshape(-1, 8) @ bits.T

    def header(self, **more: Any) -> str:
        """A description in JSON, with what a store adds."""
        about = {"format": FORMAT, "version": VERSION, "n_bits": self.n_bits}
        about |= {"weights": np.asarray(self.weights).tolist(), "functions": self.functions}
        return json.dumps({**about, "fingerprint": self.fingerprint, **more}, allow_nan=False)

    def check(self, model: Any, where: str) -> None:
        """Say so when codes of `where` are not those of a model."""
        other = origin_of(model)
        if other.fingerprint == self.fingerprint:
            return
        if other.n_bits != self.n_bits:
            differs = f"{other.n_bits} bits where {self.n_bits} are stored"
        elif not np.array_equal(other.weights, self.weights):
            differs = "other weights"
        else:
            differs = "other hash functions"
        raise InvalidInputError(
            f"model must be the one whose codes {where} holds (fingerprint {self.fingerprint[:12]}…), "
            f"got one with {differs} (fingerprint {other.fingerprint[:12]}…)"
        )


def read_header(text: str | bytes, where: str) -> tuple[Origin, dict[str, Any]]:
    """The inverse of `Origin.header`; FormatError for anything else."""
    try:
        about = json.loads(text)
        kind, version = about["format"], about["version"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"{where} holds no description of cghash codes") from error
    if kind != FORMAT:
        raise FormatError(f"{where} must hold {FORMAT}, got {kind!r}")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise FormatError(f"{where} has format version {version!r}; this cghash reads versions 1 to {VERSION}")
    try:
        origin = Origin(about["weights"], str(about["functions"]))
        whole = (origin.n_bits, origin.fingerprint) == (about["n_bits"], about["fingerprint"])
    except (KeyError, ValueError, InvalidInputError) as error:  # lists of no one length, letters that are none
        raise FormatError(f"{where} has a description whose parts do not fit together: {error}") from error
    if not whole:
        raise FormatError(f"{where} was altered: its weights and its fingerprint do not agree")
    return origin, about


def origin_of(model: Any) -> Origin:
    """The origin of a fitted model's codes; an `Origin` is its own.

    Examples
    --------
    >>> from cghash.peers import LSH
    >>> model = LSH(8, random_state=0).fit([[0.0], [1.0]])
    >>> origin_of(model).n_bits
    8
    """
    if isinstance(model, Origin):
        return model
    if not isinstance(model, CodeEstimator):
        raise InvalidInputError(f"model must be a fitted estimator of codes or an Origin, got {model!r}")
    if not getattr(model, "hamming", True):
        raise InvalidInputError(f"model must rank by Hamming distance, got {type(model).__name__}, which does not")
    if not hasattr(model, "n_bits_"):
        raise InvalidInputError(f"model must be fitted, got {model!r}, which is not")
    functions = functions_of(model)
    if functions is None:
        raise InvalidInputError(f"model must have hash functions that are arrays, got {model!r}, which has classifiers")
    return Origin(model.weights_, functions)
