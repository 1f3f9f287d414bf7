"""How inputs are changed: bytes, JSON values, arrays, and safetensors files whose checksum is made right again."""

from __future__ import annotations

import copy
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

NUMBERS = [0, 1, 127, 128, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
DEEP, LONG = "@deep@", "@long@"  # stand for lists in lists, and for a number of many digits
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**62, 2**63, 2**64, 10**40, -(10**40), 0.5, -0.0, 1e308, 1e-320,
    float("nan"), float("inf"), float("-inf"), "", "x", "0", "Infinity", "null", "\0", "\ud800", "../../etc/passwd",
    "a" * 5000, [], {}, [[]], [None], [0], ["x"], {"x": 1}, {"": None}, [0] * 300, DEEP, LONG,
]  # fmt: skip


def bytes_changed(data: bytes, rng: random.Random, head: int = 400) -> bytes:
    """Some bytes changed, most of them where headers are, or a piece cut out, doubled or moved."""
    content = bytearray(data or b"\0")
    for _ in range(rng.randint(1, 4)):
        at = rng.choice([rng.randrange(min(head, len(content))), rng.randrange(len(content))])
        kind = rng.randrange(6)
        if kind == 0:
            content[at] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        elif kind == 1:
            content[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            layout = rng.choice("<BHIQ"[1:])
            content[at : at + struct.calcsize("<" + layout)] = struct.pack(
                "<" + layout, rng.choice(NUMBERS) % (1 << 8 * struct.calcsize("<" + layout))
            )
        elif kind == 3:
            del content[at : at + rng.choice([1, 8, 100, 4096])]
            content = content or bytearray(1)
        elif kind == 4:
            content[at:at] = content[rng.randrange(len(content)) :][: rng.choice([1, 8, 80, 4096])]
        else:
            del content[rng.choice([at, len(content) - 1 - at % 64]) % len(content) + 1 :]
    return bytes(content)


def value_changed(value: Any, rng: random.Random) -> Any:
    """A JSON value with one of its parts replaced, dropped, doubled, renamed or moved."""
    try:
        value = copy.deepcopy(value)
    except RecursionError:  # changed before
        return rng.choice(ODD)
    places = list(_places(value))
    if not places:
        return rng.choice(ODD)
    holder, key = rng.choice(places)
    kind = rng.randrange(8)
    if kind < 4:
        holder[key] = rng.choice(ODD)
    elif kind == 4:
        del holder[key]
    elif kind == 5:
        other, its = rng.choice(places)
        holder[key] = copy.deepcopy(other[its])
    elif kind == 6 and isinstance(holder, dict):
        holder[rng.choice(["x", "", "__init__", str(key) + "_", *map(str, holder)])] = holder.pop(key)
    elif isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(holder[key])] * rng.choice([1, 3, 50])
    else:
        holder[key] = near(holder[key], rng)
    return value


def near(value: Any, rng: random.Random) -> Any:
    """Another value of the same type, or one that looks like it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, value * 1000, float(value), str(value), 10**40])
    if isinstance(value, float):
        return rng.choice([value * 2, -value, str(value), int(value) if abs(value) < 1e300 else 0, float("nan")])
    if isinstance(value, str):
        return rng.choice([value[:-1], value * 2, value.upper(), value + "\0", [value]])
    return [value]


def _places(value: Any, deep: int = 12) -> Any:
    """(holder, key) of the parts of a JSON value; large lists show some of their own."""
    if isinstance(value, dict | list) and deep:
        for key, part in value.items() if isinstance(value, dict) else enumerate(value[:20]):
            yield value, key
            yield from _places(part, deep - 1)


def as_json(value: Any, rng: random.Random) -> str:
    """The text of a JSON value; sometimes a name comes twice."""
    text = json.dumps(value)
    if isinstance(value, dict) and value and rng.random() < 0.05:
        text = "{" + f"{json.dumps(rng.choice(list(value)))}: {json.dumps(rng.choice(ODD))}, " + text[1:]
    deep = 200_000 if rng.random() < 0.5 else 900
    return text.replace(f'"{DEEP}"', "[" * deep + "]" * deep).replace(f'"{LONG}"', "9" * 5000)


def array_changed(a: Any, rng: random.Random) -> Any:
    """An array of another type, shape or content."""
    a = np.array(a)
    kind = rng.randrange(9)
    if kind == 0:
        kinds = [np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8, np.int8, np.uint64, np.bool_]
        with np.errstate(all="ignore"):
            return a.astype(rng.choice(kinds))
    if kind == 1:
        return rng.choice([a[:-1], a[:0], np.repeat(a, 2, axis=0)]) if a.ndim else a[None]
    if kind == 2:
        return rng.choice([a.ravel(), a[..., None], a[None], a.T, a.ravel()[:1].reshape(()) if a.size else a])
    if kind == 3 and a.ndim > 1:
        return a[..., :-1]
    if not a.size:
        return np.zeros(rng.choice([(1,), (2, 2), ()]))
    flat = a.reshape(-1)
    at = rng.randrange(flat.size)
    with np.errstate(all="ignore"):
        if a.dtype.kind == "f":
            wrong = rng.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 1e-320, 1e30])
        elif a.dtype.kind in "iu":
            limits = np.iinfo(a.dtype)
            wrong = rng.choice([limits.min, limits.max, 0, 1, rng.randrange(limits.min, limits.max)])
        else:
            return a
        flat[at if kind < 8 else slice(None)] = wrong
    return a


def safetensors_changed(data: bytes, rng: random.Random) -> bytes:
    """A file of ours with other arrays or another description, and the checksum of these; or just other bytes."""
    if rng.random() < 0.2:
        return bytes_changed(data, rng)
    if rng.random() < 0.1:
        return _types_changed(data, rng)
    from safetensors import SafetensorError
    from safetensors.numpy import load, save

    from cghash import storage

    try:
        arrays = dict(load(data))
        length = struct.unpack("<Q", data[:8])[0]
        metadata = dict(json.loads(data[8 : 8 + length]).get("__metadata__", {}))
        about = json.loads(metadata["cghash"])
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError, RecursionError, struct.error):
        return bytes_changed(data, rng)
    if arrays and rng.random() < 0.4:
        name = rng.choice(list(arrays))
        kind = rng.randrange(8)
        if kind == 0:
            del arrays[name]
        elif kind == 1:
            arrays[rng.choice(["x", "x_", name + "_", "n_bits_", "functions.x"])] = arrays.pop(name)
        elif kind == 2:
            arrays[rng.choice(list(arrays))] = arrays[name]
        else:
            arrays[name] = array_changed(arrays[name], rng)
    else:
        about = value_changed(about, rng)
    text = as_json(about, rng)
    try:
        plain = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
        total = storage.checksum(text, plain)
        return bytes(save(plain, metadata={"cghash": text, "checksum": total}))
    except (SafetensorError, ValueError, KeyError):
        return bytes_changed(data, rng)


def _types_changed(data: bytes, rng: random.Random) -> bytes:
    """Another type of the same size for an array of a safetensors file."""
    alike = [["F64", "I64", "U64", "C64"], ["F32", "I32", "U32"], ["F16", "BF16", "I16", "U16"],
             ["U8", "I8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0"]]  # fmt: skip
    kinds = rng.choice(alike)
    old, new = (f'"dtype":"{kind}"'.encode() for kind in (rng.choice(kinds), rng.choice(kinds)))
    length = struct.unpack("<Q", data[:8].ljust(8, b"\0"))[0]
    header = data[8 : 8 + length].replace(old, new, 1)
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


def json_changed(data: bytes, rng: random.Random) -> bytes:
    """A JSON text with another value, or other bytes."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return bytes_changed(data, rng)
    if rng.random() < 0.2:
        return bytes_changed(data, rng)
    return as_json(value_changed(value, rng), rng).encode("utf-8", "surrogatepass")


def lines_changed(data: bytes, rng: random.Random) -> bytes:
    """Lines of JSON, one of them changed, doubled or cut."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    kind = rng.randrange(6)
    if kind < 3:
        lines[at] = json_changed(lines[at], rng)
    elif kind == 3:
        lines[at:at] = [lines[at]] * rng.choice([1, 100])
    elif kind == 4:
        del lines[at]
    else:
        return bytes_changed(data, rng)
    return b"\n".join(lines)


def text_changed(words: list[str]) -> Callable[[bytes, random.Random], bytes]:
    """Changes of a text: these words and odd characters come in, lines and cells are doubled or go."""
    odd = [*words, "", "\0", "\r", '"', "'", ",", "\t", ";", "nan", "inf", "-1", "9" * 400, "1e999", "\ufeff", "é"]

    def changed(data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.2:
            return bytes_changed(data, rng)
        separator = rng.choice([b"\n", b"\n", b",", b"=", b" "])
        parts = data.split(separator)
        at = rng.randrange(len(parts))
        kind = rng.randrange(5)
        if kind < 2:
            parts[at] = rng.choice(odd).encode()
        elif kind == 2:
            del parts[at]
        elif kind == 3:
            parts[at:at] = [rng.choice(parts)] * rng.choice([1, 2, 200])
        else:
            cut = rng.randrange(len(parts[at]) + 1)
            parts[at] = parts[at][:cut] + rng.choice(odd).encode() + parts[at][cut:]
        return separator.join(parts)

    return changed


def npy_changed(data: bytes, rng: random.Random) -> bytes:
    """An .npy file with another header over the same numbers, or other bytes."""
    if rng.random() < 0.4 or data[:6] != b"\x93NUMPY" or len(data) < 12:
        return bytes_changed(data, rng, head=128)
    length = struct.unpack("<H", data[8:10])[0]
    header, rest = data[10 : 10 + length].decode("latin1").strip(), data[10 + length :]
    shapes = [
        "()", "(0,)", "(1,)", "(-1,)", "(-3, -2)", "(2, 3)", f"({2**60},)", f"({2**62}, 4)", f"({10**40},)", "(1.5,)",
        "('a',)", "(True, 2)", "(((),),)", "(4294967296, 4294967296)", "(1,) * 60", str((1,) * 70),
    ]  # fmt: skip
    kinds = [
        "'<f8'", "'>f4'", "'|O'", "'<U5'", "'<U4294967295'", "'|S0'", "'|V9'", "'<M8[ns]'", "'|b1'", "'<c16'", "'<f2'",
        "[('a', '<f8'), ('b', '|O')]", "[('a', '<f8')]", "'<f99'", "''", "None", "'<i8', '<i4'",
    ]  # fmt: skip
    orders = ["True", "False", "0"]
    parts = {"descr": rng.choice(kinds), "shape": rng.choice(shapes), "fortran_order": rng.choice(orders)}
    key = rng.choice(list(parts))
    before, _, after = header.partition(f"'{key}':")
    if not after:
        return bytes_changed(data, rng)
    ends = {"descr": ", 'fortran", "shape": ", }", "fortran_order": ", 'shape"}[key]
    tail = after[after.find(ends) :] if ends in after else "}"
    header = f"{before}'{key}': {parts[key]}{tail}"
    if rng.random() < 0.1:
        header = rng.choice(["{" * 500, "(" * 5000, header * 2, "", "[]", "{'descr': 1}", "-" * 9000 + "1"])
    text = header.encode("latin1") + b"\n"
    return data[:8] + struct.pack("<H", len(text) % 65536) + text + rest


def zip_changed(data: bytes, rng: random.Random) -> bytes:
    """An .npz file with a member changed, doubled, renamed or another; or other bytes, not of the members alone."""
    if rng.random() < 0.4:
        return bytes_changed(data, rng, head=len(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except Exception:
        return bytes_changed(data, rng)
    kind = rng.randrange(6)
    if not members or kind == 0:
        content = rng.choice(members)[1] if members else b""
        members.append((rng.choice(["X.npy", "y.npy", "id.npy", "", "x", "../x.npy", "X"]), content))
    else:
        at = rng.randrange(len(members))
        name, content = members[at]
        if kind == 1:
            members[at] = rng.choice(["X.npy", "y.npy", "", "x/", "X"]), content
        elif kind == 2:
            del members[at]
        else:
            members[at] = name, npy_changed(content, rng)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name, content in members:
            archive.writestr(name or "a", content)
    return made.getvalue()
