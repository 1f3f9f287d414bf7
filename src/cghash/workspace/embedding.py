"""Vectors of items, and of what is searched for: each way to embed also embeds a query."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..exceptions import FormatError, InvalidInputError, MissingDependencyError
from .pictures import Picture, digit_of, grey_of

__all__ = ["Digits", "Embedder", "Gist", "Given", "Sentences", "open_embedder"]

Vectors = NDArray[np.float32]  # (n, d)
Vector = NDArray[np.float32]  # (d,)

SENTENCE_MODEL = "all-MiniLM-L6-v2"


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

    def text(self, text: str) -> Vector:
        """The vector of a text."""
        raise InvalidInputError(f"query must be {self._wanted()}: the vectors here are {self.words}; got a text")

    def image(self, data: bytes) -> Vector:
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

    def image(self, data: bytes) -> Vector:
        vector: Vector = self.images([data])[0]
        return vector

    def images(self, pictures: Sequence[Picture], n_jobs: int | None = None) -> Vectors:
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

    def images(self, pictures: Sequence[Picture], n_jobs: int | None = None) -> Vectors:
        from ..lab.features.gist import gist
        from ..lab.features.parallel import each

        return gist(list(each(grey_of, pictures, n_jobs)), size=self.size, n_jobs=n_jobs)


class Digits(_Pictures):
    """Pictures of one digit as 8 × 8 grey levels of 0 to 16, as scikit-learn's are."""

    source = "digits"
    words = "the 8 × 8 grey levels of one digit"

    def images(self, pictures: Sequence[Picture], n_jobs: int | None = None) -> Vectors:
        from ..lab.features.parallel import each

        def digit(picture: Picture) -> Vector:
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
        self.model = os.path.abspath(name) if os.path.isdir(name) else name  # servers are started elsewhere
        self.fetch = fetch

    def about(self) -> dict[str, Any]:
        return {"source": self.source, "model": self.model}

    def text(self, text: str) -> Vector:
        vector: Vector = self.texts([text])[0]
        return vector

    def texts(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts (n, d), each of length 1."""
        found = self.transformer.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(found, dtype=np.float32)

    @cached_property
    def transformer(self) -> Any:
        """The model; an error says that it, or the package, is not there."""
        if importlib.util.find_spec("sentence_transformers") is None:
            raise MissingDependencyError("sentence embeddings need the package: pip install sentence-transformers")
        package = importlib.import_module("sentence_transformers")
        try:
            return package.SentenceTransformer(self.model, local_files_only=not self.fetch)
        except (OSError, ValueError) as error:
            if not self.fetch:
                name = os.path.basename(self.model)
                raise MissingDependencyError(f"texts need the sentence model {name!r} on the server") from error
            reason = (str(error).splitlines() or [""])[0]
            raise InvalidInputError(
                f"sentence_model must be a model that sentence-transformers can load, got {self.model!r}: {reason}"
            ) from error


def open_embedder(path: str | os.PathLike[str], about: dict[str, Any]) -> Embedder:
    """The embedder of a workspace.

    Parameters
    ----------
    path : DIR/embedder.cghash, which is there where words were counted
    about : what workspace.json says of the vectors
    """
    from .tfidf import Tfidf

    ways: dict[str, Callable[[], Embedder]] = {
        Given.source: Given,
        Gist.source: lambda: Gist(int(about["size"])),
        Digits.source: Digits,
        Sentences.source: lambda: Sentences(str(about["model"]), fetch=False),
        Tfidf.source: lambda: Tfidf.load(path),
    }
    way = ways.get(str(about.get("source")))
    if way is None:
        raise FormatError(f"the vectors' source must be one of {sorted(ways)}, got {about.get('source')!r}")
    return way()
