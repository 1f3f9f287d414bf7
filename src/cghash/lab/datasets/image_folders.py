"""Image collections in their original folders: 15-Scene, LabelMe-12-50k, PASCAL VOC 2007.

What is assumed of each, beside its layout:

- **15-Scene** has a folder of images for each class; folders `train` and `test` of such folders keep that split, else
  the first 100 images of each class, by name, lead, as many as is customary. Classes are called as in `registry`
  whether their folders are called `MITcoast`, `CALsuburb`, `PARoffice` or `Coast`; other folders keep their names.
- **LabelMe-12-50k** gives each image twelve values of -1 to 1, and 1 for the object in its middle. An image without a 1
  is clutter, whose twelve values tell what else may be seen, and is left out. One with several has the first. The
  values of `annotation.txt` are rounded to two decimals; `annotation.bin` (float32, little-endian, in the order of
  the lines) has them in full, and is taken where it is there, as the authors advise.
- **VOC 2007** marks objects as difficult, and its own evaluation does not count these. They are counted here only in an
  image that has no other, so that every image has a label. The rows of trainval lead those of test.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._arrays import Array, Floats, Singles
from ...exceptions import FormatError
from .registry import LABELME, SCENES, VOC

__all__ = ["ImageFolder", "read_labelme", "read_scenes", "read_voc"]

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}
SCENES_TRAIN = 100  # images of a class
_LONGEST = 1 << 20  # bytes of an annotation


@dataclass(frozen=True)
class ImageFolder:
    """Image files with labels."""

    folder: Path
    names: list[str]  # below the folder
    y: Array  # (n,) or (n, L)
    n_train: int | None
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse links that lead out of the folder: the images are shown in reports."""
        root = os.path.realpath(self.folder)
        folders = {path.parent for path in self.paths}
        links = [path for path in (*folders, *self.paths) if path in folders or path.is_symlink()]
        out = [path for path in links if not Path(os.path.realpath(path)).is_relative_to(root)]
        if out:
            raise FormatError(
                f"{self.folder} must hold its images itself, got {out[0]}, a link that leads out of it; copy the "
                "images, or make the whole folder a link"
            )

    @property
    def paths(self) -> list[Path]:
        return [self.folder / name for name in self.names]


def read_scenes(folder: Path) -> ImageFolder:
    """Images of 15-Scene, from a folder that holds one folder a class."""
    parts = [folder / part for part in ("train", "test")]
    halves = parts if all(part.is_dir() for part in parts) else [folder]
    found = [sorted(_images_by_class(half)) for half in halves]
    classes = _scene_classes({name for half in found for name, _ in half}, folder)
    if len(halves) == 1:
        found = _parted(found[0])
    rows = [(classes.index(scene_name(name)), path) for half in found for name, path in half]
    return ImageFolder(
        folder,
        [path.relative_to(folder).as_posix() for _, path in rows],
        np.array([label for label, _ in rows], dtype=np.int64),
        len(found[0]) if len(found) > 1 else None,
        classes,
    )


def scene_name(folder: str) -> str:
    """A class's name from its folder's.

    >>> scene_name("MITinsidecity"), scene_name("store"), scene_name("harbour")
    ('InsideCity', 'Store', 'harbour')
    """
    plain = re.sub("^(MIT|CAL|PAR)", "", folder).lower()
    return next((name for name in SCENES if name.lower() == plain), folder)


def _images_by_class(folder: Path) -> Iterator[tuple[str, Path]]:
    for below in folder.iterdir():
        if below.is_dir():
            yield from ((below.name, path) for path in below.iterdir() if path.suffix.lower() in SUFFIXES)


def _scene_classes(folders: set[str], folder: Path) -> tuple[str, ...]:
    names = {scene_name(name) for name in folders}
    if len(names) < 2:
        raise FormatError(f"{folder} must hold a folder of images for each of several classes, got {sorted(names)}")
    return SCENES if names <= set(SCENES) else tuple(sorted(names))


def _parted(rows: list[tuple[str, Path]]) -> list[list[tuple[str, Path]]]:
    """The first images of each class, and the others; all in one where a class has no others."""
    place: dict[str, int] = {}
    first: list[tuple[str, Path]] = []
    rest: list[tuple[str, Path]] = []
    for name, path in rows:
        place[name] = place.get(name, 0) + 1
        (first if place[name] <= SCENES_TRAIN else rest).append((name, path))
    return [first, rest] if min(place.values()) > SCENES_TRAIN else [rows]


def read_labelme(folder: Path) -> ImageFolder:
    """Images of LabelMe-12-50k with an object in the middle, from the folder of its `train` and `test`."""
    names: list[str] = []
    labels: list[int] = []
    ends = []
    for part in "train", "test":
        images = {path.stem: path for path in sorted((folder / part).rglob("*.jpg"))}
        for stem, label in _labelme_lines(folder, part):
            if stem not in images:
                raise FormatError(f"{folder / part} must hold an image {stem}.jpg, which its annotation names")
            names.append(images[stem].relative_to(folder).as_posix())
            labels.append(label)
        ends.append(len(names))
    if not ends[0] or ends[0] == ends[1]:
        raise FormatError(f"{folder} must hold images with an object in both train and test, got {ends}")
    return ImageFolder(folder, names, np.array(labels, dtype=np.int64), ends[0], LABELME)


def _labelme_lines(folder: Path, part: str) -> Iterator[tuple[str, int]]:
    """The file's stem and the object of each image that has one."""
    here, beside = folder / part / "annotation.txt", folder / f"annotation-{part}.txt"
    path = here if here.is_file() else beside
    stems, rounded = _labelme_table(path)
    exact = _labelme_exact(path.with_suffix(".bin"), len(stems))
    for stem, values in zip(stems, rounded if exact is None else exact, strict=True):
        if values.max() == 1:
            yield stem, int(values.argmax())


def _labelme_table(path: Path) -> tuple[list[str], Floats]:
    stems, rows = [], []
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
        stem, *cells = line.split() or [""]
        if not stem:
            continue
        try:
            values = np.array(cells, dtype=np.float64)
        except ValueError:
            values = np.empty(0)
        if len(values) != len(LABELME) or not np.all(np.abs(values) <= 1):
            raise FormatError(f"{path}, line {number}: must be a name and 12 numbers of -1 to 1, got {line[:80]!r}")
        stems.append(stem)
        rows.append(values)
    return stems, np.array(rows).reshape(-1, len(LABELME))


def _labelme_exact(path: Path, n: int) -> Singles | None:
    if not path.is_file():
        return None
    values = np.frombuffer(path.read_bytes()[: path.stat().st_size // 4 * 4], "<f4")
    if path.stat().st_size != 4 * n * len(LABELME) or not np.all(np.abs(values) <= 1):
        raise FormatError(f"{path} must hold 12 numbers of -1 to 1 for each of {n} images, as annotation.txt does")
    return values.reshape(n, len(LABELME))


def read_voc(folder: Path) -> ImageFolder:
    """Images of PASCAL VOC 2007, from its folder VOC2007, with labels (n, 20)."""
    stems = [_voc_stems(folder / "ImageSets" / "Main" / f"{part}.txt") for part in ("trainval", "test")]
    both = [*stems[0], *stems[1]]
    y = np.zeros((len(both), len(VOC)), dtype=np.uint8)
    for row, stem in enumerate(both):
        y[row, _voc_objects(folder / "Annotations" / f"{stem}.xml")] = 1
    return ImageFolder(folder, [f"JPEGImages/{stem}.jpg" for stem in both], y, len(stems[0]), VOC)


def _voc_stems(path: Path) -> list[str]:
    stems = path.read_text("utf-8", errors="replace").split()
    wrong = [stem for stem in stems if not re.fullmatch(r"[A-Za-z0-9_]+", stem)]
    if wrong or not stems:
        raise FormatError(f"{path} must hold a name of letters and digits a line, got {(wrong or ['nothing'])[0]!r}")
    return stems


def _voc_objects(path: Path) -> list[int]:
    """The classes of an image's objects that are not difficult; of all where all are."""
    root = _parsed(path)
    found = [(o.findtext("name", "").strip(), o.findtext("difficult", "0").strip()) for o in root.iter("object")]
    unknown = [name for name, _ in found if name not in VOC]
    if unknown or not found:
        raise FormatError(f"{path} must hold objects of the 20 classes, got {(unknown or ['none'])[0]!r}")
    easy = [name for name, difficult in found if difficult != "1"]
    return sorted({VOC.index(name) for name in easy or [name for name, _ in found]})


def _parsed(path: Path) -> ElementTree.Element:
    """An XML file without a document type, whose entities could blow up."""
    try:
        with open(path, "rb") as file:
            content = file.read(_LONGEST + 1)
    except FileNotFoundError as error:
        raise FormatError(f"{path} must be there: an image set names it") from error
    if len(content) > _LONGEST:
        raise FormatError(f"{path} must have at most {_LONGEST} bytes")
    try:
        text = content.decode("utf-8")  # in other encodings a document type could hide
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise ValueError("a document type is not accepted")
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise FormatError(f"{path} must be an XML annotation: {error}") from error
