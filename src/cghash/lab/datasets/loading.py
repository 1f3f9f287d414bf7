"""Data sets by name: from the user's folder, from the cache, or from their public source.

1. `<stem>.npz` in the data folder.
2. Originals in the data folder, unpacked or as the archives that were downloaded. What is made of them is kept in the
   cache, under a name that holds a fingerprint of them.
3. `<stem>.npz` in the cache.
4. Originals that are in the cache already, or are downloaded to it. What is made of them is kept as 3.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np

from ..._arrays import Array
from ..._progress import Tell, telling
from ...exceptions import FormatError, InvalidInputError, MissingDataError
from ...reading.binary_files import read_arrays
from ...reading.sources import source_of
from ...storage import written_atomically
from .archives import unpack_all
from .building import Arrays, build, check_needs, home_of, original_paths
from .dataset import ArrayInFile, DataSet, Features, ImageFiles, Painter
from .download import RemoteFile, fetch, forget, is_right
from .folders import CACHE, DATA, cache_folder, data_folder
from .registry import DATASETS, NAMES, Entry
from .user_files import check_n_train, is_path, load_own, plain_numbers

__all__ = ["describe_missing", "load"]

_ARCHIVES = (".zip", ".tar", ".tar.gz")


def load(
    name: str | os.PathLike[str],
    *,
    folder: str | os.PathLike[str] | None = None,
    download: bool = True,
    progress: bool | Tell = True,
    n_jobs: int | None = -1,
    labels: str | os.PathLike[str] | None = None,
    label_column: str | None = None,
) -> DataSet:
    """Load a data set, by its name or by the path of a file of one's own.

    Parameters
    ----------
    name : one of `NAMES`; or a path: .npz (arrays X, y, n_train), .npy, .parquet, .csv
    folder : the data folder, looked in first; by default the one that the environment variable CGHASH_DATA names
    download : whether what is not here is downloaded to the cache (CGHASH_CACHE, else the system's place for caches)
    progress : whether progress is shown; or a function that is called with (words, done, total)
    n_jobs : threads for features of images, -1 for all cores
    labels : for a path: a second file, with one label an item
    label_column : for a path: the column of the labels

    Returns
    -------
    data : DataSet

    Raises
    ------
    MissingDataError : it is not here and cannot be fetched; says where to get it and where to put it

    Examples
    --------
    >>> load("digits")
    DataSet('digits', 1797 × 64, 10 classes)
    """
    if is_path(name):
        return load_own(name, labels, label_column)
    if name not in DATASETS:
        raise InvalidInputError(f"name must be one of {list(NAMES)}, or the path of a file, got {name!r}")
    if labels is not None or label_column is not None:
        raise InvalidInputError(f"labels and label_column must not be given for {name!r}, which has its own")
    entry = DATASETS[str(name)]
    if not entry.stem:
        return _digits(entry)
    with telling(progress) as tell:
        return _Search(entry, data_folder(folder), n_jobs, tell).found(download)


def describe_missing(name: str, reason: str = "it is not in the data folder or the cache") -> str:
    """One line on where to get a data set and where to put it.

    Examples
    --------
    >>> "zip.train.gz" in describe_missing("usps")
    True
    """
    entry = DATASETS[name]
    files = " and ".join(remote.name for remote in entry.files)
    return (
        f"data set {name!r}: {reason}. Get {files} from {entry.page} and put it, or the prepared {entry.stem}.npz, "
        f"into the data folder, which folder= or the environment variable {DATA} names; or let it be downloaded "
        f"to the cache {cache_folder()} (set by {CACHE})"
    )


def _digits(entry: Entry) -> DataSet:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return _data_set(entry, {"X": X.astype(np.float32), "y": y}, None)


class _Search:
    """The places where a data set may be, in their order."""

    def __init__(self, entry: Entry, folder: Path | None, n_jobs: int | None, tell: Tell) -> None:
        self.entry, self.folder, self.n_jobs, self.tell = entry, folder, n_jobs, tell
        self.cache = cache_folder()

    def found(self, download: bool) -> DataSet:
        file = f"{self.entry.stem}.npz"
        if self.folder is not None and (self.folder / file).is_file():
            return self._read(self.folder / file)
        if self.folder is not None and (home := self._home(self.folder)) is not None:
            fingerprint = _fingerprint(original_paths(self.entry, home))
            return self._made(home, self.cache / f"{self.entry.stem}-{fingerprint}.npz")
        if (self.cache / file).is_file():
            return self._read(self.cache / file)
        self._fetch(download)
        try:
            return self._made(self._fetched(), self.cache / file, expected=True)
        except FormatError:
            if download:
                self._forget_unchecked()
            raise

    @property
    def _kept(self) -> Path:
        """The cache's originals; data sets of the same images share them."""
        return self.cache / "originals" / self.entry.name.partition("-")[0]

    def _home(self, folder: Path) -> Path | None:
        """Originals in a folder; archives are unpacked in the cache."""
        home = home_of(self.entry, folder)
        packed = [folder / remote.name for remote in self.entry.files]
        if home is not None or not all(path.is_file() and path.name.endswith(_ARCHIVES) for path in packed):
            return home
        unpacked = self._kept / f"unpacked-{_fingerprint(packed)}"
        if not unpacked.is_dir():
            self._kept.mkdir(parents=True, exist_ok=True)
            self.tell(f"unpacking {self.entry.name}", 0, None)
            unpack_all(packed, unpacked)
        home = home_of(self.entry, unpacked)
        if home is None:
            raise FormatError(f"{packed[0]} must hold {', '.join(self.entry.originals)}, and does not")
        return home

    def _fetch(self, download: bool) -> None:
        """Bring the originals to the cache and check them; without the network where all are there."""
        if not download and not all(self._is_kept(remote) for remote in self.entry.files):
            raise MissingDataError(describe_missing(self.entry.name))
        check_needs(self.entry)
        try:
            for remote in self.entry.files:
                fetch(remote, self._kept, partial(self.tell, f"downloading {remote.name}"))
        except MissingDataError as error:
            raise MissingDataError(describe_missing(self.entry.name, str(error))) from error

    def _fetched(self) -> Path:
        """The cache's originals."""
        home = self._home(self._kept)
        if home is None:
            raise FormatError(f"{self._kept} must hold {', '.join(self.entry.originals)}, and does not")
        return home

    def _is_kept(self, remote: RemoteFile) -> bool:
        path = self._kept / remote.name
        return path.is_file() and is_right(path, remote)

    def _forget_unchecked(self) -> None:
        """Remove what was downloaded without a checksum and is not what it should be, so that the next call gets it."""
        for remote in self.entry.files:
            if remote.checksum is None:
                forget(remote, self._kept)
        for unpacked in self._kept.glob("unpacked-*"):
            shutil.rmtree(unpacked, ignore_errors=True)

    def _made(self, home: Path, kept: Path, expected: bool = False) -> DataSet:
        """The data set from its originals, and the prepared file for the next time."""
        if kept.is_file():
            return self._read(kept, home)
        check_needs(self.entry)
        words = f"features of {self.entry.name}"
        arrays = build(self.entry, home, self.n_jobs, partial(self.tell, words))
        if expected:
            _check_shape(self.entry, arrays["X"].shape, home)
        arrays["home"] = np.array(os.fspath(home.resolve()))
        kept.parent.mkdir(parents=True, exist_ok=True)
        with written_atomically(kept) as file:
            np.savez(file, allow_pickle=False, **arrays)
        return _data_set(self.entry, arrays, kept)

    def _read(self, path: Path, home: Path | None = None) -> DataSet:
        arrays = read_arrays(source_of(path))
        if home is not None:
            arrays["home"] = np.array(os.fspath(home))
        return _data_set(self.entry, arrays, path)


def _check_shape(entry: Entry, shape: tuple[int, ...], home: Path) -> None:
    """Whether all items came; publishers of image collections count a little differently."""
    n, d = entry.shape
    if shape[1] != d or abs(shape[0] - n) > (n // 100 if entry.images else 0):
        raise FormatError(f"{home} must give {n} × {d} features, got {shape}")


def _fingerprint(paths: list[Path]) -> str:
    """Of the names, sizes and times of files, and of all below folders."""
    seen = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            about = file.stat()
            seen.update(f"{file.resolve()}\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
    return seen.hexdigest()[:12]


def _data_set(entry: Entry, arrays: Arrays, path: Path | None) -> DataSet:
    place = str(path or entry.name)
    X, y = arrays.get("X"), arrays.get("y")
    if X is None or y is None or X.ndim != 2 or X.dtype.kind not in "buif" or len(y) != len(X) or not X.size:
        raise FormatError(f"{place} must hold items X (n, d) and one label y for each, got {_shapes(arrays)}")
    classes = tuple(arrays["class_names"].astype(str).tolist()) if "class_names" in arrays else entry.classes
    try:
        X = plain_numbers(X, place)
    except InvalidInputError as error:
        raise FormatError(str(error)) from error
    groups = arrays.get("group")
    return DataSet(
        entry.name,
        X,
        _checked_labels(y, len(classes), place),
        check_n_train(arrays["n_train"], len(X), place) if "n_train" in arrays else None,
        classes,
        None if groups is None else groups.astype(np.int64),
        f"{entry.citation}; {entry.page}; {entry.terms}",
        _painter(entry, arrays, X, path),
    )


def _checked_labels(y: Array, n_classes: int, place: str) -> Array:
    if y.ndim == 1 and y.dtype.kind in "iu" and y.min() >= 0 and y.max() < n_classes:
        return y.astype(np.int64)
    if y.ndim == 2 and y.shape[1] == n_classes and y.dtype.kind in "bui" and np.isin(y, (0, 1)).all():
        return y.astype(np.uint8)
    raise FormatError(f"{place} must hold labels of 0 to {n_classes - 1}, or 0 and 1 for each, got shape {y.shape}")


def _painter(entry: Entry, arrays: Arrays, X: Array, path: Path | None) -> Painter | None:
    if entry.pixels is not None and X.shape[1] == entry.pixels[0] * entry.pixels[1]:
        height, width, black, white = entry.pixels
        return Features(X, (height, width), black, white)
    if path is None:
        return None
    thumbnails = path.with_name(f"{entry.name.partition('-')[0]}_thumbs64.npz")
    for file, there in (path, "images" in arrays), (thumbnails, thumbnails.is_file()):
        if there:
            return ArrayInFile(file, len(X))
    names, home = arrays.get("filename"), Path(str(arrays.get("home", path.parent)))
    if names is not None and len(names) == len(X) and (home / str(names[0])).is_file():
        return ImageFiles(home, [str(name) for name in names])
    return None


def _shapes(arrays: Arrays) -> str:
    return ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
