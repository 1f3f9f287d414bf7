"""Files from their public sources: resumed where they stopped, checked, and renamed when whole.

A transfer goes to `<name>.part`. A later call goes on from its end, with the server's word (If-Range) that the file is
still the same. A file with a published checksum is checked against it. One without is trusted when it is first seen:
its SHA-256 is kept in `<name>.sha256`, and what lies there later, or comes again, must still have it.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._unfinished import is_of_the_disk, naming
from ...exceptions import FormatError, MissingDataError
from ...storage import write_atomically

__all__ = ["RemoteFile", "fetch", "forget", "is_right"]

Progress = Callable[[int, int | None], None]  # bytes done, of how many

ATTEMPTS, TIMEOUT = 5, 30.0  # in a row without a byte; seconds without one
_CHUNK = 1 << 18
_SLACK = 4  # times the size that is known about: more is not what was asked for
_NOBODY = (socket.gaierror, ConnectionRefusedError)  # no such host, or nobody there: waiting seconds does not help
_AGAIN = (408, 429, *range(500, 600))  # answers that may be others the next time


@dataclass(frozen=True)
class RemoteFile:
    """A file at its public source.

    Attributes
    ----------
    name : what it is called here
    url : where it is
    megabytes : about how large it is
    checksum : "md5:…" or "sha256:…" as its publisher gives it; None where none is published
    """

    name: str
    url: str
    megabytes: float
    checksum: str | None = None

    @property
    def most(self) -> int:
        """Bytes that are taken at most."""
        return int(_SLACK * self.megabytes * 1e6) + (1 << 20)


def fetch(remote: RemoteFile, folder: Path, progress: Progress | None = None, *, pause: float = 1.0) -> Path:
    """The file in the folder; downloaded where it is not there, or not right.

    Parameters
    ----------
    remote : what to fetch
    folder : made where it is not there
    progress : is called with (bytes done, bytes in all or None)
    pause : seconds before the second attempt; doubled before each further one

    Raises
    ------
    MissingDataError : the source cannot be reached, or does not have it; what came is kept for the next call
    FormatError : what came does not have the checksum that was published, or first seen, and was removed
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / remote.name
    with _alone(folder / f".{remote.name}.lock"):
        if not (target.is_file() and is_right(target, remote)):
            part = folder / f"{remote.name}.part"
            _download(remote, part, progress or (lambda done, total: None), pause)
            _accept(part, target, remote)
    return target


def is_right(path: Path, remote: RemoteFile) -> bool:
    """Whether a file has the published checksum, or where there is none, the one that was seen first."""
    expected = remote.checksum or _first(path)
    return expected is None or _checksum(path, expected.partition(":")[0]) == expected


def forget(remote: RemoteFile, folder: Path) -> None:
    """Remove a file and the checksum that was first seen."""
    (folder / remote.name).unlink(missing_ok=True)
    _seen(folder / remote.name).unlink(missing_ok=True)


def _accept(part: Path, target: Path, remote: RemoteFile) -> None:
    expected = remote.checksum or _first(target)
    found = _checksum(part, expected.partition(":")[0] if expected else "sha256")
    if expected and found != expected:
        _forget(part)
        known = "" if remote.checksum else f": it is not what came first; if it is right, remove {_seen(target)}"
        raise FormatError(f"{remote.url} must have the checksum {expected}, got {found}; it was not kept{known}")
    if not expected:
        write_atomically(_seen(target), f"{found.partition(':')[2]}  {target.name}\n".encode())
    os.replace(part, target)
    _forget(part)


def _download(remote: RemoteFile, part: Path, progress: Progress, pause: float) -> None:
    failures, reason = 0, ""
    while failures < ATTEMPTS:
        if failures:
            time.sleep(pause * 2 ** (failures - 1))
        before = _size(part)
        try:
            _transfer(remote, part, progress)
            return
        except FormatError:
            _forget(part)
            raise
        except urllib.error.HTTPError as error:
            reason = f"answered {error.code} {error.reason}"
            error.close()
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and before:
                _forget(part)  # longer than the file is now
            elif error.code not in _AGAIN:
                break
        except (OSError, http.client.HTTPException) as error:
            if is_of_the_disk(error):
                raise
            why = getattr(error, "reason", error)
            reason = str(why) or type(error).__name__
            if isinstance(why, _NOBODY):
                break
        failures = 1 if _size(part) > before else failures + 1
    kept = f"; {_size(part)} bytes are kept, and the next call goes on from there" if _size(part) else ""
    raise MissingDataError(f"{remote.url} could not be fetched: {reason}{kept}")


def _transfer(remote: RemoteFile, part: Path, progress: Progress) -> None:
    """One request: the rest of the file, or all of it."""
    have, headers = _resumable(remote, part)
    request = urllib.request.Request(remote.url, headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        start, total = _extent(response, have)
        if total is not None and total > remote.most:
            raise FormatError(f"{remote.url} must have about {remote.megabytes:g} MB, got {total / 1e6:.0f} MB")
        if not start:
            _forget(part)
            _tag(part).write_text(response.headers.get("ETag", ""))
        with naming(part), open(part, "ab") as file:
            for chunk in iter(lambda: response.read1(_CHUNK), b""):
                file.write(chunk)
                file.flush()  # so that it is there when the process is killed
                progress(file.tell(), total)
                if file.tell() > (remote.most if total is None else total):
                    raise FormatError(f"{remote.url} must have {total or remote.most} bytes at most, and sent more")
    if total is not None and _size(part) < total:
        raise ConnectionError(f"the transfer ended after {_size(part)} of {total} bytes")


def _resumable(remote: RemoteFile, part: Path) -> tuple[int, dict[str, str]]:
    """How many bytes to go on from, and the request's headers; 0 where nothing tells whether the file is the same."""
    headers = {"User-Agent": "cghash", "Accept-Encoding": "identity"}
    have = _size(part)
    tag = _tag(part).read_text() if _tag(part).is_file() else ""
    strong = tag.startswith('"')
    if not have or not (strong or remote.checksum):
        return 0, headers
    return have, headers | {"Range": f"bytes={have}-"} | ({"If-Range": tag} if strong else {})


def _extent(response: Any, have: int) -> tuple[int, int | None]:
    """Where the answer begins in the file, and how long the file is."""
    length = response.headers.get("Content-Length", "")
    rest = int(length) if length.isdecimal() else None
    began = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    start = have if response.status == http.HTTPStatus.PARTIAL_CONTENT and began == str(have) else 0
    if response.status == http.HTTPStatus.PARTIAL_CONTENT and not start:
        raise ConnectionError(f"bytes from {have} on were asked for, got {response.headers.get('Content-Range')!r}")
    return start, None if rest is None else start + rest


def _checksum(path: Path, kind: str) -> str:
    """ "md5:…" or "sha256:…" of a file."""
    with open(path, "rb") as file:
        return f"{kind}:{hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()}"


def _seen(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _first(path: Path) -> str | None:
    """The checksum that was first seen of a file without a published one."""
    words = _seen(path).read_text().split() if _seen(path).is_file() else []
    return f"sha256:{words[0]}" if words else None


def _tag(part: Path) -> Path:
    return part.with_name(f"{part.name}.tag")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag(part).unlink(missing_ok=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock file, where the system has locks: a second process waits, and then finds the file."""
    with open(path, "ab") as file:
        try:
            import fcntl
        except ImportError:
            yield
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
