"""What every estimator of codes has: `encode`, distances to codes, an index, and a file, which `load` reads."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import storage
from ._arrays import Codes, Floats, Ints
from ._items import validated_items
from ._tensors import is_on_gpu
from .codes import pack, unpack, weighted_hamming
from .exceptions import FormatError, InvalidInputError
from .index import WeightedHammingIndex

MOST_BITS = 65536
_SAMPLE = 2000  # training items that say how far items are from the boundaries of bits


class Query(NamedTuple):
    """What items ask an index: their codes, and how much each bit counts for each of them."""

    codes: Codes  # (q, bytes)
    weights: Floats  # (q, n_bits), 0 or more


class CodeEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose `transform` gives bits; its distance is the weighted Hamming distance under `weights_`."""

    n_bits_: int
    weights_: Floats  # (n_bits_,)

    @abstractmethod
    def transform(self, X: Any) -> NDArray[np.uint8]:
        """The bits (n, `n_bits_`) of items, as 0 and 1."""

    @abstractmethod
    def score(self, X: Any, y: Any = None, *, triplets: Any = None, triplet_weights: Any = None) -> float:
        """Share of triplets over X that the learned distance satisfies."""

    @abstractmethod
    def truncate(self, m: int) -> Self:
        """The model of the first m bits."""

    def encode(self, X: Any, *, device: Any = None) -> Any:
        """The packed codes of items (n, bytes), eight bits to a byte, little-endian.

        Parameters
        ----------
        X : (n, d) items; a tensor on a GPU is encoded there, and its codes are a tensor there too
        device : {"cuda", "cuda:0", …, "cpu"} or torch.device, default=None
            Send items through this device, block by block; for linear and RBF functions. X may then also be the path
            of a .parquet or .npy file, which need not fit into memory. The codes are in host memory.
        """
        if device is None and not is_on_gpu(X):
            return pack(self.transform(X))
        from .device_codes import encode_on

        check_is_fitted(self)
        return encode_on(self, X, device)

    def query(self, X: Any) -> Query:
        """The codes of items as queries, and the weights of their bits, larger the further from a bit's boundary.

        A bit is whether a number, its margin, is above 0. Its weight is that of the model times a share that grows with
        |margin|. Peers take the distance from a hyperplane, or |margin| as the method scales it. CGHash takes
        |margin| / s, s its mean over up to 2000 training items, cut at ½ where it learned from labels or triplets. A
        query's weights do not depend on other queries.

        All queries get the weights of the model where bits have no margins, as those of stumps and trees, and where a
        CGHash comes from a file without s: fit it again.

        Parameters
        ----------
        X : (q, d) items in host memory

        Returns
        -------
        Query : `codes` (q, bytes), as `encode` gives them, and `weights` (q, `n_bits_`)

        Examples
        --------
        >>> from cghash.peers import SignBits
        >>> codes, weights = SignBits(2).fit([[1.0, 2.0], [0.0, -1.0]]).query([[0.5, -3.0]])
        >>> codes.tolist(), weights.tolist()
        ([[1]], [[0.5, 3.0]])
        """
        check_is_fitted(self)
        if is_on_gpu(X):
            raise InvalidInputError(f"X must be in host memory for query, got a tensor on {X.device}: X.cpu() is")
        margins = self._margins(self._items(X))
        if margins is None:
            bits = self.transform(X)
            return Query(pack(bits), np.tile(self.weights_, (len(bits), 1)))
        margins = margins[:, : self.n_bits_]
        weights = self.weights_ * self._shares(np.abs(margins))
        if not np.isfinite(weights).all():
            row = int(np.flatnonzero(~np.isfinite(weights).all(axis=1))[0])
            raise InvalidInputError(f"X must hold items of finite margins, got numbers too large in row {row}")
        return Query(pack(margins > 0), weights)

    def _items(self, X: Any) -> Any:
        """Items as the hash functions take them."""
        return validated_items(self, X, reset=False)

    def _margins(self, X: Any) -> Floats | None:
        """Numbers (n, at least `n_bits_`) whose bits are whether they are above 0; None where there are none."""
        return None

    def _shares(self, margins: Floats) -> Floats:
        """How much of its weight a bit counts at |margins| (n, `n_bits_`); never less where the margin is larger."""
        return margins

    def distances(self, X: Any, codes: Any) -> Floats:
        """Distances (q, n) of items X (q, d), as queries, to packed codes (n, bytes)."""
        return weighted_hamming(self.transform(X), unpack(codes, self.n_bits_), self.weights_)

    def build_index(self, X: Any, ids: Any = None, **options: Any) -> WeightedHammingIndex:
        """An index of the codes of items, under the learned weights.

        Parameters
        ----------
        X : (n, d) items
        ids : (n,) int64, optional; default: row numbers
        options : as for `WeightedHammingIndex`
        """
        check_is_fitted(self)
        options = {"n_jobs": getattr(self, "n_jobs", None), "functions": functions_of(self)} | options
        index = WeightedHammingIndex(self.n_bits_, self.weights_, **options)
        index.add(self.encode(X), ids)
        return index

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that loads without unpickling anything."""

    @classmethod
    @abstractmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote."""


def margin_sample(n: int) -> Ints:
    """Rows of n items, evenly spread, that `mean_margins` is taken over."""
    return np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64)


def mean_margins(margins: Floats) -> Floats:
    """Mean |margin| (ℓ,) of margins (n, ℓ); 1 where that is 0 or no finite number."""
    mean = np.abs(margins).mean(axis=0)
    return np.where((mean > 0) & np.isfinite(mean), mean, 1.0)


def load(path: str | os.PathLike[str]) -> CodeEstimator:
    """Read the model in a file: a CGHash, or a peer.

    Examples
    --------
    >>> import tempfile
    >>> from cghash.peers import LSH
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     LSH(8, random_state=0).fit([[0.0], [1.0]]).save(f"{folder}/lsh.cghash")
    ...     load(f"{folder}/lsh.cghash")
    LSH(n_bits=8, random_state=0)
    """
    from . import peers
    from .peers.peer_files import KIND, VERSION

    if storage.kind_of(path) != KIND:
        from .hasher import CGHash

        return CGHash.load(path)
    name = storage.load(path, KIND, VERSION)[1].get("peer")
    if name not in peers.PEERS:
        raise FormatError(f"{path} holds a model of {name!r}; this cghash knows {', '.join(peers.PEERS)}")
    model: CodeEstimator = getattr(peers, name).load(path)
    return model


def functions_of(model: Any) -> str | None:
    """SHA-256 over the hash functions of a fitted estimator; None where they are not arrays, so that no file has them.

    Examples
    --------
    >>> from cghash.peers import LSH
    >>> first, second = (LSH(8, random_state=seed).fit([[0.0], [1.0]]) for seed in (0, 1))
    >>> functions_of(first) == functions_of(second)
    False
    """
    if hasattr(model, "functions_"):
        try:
            return storage.checksum(model.functions_.family, model.functions_.arrays())
        except InvalidInputError:  # any classifier's own
            return None
    from .peers.peer_files import learned

    arrays, plain = learned(model)
    return storage.checksum(json.dumps([type(model).__name__, plain], sort_keys=True), arrays)
