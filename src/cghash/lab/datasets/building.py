"""Originals to arrays: X, y, n_train and what else is kept of them, as prepared files hold it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Array
from ...exceptions import FormatError, MissingDependencyError
from .image_folders import ImageFolder, read_labelme, read_scenes, read_voc
from .original_formats import read_cifar, read_idx, read_isolet, read_usps
from .registry import NEWSGROUPS, Entry

__all__ = ["build", "check_needs", "home_of", "original_paths"]

Arrays = dict[str, Array]
Progress = Callable[[int, int], None]
Encoder = Callable[[Sequence[str]], Array]

CIFAR_SIDE = 32
MODEL, TOKENS = "sentence-transformers/all-MiniLM-L6-v2", 128


def home_of(entry: Entry, folder: Path) -> Path | None:
    """The folder, in or below a folder, where all originals are."""
    for home in entry.homes:
        if all(_one_of(folder / home, names) is not None for names in entry.originals):
            return folder / home
    return None


def original_paths(entry: Entry, home: Path) -> list[Path]:
    """The files and folders that a data set is made of: all of an image folder, else what the registry names."""
    return [home] if entry.images else [_file(home, *names.split("|")) for names in entry.originals]


def check_needs(entry: Entry) -> None:
    """Whether the package is there that makes a data set's features, before anything is downloaded for it."""
    if entry.needs is not None and find_spec(entry.needs) is None:
        package = entry.needs.replace("_", "-")
        raise MissingDependencyError(
            f"{entry.name}: its features are made with {package}: pip install {package}, "
            f"or put {entry.stem}.npz into the data folder"
        )


def build(entry: Entry, home: Path, n_jobs: int | None = None, progress: Progress | None = None) -> Arrays:
    """Arrays of a data set from its originals.

    Parameters
    ----------
    entry : which one
    home : the folder of its originals, as `home_of` gives it
    n_jobs : threads for features of images
    progress : is called with (images done, all)
    """
    plain = {"isolet": _isolet, "mnist": _mnist, "usps": _usps}
    if entry.name in plain:
        return plain[entry.name](home)
    if entry.name == "cifar10":
        return _cifar(home, n_jobs, progress)
    if entry.name == "newsgroups20":
        return newsgroups(home, sentence_encoder())
    readers = {"scene15": read_scenes, "labelme": read_labelme, "pascal07": read_voc}
    images = readers[entry.name.partition("-")[0]](home)
    return _of_images(images, entry.stem.endswith("gist512"), n_jobs, progress)


def _one_of(home: Path, names: str) -> Path | None:
    return next((home / name for name in names.split("|") if (home / name).exists()), None)


def _file(home: Path, *names: str) -> Path:
    found = _one_of(home, "|".join(names))
    assert found is not None  # home_of has seen it
    return found


def _joined(parts: Sequence[tuple[Array, Array]]) -> Arrays:
    """Train and test as one."""
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return {"X": X, "y": y, "n_train": np.array(len(parts[0][0]))}


def _mnist(home: Path) -> Arrays:
    parts = []
    for part in "train", "t10k":
        images = read_idx(_file(home, f"{part}-images-idx3-ubyte.gz", f"{part}-images-idx3-ubyte"), 3)
        labels = read_idx(_file(home, f"{part}-labels-idx1-ubyte.gz", f"{part}-labels-idx1-ubyte"), 1)
        if images.shape[1:] != (28, 28) or len(images) != len(labels) or labels.max(initial=0) > 9:
            raise FormatError(
                f"{home}: {part} must have images of 28 × 28 with a label of 0 to 9 each, got shapes "
                f"{images.shape} and {labels.shape}, labels up to {labels.max(initial=0)}"
            )
        parts.append((images.reshape(-1, 784), labels))
    return _joined(parts)


def _usps(home: Path) -> Arrays:
    return _joined([read_usps(_file(home, f"zip.{part}.gz", f"zip.{part}")) for part in ("train", "test")])


def _isolet(home: Path) -> Arrays:
    stems = "isolet1+2+3+4.data", "isolet5.data"
    return _joined([read_isolet(_file(home, stem, f"{stem}.Z")) for stem in stems])


def _cifar(home: Path, n_jobs: int | None, progress: Progress | None) -> Arrays:
    from ..features import gist

    train = [read_cifar(home / f"data_batch_{i}.bin") for i in range(1, 6)]
    test = read_cifar(home / "test_batch.bin")
    images, y = (np.concatenate(arrays) for arrays in zip(*train, test, strict=True))
    grey = luma(images)
    X = gist(list(grey), size=CIFAR_SIDE, n_jobs=n_jobs, progress=progress)
    return {"X": X, "y": y, "n_train": np.array(len(y) - len(test[1])), "images": grey}


def luma(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey levels of red, green and blue: 0.299 R + 0.587 G + 0.114 B.

    >>> luma(np.array([[[255, 0, 0], [255, 255, 255]]], dtype=np.uint8)).tolist()
    [[76, 255]]
    """
    return np.rint(images @ np.array([0.299, 0.587, 0.114], dtype=np.float32)).astype(np.uint8)


def _of_images(images: ImageFolder, by_gist: bool, n_jobs: int | None, progress: Progress | None) -> Arrays:
    from ..features import BagOfWords, gist

    if by_gist:
        X = gist(images.paths, n_jobs=n_jobs, progress=progress)
    else:  # the dictionary is learned from the train split alone
        words = BagOfWords(n_jobs=n_jobs, progress=progress)
        X = words.fit(images.paths[: images.n_train]).transform(images.paths).astype(np.uint16)
    arrays = {"X": X, "y": images.y, "class_names": np.array(images.classes), "filename": np.array(images.names)}
    return arrays if images.n_train is None else arrays | {"n_train": np.array(images.n_train)}


def newsgroups(home: Path, encode: Encoder) -> Arrays:
    """Embeddings of 20 Newsgroups, by date.

    Parameters
    ----------
    home : the folder of 20news-bydate-train and 20news-bydate-test
    encode : texts to (n, d)
    """
    texts, labels, ends = [], [], []
    for part in "train", "test":
        for label, name in enumerate(NEWSGROUPS):
            messages = _messages(home / f"20news-bydate-{part}" / name)
            texts += [body_of(path.read_bytes().decode("latin-1")) for path in messages]
            labels += [label] * len(messages)
        ends.append(len(labels))
    if not ends[0] or ends[0] == ends[1]:
        raise FormatError(f"{home} must hold messages in 20news-bydate-train and 20news-bydate-test, got {ends}")
    X = np.asarray(encode(texts), dtype=np.float32)
    return {"X": X, "y": np.array(labels), "n_train": np.array(ends[0]), "class_names": np.array(NEWSGROUPS)}


def _messages(folder: Path) -> list[Path]:
    """Messages by number."""
    return sorted(folder.glob("*"), key=lambda path: (len(path.name), path.name))


def body_of(message: str) -> str:
    """A message's subject and body, without its other headers and without what it quotes.

    >>> body_of("From: a@b\\nSubject: Re: cars\\n\\na@c writes:\\n> old\\nnew\\n")
    'cars\\nnew'
    """
    headers, _, body = message.partition("\n\n")
    subject = re.search(r"^Subject:\s*(?:Re:\s*)*(.*)$", headers, re.MULTILINE | re.IGNORECASE)
    own = [line for line in body.splitlines() if not re.match(r"\s*[>|]|.*\bwrites:\s*$", line)]
    return "\n".join([subject.group(1) if subject else "", *own]).strip()


def sentence_encoder() -> Encoder:
    """all-MiniLM-L6-v2 over the first 128 tokens, to unit length."""
    from ..features.sentences import load_sentence_model

    model = load_sentence_model(MODEL, fetch=True)
    model.max_seq_length = TOKENS
    return lambda texts: np.asarray(model.encode(list(texts), normalize_embeddings=True))
