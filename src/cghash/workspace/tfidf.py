"""Vectors of texts from the words in them: TF-IDF, brought to few dimensions by a truncated SVD (scikit-learn)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .. import storage
from .._arrays import Array, Singles
from .._validation import check_whole
from ..exceptions import FormatError, InvalidInputError
from ..reading.text_files import shortened
from .embedding import Embedder

__all__ = ["Tfidf"]

KIND, VERSION = "cghash-embedder", 1
MOST_WORDS = 20_000  # of the collection, the most frequent ones
_SETTINGS: dict[str, Any] = {"strip_accents": "unicode", "sublinear_tf": True, "dtype": np.float32}


class Tfidf(Embedder):
    """Words of a text, weighted by how rare they are, on the directions along which the collection's texts differ.

    Parameters
    ----------
    vocabulary : the v words
    idf : (v,) weight of each word
    components : (d, v) directions, orthonormal

    Examples
    --------
    >>> texts = ["a red boat at sea", "boats and the sea", "apple pie", "pie with red apples"]
    >>> embedder = Tfidf.fit(texts, dimension=2)
    >>> (embedder.texts(texts) @ embedder.text("the sea") > 0.5).tolist()
    [True, True, False, False]
    """

    source = "tfidf"
    words = "made of the words of texts"
    takes_text = True

    def __init__(self, vocabulary: Sequence[str], idf: Array, components: Array) -> None:
        self.vocabulary = list(vocabulary)
        self.idf = np.asarray(idf, dtype=np.float32)
        self.components = np.asarray(components, dtype=np.float32)

    @classmethod
    def fit(cls, texts: Sequence[str], dimension: int = 128, random_state: int = 0) -> Tfidf:
        """Count the words of a collection, or of a sample of it.

        Parameters
        ----------
        texts : n texts
        dimension : d, less where there are fewer texts or words
        random_state : of the SVD's start
        """
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        counter = TfidfVectorizer(max_features=MOST_WORDS, **_SETTINGS)
        try:
            counts = counter.fit_transform(texts)
        except ValueError as error:
            raise InvalidInputError(f"texts must hold words of two letters or more: {error}") from error
        vocabulary = counter.get_feature_names_out().tolist()
        d = min(check_whole(dimension, 1, "dimension"), *counts.shape)
        if len(vocabulary) == 1:  # there is one direction, and scikit-learn wants to choose among two
            return cls(vocabulary, counter.idf_, np.ones((1, 1)))
        svd = TruncatedSVD(d, random_state=random_state).fit(counts)
        return cls(vocabulary, counter.idf_, svd.components_)

    def text(self, text: str) -> Singles:
        vector: Singles = self.texts([text])[0]
        if not vector.any():
            raise InvalidInputError(f"text must hold a word that the items' texts hold, got {shortened(text)!r}")
        return vector

    def texts(self, texts: Sequence[str]) -> Singles:
        """The vectors of texts (n, d), each of length 1, or 0 where no word is known."""
        vectors = np.asarray(self._counter.transform(texts) @ self.components.T, dtype=np.float32)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Singles = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 1e-6)
        return unit

    def save(self, path: str | os.PathLike[str]) -> None:
        words = np.frombuffer("\n".join(self.vocabulary).encode(), dtype=np.uint8)  # a word holds no space
        arrays = {"words": words, "idf": self.idf, "components": self.components}
        storage.save(path, KIND, VERSION, arrays, {"source": self.source})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tfidf:
        arrays, _ = storage.load(path, KIND, VERSION)
        try:
            vocabulary = arrays["words"].tobytes().decode().split("\n")
            idf, components = arrays["idf"], arrays["components"]
            fitting = components.ndim == 2 and idf.shape == (len(vocabulary),) == components.shape[1:]
            finite = all(a.dtype.kind == "f" and np.isfinite(a).all() for a in (idf, components))
        except (KeyError, UnicodeDecodeError) as error:
            raise FormatError(f"{path} must hold words, their weights and components: {error}") from error
        if not fitting:
            raise FormatError(
                f"{path} must hold a weight and a component for each of {len(vocabulary)} words, "
                f"got shapes {idf.shape} and {components.shape}"
            )
        if not finite:
            raise FormatError(f"{path} must hold finite weights and components, got others")
        return cls(vocabulary, idf, components)

    @cached_property
    def _counter(self) -> Any:
        from sklearn.feature_extraction.text import TfidfVectorizer

        counter = TfidfVectorizer(vocabulary=self.vocabulary, **_SETTINGS)
        counter.idf_ = self.idf
        return counter
