"""What the quantisers share: codes of FAISS, whose distance is computed between an item and a code."""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._arrays import Bools, Codes, Floats
from ..codes import unpack
from ..exceptions import InvalidInputError, MissingDependencyError
from ..index import WeightedHammingIndex
from .base import Peer

LARGEST = 1e15  # squares and sums of squares are finite in single precision


def require_faiss() -> Any:
    """FAISS, or a word on how to install it."""
    try:
        return import_module("faiss")
    except ImportError as error:
        raise MissingDependencyError('PQ and RaBitQ need FAISS: pip install "cghash[faiss]"') from error


class Quantizer(Peer):
    """A peer whose codes are not compared by their bits, but stand for vectors that a query is compared with.

    A subclass gives `_learn`, `_codes` and `_estimates`.
    """

    hamming = False

    def distances(self, X: Any, codes: Any) -> Floats:
        """Squared Euclidean distances (q, n), as estimated, of items X (q, d), not encoded, to codes (n, bytes)."""
        check_is_fitted(self)
        items = self._items(X)
        unpack(codes, self.n_bits_)  # says what is wrong with the codes
        return self._estimates(checked(items), np.ascontiguousarray(codes))

    def build_index(self, X: Any, ids: Any = None, **options: Any) -> WeightedHammingIndex:
        """Not for these codes: FAISS has indexes of them."""
        name = type(self).__name__
        raise InvalidInputError(
            f"an index of {name} codes by Hamming distance would be of no use: use FAISS's own Index{name}, "
            "or `distances`"
        )

    def _bits(self, X: Any) -> Bools:
        codes = self._codes(checked(X))
        return unpack(codes, 8 * codes.shape[1]).astype(bool)

    def _between(self, X: Any, first: Any, second: Any) -> Floats:
        codes = self._codes(checked(X))
        rows = [self._estimates(X[i : i + 1], codes[second[first == i]])[0] for i in np.unique(first)]
        out = np.empty(len(first))
        out[np.argsort(first, kind="stable")] = np.concatenate(rows)
        return out

    @abstractmethod
    def _codes(self, X: Any) -> Codes:
        """The codes (n, bytes) of items."""

    @abstractmethod
    def _estimates(self, X: Any, codes: Codes) -> Floats:
        """Squared distances (q, n) of items to codes."""


def checked(X: Any) -> Any:
    """The items, if FAISS can take them: it ends the process over numbers that are not finite."""
    size = float(np.abs(X).max())
    if not size <= LARGEST:
        raise InvalidInputError(f"X must hold numbers of at most {LARGEST:g} for FAISS, got {size:g}")
    return X
