"""RaBitQ: one bit a dimension and an unbiased estimate of distances, by FAISS.

Gao, Long: RaBitQ: Quantizing high-dimensional vectors with a theoretical error bound for approximate nearest neighbor
search. SIGMOD 2024. Items are centred and turned by a random orthogonal matrix; the signs s of an item o in D
dimensions stand for the vector ō = s/√D on the unit sphere, and ⟨ō, q⟩ / ⟨ō, o⟩ estimates ⟨o, q⟩ without bias.
Two numbers beside the bits make a squared distance of it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .._arrays import Codes, Floats, Singles
from ..codes import unpack
from ..exceptions import InvalidInputError
from .projections import principal_components, project
from .quantizer import Quantizer, checked, require_faiss

FACTORS = 8  # bytes: two numbers of single precision, ‖o‖² and ‖o‖² √D / ‖o‖₁


@dataclass(eq=False, repr=False)
class RaBitQ(Quantizer):
    """RaBitQ: the signs of randomly turned items, and two numbers for the distance.

    The two numbers count: a code of `n_bits` has `n_bits` − 64 dimensions, and items of more features are projected to
    their leading principal components first. What lies outside of these is missing in the distance.

    Parameters
    ----------
    n_bits : int, default=128
        At least 72; rounded down to whole bytes.
    random_state : int, RandomState or None, default=None
        Of the rotation.

    Attributes
    ----------
    directions_ : (D, d) principal components, turned
    mean_ : (d,) the mean of the items

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 16))
    >>> model = RaBitQ(80, random_state=0).fit(X)
    >>> model.encode(X).shape, model.distances(X[:2], model.encode(X)).shape
    ((300, 10), (2, 300))
    """

    fewer_because = "codes are whole bytes, and hold one bit a dimension of the items and two numbers"

    n_bits: int = 128
    _: KW_ONLY
    random_state: Any = None

    def _check(self) -> None:
        least = 8 * (FACTORS + 1)
        if self.n_bits < least:
            raise InvalidInputError(f"n_bits must be at least {least} for RaBitQ, got {self.n_bits}")

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        self.mean_, components, _ = principal_components(checked(X), 8 * (self.n_bits // 8 - FACTORS))
        rotation, _ = np.linalg.qr(rng.standard_normal((len(components), len(components))))
        self.directions_ = rotation @ components
        return 8 * int(self._quantizer().code_size)

    def _codes(self, X: Any) -> Codes:
        return np.asarray(self._quantizer().compute_codes(self._turned(X)))

    def _estimates(self, X: Any, codes: Codes) -> Floats:
        D = len(self.directions_)
        Q = self._turned(X).astype(np.float64)
        signs = 2.0 * unpack(codes[:, :-FACTORS], D) - 1.0  # (n, D)
        squares, factor = np.ascontiguousarray(codes[:, -FACTORS:]).view("<f4").astype(np.float64).T
        return np.asarray(squares + np.sum(Q * Q, axis=1)[:, None] - 2 / np.sqrt(D) * factor * (Q @ signs.T))

    def _turned(self, X: Any) -> Singles:
        return np.ascontiguousarray(checked(project(X, self.mean_, self.directions_)), dtype=np.float32)

    def _quantizer(self) -> Any:
        faiss = require_faiss()
        return faiss.RaBitQuantizer(len(self.directions_), faiss.METRIC_L2)
