"""Vectors of items, and of what is searched for: each way to embed also embeds a query.

Words become vectors by TF-IDF and a truncated SVD, both of scikit-learn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .. import storage
from .._arrays import Array, Bytes, Singles
from .._validation import check_whole
from ..exceptions import FormatError, InvalidInputError, MissingDependencyError
from ..reading.text_files import shortened
from .pictures import Picture, digit_of, grey_of

__all__ = ["Digits", "Embedder", "Gist", "Given", "Sentences", "Tfidf", "UnnamedSentences", "open_embedder"]

SENTENCE_MODEL = "all-MiniLM-L6-v2"
_MOST_SIDE = 1024  # pixels
_SAME = 0.05  # from a vector of length 1 to the same on another device or in another precision; other models': about 1
TFIDF_KIND, TFIDF_VERSION = "cghash-embedder", 1
MOST_WORDS = 20_000  # of the collection, the most frequent ones
_TFIDF: dict[str, Any] = {"strip_accents": "unicode", "sublinear_tf": True, "dtype": np.float32}


class Embedder:
    """Turns a text or a picture into a vector (d,) of the workspace's kind; the base can neither.

    >>> Given().text("a boat")
    Traceback (most recent call last):
    cghash.exceptions.InvalidInputError: query must be an item or a vector: the vectors here are given, and how they \
were made is not known; got a text
    """

    source: ClassVar[str]
    takes_text: ClassVar[bool] = False
    takes_image: ClassVar[bool] = False
    words: ClassVar[str]  # what the vectors are, for messages

    def about(self) -> dict[str, Any]:
        """What workspace.json says of the vectors."""
        return {"source": self.source}

    def text(self, text: str) -> Singles:
        """The vector of a text."""
        raise InvalidInputError(f"query must be {self._wanted()}: the vectors here are {self.words}; got a text")

    def image(self, data: bytes) -> Singles:
        """The vector of a picture, from the bytes of its file."""
        raise InvalidInputError(f"query must be {self._wanted()}: the vectors here are {self.words}; got a picture")

    def _wanted(self) -> str:
        more = ", a text" * self.takes_text + ", a picture" * self.takes_image
        return f"an item{more} or a vector"


class Given(Embedder):
    """Vectors that the user gave: how they were made is not known here."""

    source = "given"
    words = "given, and how they were made is not known"


class _Pictures(Embedder):
    takes_image = True

    def image(self, data: bytes) -> Singles:
        vector: Singles = self.images([data])[0]
        return vector

    def images(self, pictures: Sequence[Picture], n_jobs: int | None = None) -> Singles:
        """The vectors of pictures (n, d)."""
        raise NotImplementedError


class Gist(_Pictures):
    """GIST features of pictures (n, 512), by the laboratory's extractor."""

    source = "gist"
    words = "GIST features of pictures"

    def __init__(self, size: int = 128) -> None:
        self.size = size

    def about(self) -> dict[str, Any]:
        return {"source": self.source, "size": self.size}

    def images(self, pictures: Sequence[Picture], n_jobs: int | None = None) -> Singles:
        from ..lab.features.gist import gist
        from ..lab.features.images import square
        from ..lab.features.parallel import each

        def small(picture: Picture) -> Bytes:
            return square(grey_of(picture), self.size)

        return gist(list(each(small, pictures, n_jobs)), size=self.size, n_jobs=n_jobs)


class Digits(_Pictures):
    """Pictures of one digit as 8 × 8 grey levels of 0 to 16, as scikit-learn's are."""

    source = "digits"
    words = "the 8 × 8 grey levels of one digit"

    def images(self, pictures: Sequence[Picture], n_jobs: int | None = None) -> Singles:
        from ..lab.features.parallel import each

        def digit(picture: Picture) -> Singles:
            return digit_of(grey_of(picture))

        return np.stack(list(each(digit, pictures, n_jobs)))


class Sentences(Embedder):
    """Embeddings of texts by a model of the optional package sentence_transformers.

    Parameters
    ----------
    model : name of the model, or the folder that holds it
    fetch : whether a model that is not on this machine may be fetched; a server's never is
    """

    source = "sentences"
    words = "sentence embeddings of texts"
    takes_text = True

    def __init__(self, model: str | os.PathLike[str] = SENTENCE_MODEL, *, fetch: bool = True) -> None:
        name = os.fspath(model)
        self.model = os.path.abspath(name) if os.path.isdir(name) else name
        self.fetch = fetch

    def about(self) -> dict[str, Any]:
        return {"source": self.source, "model": self.model}

    def text(self, text: str) -> Singles:
        vector: Singles = self.texts([text])[0]
        return vector

    def texts(self, texts: Sequence[str]) -> Singles:
        """The vectors of texts (n, d), each of length 1."""
        found = self.transformer.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(found, dtype=np.float32)

    def check(self, texts: Sequence[str], vectors: Singles) -> None:
        """Refuse a model that gives other vectors for texts whose vectors (n, d) are known."""
        found = self.texts(texts)
        if found.shape != vectors.shape or (np.linalg.norm(found - vectors, axis=1) > _SAME).any():
            raise InvalidInputError(
                f"sentence_model must be the model that made the vectors, got {self.model!r}, which gives others"
            )

    @cached_property
    def transformer(self) -> Any:
        """The model; an error says that it, or the package, is not there."""
        from ..lab.features.sentences import load_sentence_model

        try:
            return load_sentence_model(self.model, fetch=self.fetch)
        except MissingDependencyError:
            raise
        except Exception as error:  # foreign files raise anything
            reason = (str(error).splitlines() or [""])[0]
            where = "" if self.fetch else " on this machine"
            raise InvalidInputError(
                f"sentence_model must be a model that sentence-transformers can load{where}, "
                f"got {self.model!r}: {reason}"
            ) from error


class UnnamedSentences(Embedder):
    """Sentence embeddings whose model nobody has named here: what a workspace says of it is never loaded.

    >>> UnnamedSentences("their/model").text("a boat")
    Traceback (most recent call last):
    cghash.exceptions.InvalidInputError: query must be an item or a vector: the vectors here are sentence embeddings \
by 'their/model', and texts are embedded only by a model that 'cghash serve --sentence-model' names; got a text
    """

    source = Sentences.source

    def __init__(self, model: str) -> None:
        self.model = shortened(model)

    @property
    def words(self) -> str:  # type: ignore[override]
        named = "texts are embedded only by a model that 'cghash serve --sentence-model' names"
        return f"sentence embeddings by {self.model!r}, and {named}"


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

        counter = TfidfVectorizer(max_features=MOST_WORDS, **_TFIDF)
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
        storage.save(path, TFIDF_KIND, TFIDF_VERSION, arrays, {"source": self.source})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tfidf:
        arrays, _ = storage.load(path, TFIDF_KIND, TFIDF_VERSION)
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

        counter = TfidfVectorizer(vocabulary=self.vocabulary, **_TFIDF)
        counter.idf_ = self.idf
        return counter


def open_embedder(path: str | os.PathLike[str], about: dict[str, Any]) -> Embedder:
    """The embedder of a workspace, which loads nothing but numbers.

    Parameters
    ----------
    path : DIR/embedder.cghash, which is there where words were counted
    about : what workspace.json says of the vectors
    """
    ways: dict[str, Callable[[], Embedder]] = {
        Given.source: Given,
        Gist.source: lambda: Gist(_side(about.get("size"))),
        Digits.source: Digits,
        Sentences.source: lambda: UnnamedSentences(str(about.get("model"))),
        Tfidf.source: lambda: Tfidf.load(path),
    }
    way = ways.get(str(about.get("source")))
    if way is None:
        raise FormatError(f"the vectors' source must be one of {sorted(ways)}, got {about.get('source')!r}")
    return way()


def _side(found: Any) -> int:
    """Pixels of a side, as workspace.json tells them."""
    if not isinstance(found, int) or not 4 <= found <= _MOST_SIDE or found % 4:
        raise FormatError(f"the size of GIST features must be a multiple of 4 up to {_MOST_SIDE}, got {found!r:.60}")
    return found
