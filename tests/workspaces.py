"""What the tests of workspaces and of their server share."""

from __future__ import annotations

import contextlib
import io
import sqlite3
import struct
import time
import zlib

TOKEN = "a token of many characters, ümläut"


def wait_for(condition, seconds=120.0):
    """What a condition gives once it holds."""
    last = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < last, "it did not happen in time"
        time.sleep(0.02)
    return found


def spoil(path, *statements):
    """Change a database as another program might; a statement may come with its values."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(*([statement] if isinstance(statement, str) else statement))


def image_file(image, kind="PNG", **options):
    """The bytes of a picture's file."""
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def chunk(kind, data):
    """A part of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, *, bits=8, more=b"", pixels=None):
    """A PNG that says how large it is; whole, black and small unless its pixels are given."""
    if pixels is None:
        packer, line = zlib.compressobj(9), bytes(1 + (width * bits + 7) // 8)
        data = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    else:
        data = zlib.compress(pixels, 9)
    header = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + more + chunk(b"IDAT", data) + chunk(b"IEND", b"")
