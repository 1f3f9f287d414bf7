"""Unix `compress` (.Z): the UCI archive keeps ISOLET so, and Python's library does not read it.

The file is 0x1f 0x9d, a byte of flags (the longest code's bits in the low five, 0x80 for a code that clears the
table), and codes of 9 bits and more, low bits first. Codes are written in groups of eight, and a change of their length
or a clear leaves the rest of the group unused.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...exceptions import FormatError

__all__ = ["MAGIC", "decompress"]

MAGIC = b"\x1f\x9d"
_CLEAR, _SHORTEST, _LONGEST = 256, 9, 16


def decompress(data: bytes, name: str, most: int = 1 << 28) -> bytes:
    """What a .Z file holds.

    Parameters
    ----------
    data : the file's bytes
    name : for messages
    most : bytes that it may hold

    Examples
    --------
    >>> decompress(bytes([0x1F, 0x9D, 0x90, 0x61, 0xC4, 0x04, 0x04]), "abab.Z")  # codes a, b, 257 (ab)
    b'abab'
    """
    if len(data) < 3 or data[:2] != MAGIC or not _SHORTEST <= data[2] & 31 <= _LONGEST:
        raise FormatError(f"{name} must be a file of the Unix program compress, got {data[:3]!r}")
    pieces: list[bytes] = []
    length = 0
    for piece in _pieces(data, name):
        pieces.append(piece)
        length += len(piece)
        if length > most:
            raise FormatError(f"{name} must hold at most {most} bytes, and holds more")
    return b"".join(pieces)


def _pieces(data: bytes, name: str) -> Iterator[bytes]:
    longest, clears = data[2] & 31, data[2] & 0x80
    table = [bytes([i]) for i in range(256)] + [b""] * bool(clears)
    n_first, previous = len(table), b""
    run, position, width = 24, 24, _SHORTEST  # bits: where codes of this width began, the next one, its length
    while True:
        if len(table) >= 1 << width and width < longest:
            run = position = _group_end(run, position, width)
            width += 1
        if position + width > 8 * len(data):
            return
        around = int.from_bytes(data[position >> 3 : (position >> 3) + 4], "little")
        code = around >> (position & 7) & (1 << width) - 1
        position += width
        if clears and code == _CLEAR:
            run = position = _group_end(run, position, width)
            del table[n_first:]
            width, previous = _SHORTEST, b""
            continue
        if code > len(table) or (code == len(table) and not previous):
            raise FormatError(f"{name} is damaged: code {code} at bit {position} is not in the table")
        piece = table[code] if code < len(table) else previous + previous[:1]
        yield piece
        if previous and len(table) < 1 << longest:
            table.append(previous + piece[:1])
        previous = piece


def _group_end(run: int, position: int, width: int) -> int:
    group = 8 * width
    return run - (run - position) // group * group
