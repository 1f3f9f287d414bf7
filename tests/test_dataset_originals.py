"""The originals' formats, in small files that the tests write, damaged ones, and random bytes."""

import gzip
import io
import os
import shutil
import struct
import subprocess
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cghash.exceptions import FormatError
from cghash.lab.datasets.archives import unpack_all
from cghash.lab.datasets.original_formats import decompress, read_cifar, read_idx, read_isolet, read_usps

FOLDER = os.environ.get("CGHASH_DATA")
RNG = np.random.default_rng(0)
packed = pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def written(folder, content, name="file"):
    path = folder / name
    path.write_bytes(content)
    return path


def compressed(data, longest=16, block=True):
    """LZW as Unix compress writes it, without ever clearing the table unless it is full."""
    out, bits, n_bits, width, group = bytearray(), 0, 0, 9, 0
    first = 257 if block else 256
    table = {bytes([i]): i for i in range(256)}
    following = first

    def put(code):
        nonlocal bits, n_bits, group
        bits |= code << n_bits
        n_bits += width
        group += 1

    def fill():
        nonlocal bits, n_bits, group
        n_bits += width * (-group % 8)
        out.extend(bits.to_bytes(n_bits // 8, "little"))
        bits = n_bits = group = 0

    current = b""
    for i in range(len(data)):
        longer = current + data[i : i + 1]
        if longer in table:
            current = longer
            continue
        put(table[current])
        if following < 1 << longest:
            table[longer] = following
            following += 1
            if following - 1 >= 1 << width and width < longest:  # the reader is one entry behind
                fill()
                width += 1
        elif block:
            put(256)
            fill()
            table, following, width = {bytes([i]): i for i in range(256)}, first, 9
        current = data[i : i + 1]
    if current:
        put(table[current])
    out.extend(bits.to_bytes(-(-n_bits // 8), "little"))
    return bytes([0x1F, 0x9D, longest | 0x80 * block]) + bytes(out)


@packed
def test_idx_images_and_labels_are_read_as_written(tmp_path, pack):
    for array in RNG.integers(0, 256, (5, 4, 3), dtype=np.uint8), np.arange(7, dtype=np.uint8):
        path = written(tmp_path, pack(idx(array)))
        assert np.array_equal(read_idx(path, array.ndim), array)


WRONG_IDX = {
    "nothing": b"",
    "a short header": idx(np.zeros((2, 2), np.uint8))[:7],
    "another magic": b"\1" + idx(np.zeros((2, 2), np.uint8))[1:],
    "another type": b"\0\0\x0d\2" + idx(np.zeros((2, 2), np.uint8))[4:],
    "another dimension": idx(np.zeros(2, np.uint8)),
    "fewer bytes": idx(np.zeros((2, 2), np.uint8))[:-1],
    "more bytes": idx(np.zeros((2, 2), np.uint8)) + b"\0",
    "a huge claim": struct.pack(">HBB2I", 0, 8, 2, 2**32 - 1, 2**32 - 1),
}


@packed
@pytest.mark.parametrize("content", WRONG_IDX.values(), ids=WRONG_IDX)
def test_idx_file_of(tmp_path, content, pack):
    with pytest.raises(FormatError, match="file"):
        read_idx(written(tmp_path, pack(content)), 2)


def test_truncated_gzip_is_an_error(tmp_path):
    content = gzip.compress(idx(RNG.integers(0, 256, (9, 28, 28), dtype=np.uint8)))
    for end in 3, 15, len(content) // 2, len(content) - 1:
        with pytest.raises(FormatError, match="truncated"):
            read_idx(written(tmp_path, content[:end]), 3)


@packed
def test_usps_lines_are_a_digit_and_256_levels(tmp_path, pack):
    levels = np.round(RNG.uniform(-1, 1, (4, 256)), 3)
    text = "".join(
        f"{digit}.0000 {' '.join(map(str, row))} \n" for digit, row in zip((6, 5, 0, 9), levels, strict=True)
    )
    X, y = read_usps(written(tmp_path, pack(text.encode())))
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, levels.astype(np.float32))
    assert y.tolist() == [6, 5, 0, 9]


@pytest.mark.parametrize("first", ["10", "-1", "2.5", "x", "nan", ""])
def test_usps_line_with_a_wrong_digit_is_an_error(tmp_path, first):
    with pytest.raises(FormatError, match="file"):
        read_usps(written(tmp_path, f"{first} {'0 ' * 256}\n".encode()))


@pytest.mark.parametrize("level", ["1.5", "inf", "é"])
def test_usps_line_with_a_wrong_level_is_an_error(tmp_path, level):
    with pytest.raises(FormatError, match="file"):
        read_usps(written(tmp_path, f"3 {level} {'0 ' * 255}\n".encode()))


def isolet_text(n):
    features = np.round(RNG.uniform(-1, 1, (n, 617)), 4)
    letters = RNG.integers(1, 27, n)
    text = "".join(f"{', '.join(f'{v:.4f}' for v in row)}, {k}.\n" for row, k in zip(features, letters, strict=True))
    return features, letters, text.encode()


@pytest.mark.parametrize("pack", [bytes, compressed], ids=["plain", "compressed"])
def test_isolet_lines_are_617_features_and_a_letter(tmp_path, pack):
    features, letters, text = isolet_text(20)
    X, y = read_isolet(written(tmp_path, pack(text)))
    np.testing.assert_array_equal(X, features.astype(np.float32))
    np.testing.assert_array_equal(y, letters - 1)


def test_isolet_cut_in_a_line_is_an_error(tmp_path):
    _, _, text = isolet_text(3)
    with pytest.raises(FormatError, match="618 numbers"):
        read_isolet(written(tmp_path, text[: len(text) // 2]))


@packed
def test_cifar_records_are_a_label_and_three_planes(tmp_path, pack):
    images = RNG.integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    content = b"".join(
        bytes([k]) + image.transpose(2, 0, 1).tobytes() for k, image in zip((9, 0, 4), images, strict=True)
    )
    found, y = read_cifar(written(tmp_path, pack(content)))
    np.testing.assert_array_equal(found, images)
    assert y.tolist() == [9, 0, 4]


@pytest.mark.parametrize("content", [b"", bytes(3072), bytes(3074), b"\x0a" + bytes(3072)])
def test_cifar_batch_of_part_records_or_wrong_labels_is_an_error(tmp_path, content):
    with pytest.raises(FormatError, match="file"):
        read_cifar(written(tmp_path, content))


READERS = {
    "idx": (lambda path: read_idx(path, 3), b"\0\0\x08\3"),
    "usps": (read_usps, b"3 0.5 "),
    "isolet": (read_isolet, b"0.1, 0.2"),
    "isolet.Z": (read_isolet, b"\x1f\x9d\x90"),
    "cifar": (read_cifar, bytes(3073)),
    "gzip": (read_cifar, gzip.compress(bytes(3073))[:12]),
}


@pytest.mark.parametrize("kind", READERS)
@given(data=st.binary(max_size=400), cut=st.integers(0, 20))
def test_random_bytes_are_an_array_or_a_format_error(tmp_path_factory, kind, data, cut):
    read, start = READERS[kind]
    path = written(tmp_path_factory.getbasetemp(), start[: len(start) - cut] + data, "random")
    try:
        found = read(path)
    except FormatError:
        return
    arrays = found if isinstance(found, tuple) else (found,)
    assert all(isinstance(array, np.ndarray) for array in arrays)


TEXTS = [
    b"",
    b"a",
    b"abababababab",
    bytes(5000),
    RNG.integers(97, 101, 9000, dtype=np.uint8).tobytes(),
    RNG.bytes(3000),
]


@pytest.mark.parametrize("longest", [9, 10, 12, 16])
@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize("text", TEXTS, ids=["nothing", "a", "ab", "zeros", "letters", "noise"])
def test_compressed_text_comes_back(text, longest, block):
    assert decompress(compressed(text, longest, block), "x.Z") == text


@pytest.mark.skipif(shutil.which("gzip") is None, reason="gzip reads .Z files as well, but is not here")
@pytest.mark.parametrize("longest", [10, 16])
@pytest.mark.parametrize("text", TEXTS[1:], ids=["a", "ab", "zeros", "letters", "noise"])
def test_what_the_tests_compress_is_what_gzip_reads(text, longest):
    content = compressed(text, longest)
    assert subprocess.run(["gzip", "-dc"], input=content, capture_output=True, check=True).stdout == text


def test_code_that_is_not_in_the_table_is_damage():
    with pytest.raises(FormatError, match="code 300 at bit"):
        decompress(bytes([0x1F, 0x9D, 0x90]) + (97 | 300 << 9).to_bytes(3, "little"), "x.Z")


def test_compressed_file_of_more_than_it_may_hold_is_refused():
    with pytest.raises(FormatError, match="at most 1000 bytes"):
        decompress(compressed(bytes(5000)), "x.Z", most=1000)


def tar_of(path, members, mode="w"):
    with tarfile.open(path, mode) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def test_archives_are_unpacked_into_one_folder(tmp_path):
    first = tar_of(tmp_path / "a.tar", {"in/a": b"1"})
    second = tar_of(tmp_path / "b.tar.gz", {"in/b": b"2"}, "w:gz")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("in/c", b"3")
    folder = unpack_all([first, second, tmp_path / "c.zip"], tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (folder / "in").iterdir()} == {"a": b"1", "b": b"2", "c": b"3"}


@pytest.mark.parametrize("name", ["../outside", "/outside-of-cghash", "in/../../outside"])
def test_nothing_is_unpacked_outside(tmp_path, name):
    archive = tar_of(tmp_path / "a.tar", {name: b"1"})
    try:
        unpack_all([archive], tmp_path / "below" / "out")
    except FormatError:
        assert not (tmp_path / "below" / "out").exists()
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "below" / "outside").exists()
    assert not Path("/outside-of-cghash").exists()


def test_names_in_a_zip_lead_nowhere_else(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../../outside", b"1")
    folder = unpack_all([tmp_path / "a.zip"], tmp_path / "below" / "out")
    assert [path.name for path in folder.rglob("*")] == ["outside"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "below"]


def test_links_out_of_the_archive_are_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
    with pytest.raises(FormatError, match=r"a\.tar"):
        unpack_all([tmp_path / "a.tar"], tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar"]


def test_truncated_archives_leave_nothing_behind(tmp_path):
    whole = tar_of(tmp_path / "a.tar.gz", {"a": RNG.bytes(20_000)}, "w:gz").read_bytes()
    for end in 0, 10, len(whole) // 2:
        path = written(tmp_path, whole[:end], "cut.tar.gz")
        with pytest.raises(FormatError, match=r"cut\.tar\.gz"):
            unpack_all([path], tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "cut.tar.gz"]


@pytest.mark.skipif(not FOLDER, reason="CGHASH_DATA names no folder with the data sets")
def test_idx_files_rebuilt_from_mnist_give_its_arrays(tmp_path):
    with np.load(Path(FOLDER) / "mnist.npz") as arrays:
        X, y = arrays["X"][60000:], arrays["y"][60000:]
    images = written(tmp_path, idx(X.reshape(-1, 28, 28)))
    assert np.array_equal(read_idx(images, 3).reshape(-1, 784), X)
    labels = written(tmp_path, idx(y))
    assert np.array_equal(read_idx(labels, 1), y)
