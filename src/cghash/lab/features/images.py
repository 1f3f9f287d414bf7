"""Grey images from files; a defective file is an error that names it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import Bytes, Singles
from ...exceptions import FormatError, InvalidInputError, MissingDependencyError
from .parallel import each

__all__ = ["Image", "check_grey", "collect", "one_blas_thread", "read_grey", "require_pillow", "square", "thumbnails"]

Image = str | os.PathLike[str] | ArrayLike  # a file, or an (h, w) array
Result = TypeVar("Result")

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "PPM")  # decoders that are let near foreign bytes
MOST_PIXELS = 16_000_000  # decoded at once, in all threads together
_MOST_JPEG = 4 * MOST_PIXELS  # of a JPEG file, which can be decoded at half its size
_MOST_BYTES = 1 << 27  # of a file: so many pixels of 8 bytes, the most that is read, fit without compression
_MOST_SIDE = 65_535  # pixels, of a JPEG file; Pillow keeps an address for each line
_TILE_WIDTH, _TILE_LENGTH = 322, 323  # tags of TIFF
_MOST_SCANS = 100  # of a JPEG file; each passes over the whole picture, and progressive ones have about 10
_MOST_COMMENTS = 1000  # marks of comments in a PPM file of plain text, which Pillow skips slowly
_BLOCK = 1 << 20  # bytes that are looked through at a time
_LOOK_AGAIN = 0.002  # seconds


def read_grey(path: str | os.PathLike[str], *, largest: int | None = None) -> Bytes:
    """Read an image as grey levels of 0 to 255 (ITU-R 601 luma, as Pillow's mode L).

    Parameters
    ----------
    path : JPEG, PNG, BMP, GIF, TIFF or PPM
    largest : images whose longer side has more pixels are shrunk to it

    Returns
    -------
    image : (h, w) uint8
    """
    pillow = require_pillow()
    if not Path(path).is_file():
        raise FormatError(f"{path} must be an image file, but there is no such file")
    try:
        grey = decode(pillow, path, lambda image: image.convert("L"))
    except Exception as error:  # decoders of foreign bytes raise anything
        raise FormatError(f"{path} must be a whole image file: {error}") from error
    if largest is not None and max(grey.size) > largest:
        scale = largest / max(grey.size)
        grey = grey.resize([max(1, round(side * scale)) for side in grey.size], pillow.Resampling.BICUBIC)
    return np.array(grey, dtype=np.uint8)


class _Room:
    """So many pixels may be decoded at a time; whoever needs more waits, and whoever comes later waits behind.

    Python handles signals between calls: `pop` gives a place back, in a `finally` that no interrupt keeps from it.
    """

    def __init__(self, pixels: int) -> None:
        self._pixels = pixels
        self._places: dict[object, int] = {}  # pixels of who is inside and of who waits, in the order they came

    def run(self, pixels: int, work: Callable[[], Result]) -> Result:
        """What work gives, once there is room for so many pixels."""
        me = object()
        try:
            self._places[me] = pixels
            while self._up_to(me) > self._pixels:
                time.sleep(_LOOK_AGAIN)
            return work()
        finally:
            self._places.pop(me, None)

    def _up_to(self, me: object) -> int:
        """How many pixels this place takes, and those that came before it."""
        total = 0
        for place, pixels in list(self._places.items()):
            total += pixels
            if place is me:
                break
        return total


_room = _Room(MOST_PIXELS)


def decode(
    pillow: Any,
    file: str | os.PathLike[str] | IO[bytes],
    use: Callable[[Any], Result],
    formats: Sequence[str] = FORMATS,
    least: int | None = None,
) -> Result:
    """What `use` gives of a picture's first frame; of all that are in use at a time, `MOST_PIXELS` at most are decoded.

    Parameters
    ----------
    pillow : the module PIL.Image
    file : path, or file of bytes
    use : takes the decoded picture, which is closed afterwards
    formats : decoders that may read it
    least : pixels of a side that are enough: a JPEG file is decoded at a fraction of its size, but to its end
    """
    _check_bytes(file)
    with pillow.open(file, formats=formats) as image:
        size = image.size
        _check_header(image)
        _check_work(image)
        _shrink(image, least)
        width, height = image.size
        if width * height > MOST_PIXELS:
            raise ValueError(f"it claims {size[0]} × {size[1]} pixels; at most {MOST_PIXELS} are decoded")
        return _room.run(width * height, lambda: _loaded(image, use))


def _loaded(image: Any, use: Callable[[Any], Result]) -> Result:
    image.load()
    return use(image)


def _check_bytes(file: str | os.PathLike[str] | IO[bytes]) -> None:
    size = os.path.getsize(file) if isinstance(file, str | os.PathLike) else file.seek(0, os.SEEK_END)
    if size > _MOST_BYTES:
        raise ValueError(f"it has {size} bytes; at most {_MOST_BYTES} are read")
    if not isinstance(file, str | os.PathLike):
        file.seek(0)


def _check_header(image: Any) -> None:
    """Refuse what costs more memory than the size of the picture says."""
    width, height = image.size
    if not (1 <= width <= _MOST_SIDE and 1 <= height <= _MOST_SIDE):
        raise ValueError(f"it claims {width} × {height} pixels; at most {_MOST_SIDE} a side are read")
    tags = getattr(image, "tag_v2", {})
    tile = int(tags.get(_TILE_WIDTH, 1)) * int(tags.get(_TILE_LENGTH, 1))
    if tile > MOST_PIXELS:
        raise ValueError(f"it claims a tile of {tile} pixels; at most {MOST_PIXELS} are decoded")


def _check_work(image: Any) -> None:
    """Refuse what costs more time than its bytes and pixels do."""
    if image.format in ("JPEG", "MPO"):
        marks = [_scan_of(n) for n in range(1, 5)]
        if _count(image.fp, marks, _MOST_SCANS) > _MOST_SCANS:
            raise ValueError(f"it has more than {_MOST_SCANS} scans")
    if image.format == "PPM" and _is_plain(image.fp) and _count(image.fp, [b"#"], _MOST_COMMENTS) > _MOST_COMMENTS:
        raise ValueError(f"it has more than {_MOST_COMMENTS} comments")


def _scan_of(components: int) -> bytes:
    """The first bytes of a scan of a JPEG file."""
    return b"\xff\xda" + (6 + 2 * components).to_bytes(2) + bytes([components])


def _is_plain(file: IO[bytes]) -> bool:
    """Whether a PPM file is plain text."""
    after = file.tell()
    file.seek(0)
    plain = file.read(2) in (b"P1", b"P2", b"P3")
    file.seek(after)
    return plain


def _count(file: IO[bytes], marks: Sequence[bytes], most: int) -> int:
    """How often some marks of one length stand in a file; where that is more than enough, not all of them."""
    after, count, before = file.tell(), 0, b""
    file.seek(0)
    while count <= most and (block := before + file.read(_BLOCK)) != before:
        count += sum(block.count(mark) for mark in marks)
        before = block[len(block) - len(marks[0]) + 1 :]
    file.seek(after)
    return count


def _shrink(image: Any, least: int | None) -> None:
    """Let a JPEG file be decoded at a fraction of its size, where less is enough or all of it too much."""
    if image.format not in ("JPEG", "MPO"):
        return
    width, height = image.size
    whole = width * height <= MOST_PIXELS
    if not whole and (width * height > _MOST_JPEG or not _one_scan(image)):
        return
    sides = (width, height) if whole else (width // 2, height // 2)
    image.draft(None, tuple(side if least is None else min(side, least) for side in sides))


def _one_scan(image: Any) -> bool:
    """Whether a JPEG file is decoded line by line; of several scans all coefficients are kept at full size."""
    file, n = image.fp, image.layers
    after = file.tell()  # the header of the first scan
    header = _scan_of(n)
    file.seek(max(0, after - 8 - 2 * n))
    one = file.read(len(header)) == header and "progressive" not in image.info
    file.seek(after)
    return bool(one)


def thumbnails(paths: Sequence[str | os.PathLike[str]], side: int = 64, n_jobs: int | None = None) -> Bytes:
    """Grey thumbnails of image files: (n, side, side) uint8, the centre square of each.

    Parameters
    ----------
    paths : n image files
    side : pixels of a thumbnail's side
    n_jobs : threads
    """
    images = np.empty((len(paths), side, side), dtype=np.uint8)
    for i, image in enumerate(each(lambda path: square(read_grey(path), side), paths, n_jobs)):
        images[i] = image
    return images


def square(image: Bytes, side: int) -> Bytes:
    """The centre square of an image, at side × side pixels.

    >>> square(np.arange(6, dtype=np.uint8).reshape(2, 3), 2).tolist()
    [[0, 1], [3, 4]]
    """
    height, width = image.shape
    edge = min(height, width)
    top, left = (height - edge) // 2, (width - edge) // 2
    crop = np.ascontiguousarray(image[top : top + edge, left : left + edge])
    if edge == side:
        return crop
    pillow = require_pillow()
    return np.array(pillow.fromarray(crop).resize((side, side), pillow.Resampling.BICUBIC), dtype=np.uint8)


def check_grey(image: Image, *, largest: int | None = None) -> Bytes:
    """An image as (h, w) uint8: read where it is a path, checked where it is an array."""
    if isinstance(image, str | os.PathLike):
        return read_grey(image, largest=largest)
    grey = np.asarray(image)
    if grey.ndim != 2 or grey.dtype != np.uint8 or grey.size == 0:
        raise InvalidInputError(
            f"images must be paths or (h, w) arrays of uint8, got shape {grey.shape}, dtype {grey.dtype}"
        )
    return grey


def collect(rows: Iterable[Singles], n: int, width: int) -> Singles:
    """Rows of features as one (n, width) array, made as they are taken."""
    X = np.empty((n, width), dtype=np.float32)
    with one_blas_thread():
        for i, row in enumerate(rows):
            X[i] = row
    return X


def one_blas_thread() -> Any:
    """The matrices of one image are small: more threads only wait for each other."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


def require_pillow() -> Any:
    """The module PIL.Image, or a word on how to install it."""
    try:
        import PIL.Image
    except ImportError as error:
        raise MissingDependencyError(
            'reading images needs Pillow: pip install "cghash[lab]" (in a checkout: pip install ".[lab]")'
        ) from error
    return PIL.Image
