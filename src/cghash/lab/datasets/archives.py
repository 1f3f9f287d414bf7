"""Archives of originals, unpacked beside their place and renamed; nothing is written outside of it."""

from __future__ import annotations

import gzip
import os
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from ..._unfinished import unfinished
from ...exceptions import FormatError

__all__ = ["unpack_all"]

MOST = 1 << 34  # bytes that all members may claim together
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    ValueError,
    RuntimeError,  # an encrypted member
)


def unpack_all(archives: Sequence[Path], folder: Path) -> Path:
    """Unpack archives into one folder, which is there whole or not at all.

    Parameters
    ----------
    archives : .zip, .tar, .tar.gz
    folder : left as it is where it is there
    """
    with unfinished(folder, lambda beside: beside.mkdir(parents=True)) as beside:
        for archive in archives:
            _unpack(archive, beside)
        if not folder.is_dir():  # else another process was faster
            os.rename(beside, folder)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                _check_size(archive, sum(member.file_size for member in opened.infolist()))
                opened.extractall(folder)  # which drops drives, leading slashes and `..`
        else:
            with tarfile.open(archive, "r:gz" if archive.suffix == ".gz" else "r:") as tar:
                _check_size(archive, sum(member.size for member in tar))
                tar.extractall(folder, filter="data")
    except _DAMAGED as error:
        raise FormatError(f"{archive} must be a whole .zip or .tar archive: {error}") from error


def _check_size(archive: Path, claimed: int) -> None:
    if claimed > MOST:
        raise FormatError(f"{archive} must unpack to at most {MOST} bytes, claims {claimed}")
