"""Small files that become large pictures: what they cost, alone and several at once."""

from __future__ import annotations

import asyncio
import io
import re
import struct
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from cghash.client import Client
from cghash.exceptions import FormatError
from cghash.lab.features import images, read_grey
from cghash.web.queues import WorkQueue
from cghash.workspace import Workspace
from cghash.workspace.embedders import Digits
from cghash.workspace.pictures import check_picture, digit_of, grey_of, read_picture

from .workspaces import chunk, image_file, png, wait_for

LARGEST = (4000, 4000)  # 16 megapixels


def tiff(width, height, tags):
    """A TIFF of deflated zeros, with further tags."""
    data = zlib.compress(bytes(10**6))
    tags = {256: width, 257: height, 258: 8, 259: 8, 262: 1, 277: 1} | tags
    place = 8 + 2 + 12 * len(tags) + 4
    known = {"place": place, "length": len(data)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, known.get(tags[tag], tags[tag])) for tag in sorted(tags))
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + data


def dotted(width, height, mode="L"):
    image = Image.new(mode, (width, height))
    image.paste(Image.new(mode, (width // 3, height // 2), "white"), (width // 3, height // 4))
    return image


@pytest.mark.parametrize(
    "bomb",
    [
        png(8192, 8192, bits=1),
        png(4001, 4000),
        png(1, 70_000, bits=1),
        png(10, 10, more=chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(10**8), 9))),
        png(10, 10, more=chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(10**8), 9))),
        tiff(10, 10, {322: 65_536, 323: 16_384, 324: "place", 325: "length"}),
        image_file(Image.new("L", (4001, 4000)), "WEBP"),
        image_file(Image.new("L", (4001, 4000)), "JPEG", progressive=True),
        png(50_000, 50_000, pixels=b""),
        png(2**31 - 1, 2**31 - 1, pixels=b""),
        png(0, 0, pixels=b""),
        png(30_000, 30_000, pixels=bytes(30_001) * 300),
        b"GIF89a" + struct.pack("<HH", 65535, 65535) + b"\0\0\0," + struct.pack("<HHHH", 0, 0, 65535, 65535) + b"\0",
        b"P5 60000 60000 255\n" + bytes(100),
        b"BM" + struct.pack("<IHHIIiiHH", 100, 0, 0, 54, 40, 60000, 60000, 1, 24) + bytes(100),
    ],
    ids=[
        "8 kB, 67 million", "a line too many", "tall", "profile", "text", "tile", "webp", "jpeg of several scans",
        "claims 2.5 billion pixels", "claims 2^62 pixels", "no pixel", "900 million zeros", "gif", "ppm", "bmp",
    ],
)  # fmt: skip
def test_a_small_file_of_a_large_picture_is_refused_wherever_it_is_read(bomb, tmp_path):
    assert len(bomb) < 400_000
    path = tmp_path / "bomb"
    path.write_bytes(bomb)
    for read in (lambda: Digits().image(bomb), lambda: grey_of(path), lambda: check_picture(path)):
        with pytest.raises(FormatError, match="must be a whole picture"):
            read()
    with pytest.raises(FormatError, match="must be a whole image file"):
        read_grey(path)


def test_a_file_is_refused_before_it_is_read_into_memory(tmp_path):
    with open(tmp_path / "large.png", "wb") as file:
        file.write(png(8, 8))
        file.truncate(2**28)
    with pytest.raises(FormatError, match="at most 134217728 are read"):
        check_picture(tmp_path / "large.png")


def test_a_photograph_too_large_to_be_decoded_whole_is_decoded_at_half_its_size():
    photograph = image_file(dotted(6000, 4000), "JPEG")
    assert grey_of(photograph).shape == (2000, 3000)
    np.testing.assert_allclose(Digits().image(photograph), digit_of(np.array(dotted(600, 400))), atol=1)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "LA", "1"])
def test_pictures_turn_grey_the_same_in_pieces(mode, monkeypatch):
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 255, (37, 23, 4), dtype=np.uint8), "RGBA").convert(mode)
    whole = grey_of(image_file(image, "PNG"))
    monkeypatch.setattr("cghash.workspace.pictures._BAND", 50)
    np.testing.assert_array_equal(grey_of(image_file(image, "PNG")), whole)


def test_a_large_picture_of_a_digit_is_that_of_a_small_one():
    np.testing.assert_array_equal(digit_of(np.array(dotted(4096, 2048))), digit_of(np.array(dotted(1024, 512))))


PEAK = """
import io, re, sys
from PIL import Image
from cghash.workspace import Workspace
from cghash.workspace.embedders import Digits, Gist
from cghash.web.thumbnails import small

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024

out = io.BytesIO()
Image.new("L", (64, 64)).save(out, "PNG")
works = {"digits": Digits().image, "gist": Gist().image, "thumbnail": lambda data: small(sys.argv[2], 640)}
work = works[sys.argv[1]]
if sys.argv[1] != "thumbnail":
    work(out.getvalue())
before = peak()
work(open(sys.argv[2], "rb").read())
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("way", ["digits", "gist", "thumbnail"])
def test_the_largest_picture_costs_a_few_times_its_pixels(way, tmp_path):
    (tmp_path / "picture").write_bytes(image_file(dotted(*LARGEST, "RGBA"), "PNG", compress_level=1))
    run = [sys.executable, "-c", PEAK, way, str(tmp_path / "picture")]
    megabytes = int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert megabytes < 200  # 64 for its pixels


def peak_of(server):
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_six_at_once_cost_what_one_costs(digits, start_server):
    bomb = image_file(dotted(*LARGEST), "PNG")
    assert len(bomb) < 100_000
    with start_server(digits) as server:
        page = Client(server.url)
        assert len(page.search(image=bomb, k=1)["results"]) == 1
        alone = peak_of(server)
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda _: page.search(image=bomb, k=1)["results"], range(6)))
        assert [len(results) for results in found] == [1] * 6
        assert peak_of(server) - alone < 40  # less than two more pictures of 16 MB


def scans_again(picture, count):
    """A progressive JPEG whose last scan comes so many times more."""
    last = picture[picture.rindex(b"\xff\xda") : -2]
    return picture[:-2] + last * count + picture[-2:]


@pytest.mark.parametrize(
    "slow",
    [
        lambda: scans_again(image_file(Image.new("RGB", (64, 64), (90, 90, 90)), "JPEG", progressive=True), 100),
        lambda: scans_again(image_file(Image.new("L", (64, 64), 90), "JPEG", progressive=True), 100),
        lambda: b"P2 4 4 255\n" + b"#\n" * 1001 + b"1 " * 16,
        lambda: b"P1 4 4\n" + b"1 " * 16 + b"#" * 1001,
    ],
    ids=["scans", "grey scans", "comments", "marks"],
)
def test_a_small_file_that_takes_long_is_refused_wherever_it_is_read(slow, tmp_path):
    (tmp_path / "slow").write_bytes(slow())
    for read in (check_picture, read_grey, grey_of):
        with pytest.raises(FormatError, match=r"more than (100 scans|1000 comments)"):
            read(tmp_path / "slow")


def test_pictures_of_several_scans_and_plain_text_are_read():
    progressive = image_file(Image.new("RGB", (64, 64), (90, 90, 90)), "JPEG", progressive=True)
    words = b"\xff\xfe\xff\xff" + b"\xff\xda" * 32766 + b"\0"  # a comment that holds the mark of scans
    for picture in (progressive, scans_again(progressive, 80), progressive[:2] + words + progressive[2:]):
        assert grey_of(picture).shape == (64, 64)
    assert grey_of(b"P2 2 1 255\n# made by hand\n0 200").tolist() == [[0, 200]]
    assert grey_of(b"P5 40 40 255\n" + b"#" * 1600).shape == (40, 40)  # levels, not comments


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_an_original_of_any_size_costs_no_memory(digits, start_server):
    """A PNG with a hole of 500 MB behind it, which takes no place on the disk."""
    with Workspace.open(digits) as workspace:
        path = workspace.picture(5)
    with open(path, "r+b") as file:
        file.truncate(500 * 2**20)
    with start_server(digits) as server:
        client = httpx.Client(base_url=server.url, timeout=60)
        assert client.get("/api/items/6/image?size=0").headers["content-type"] == "image/png"
        before = peak_of(server)
        with client.stream("GET", "/api/items/5/image?size=0") as answer:
            assert answer.headers["content-length"] == str(500 * 2**20)
            assert answer.headers["etag"].endswith('-5-0"')
            assert sum(len(piece) for piece in answer.iter_bytes(2**16)) == 500 * 2**20
        assert peak_of(server) - before < 50


def test_a_thumbnail_that_is_none_of_ours_is_made_again(digits, open_api):
    place = digits / "thumbnails" / "96" / "000000" / "5.png"
    with open_api(digits) as client:
        made = client.get("/api/items/5/image?size=96").content
        with open(place, "r+b") as file:
            file.truncate(2**23)
        assert client.get("/api/items/5/image?size=96").content == made
        assert place.stat().st_size == len(made)


def test_marks_are_counted_where_blocks_meet(monkeypatch):
    monkeypatch.setattr(images, "_BLOCK", 7)
    mark = images._scan_of(3)
    assert images._count(io.BytesIO(b"x" * 5 + mark * 9 + b"x"), [mark, images._scan_of(1)], 100) == 9


def test_the_end_of_the_program_does_not_wait_for_a_picture():
    """Ctrl-C: what is being decoded is dropped."""
    code = """
import asyncio, time
from cghash.web.queues import WorkQueue
async def main():
    line = WorkQueue("pictures", 3)
    waiting = [asyncio.create_task(line.result(time.sleep, 60)) for _ in range(3)]
    while line._waiting.qsize() > 2:  # the first has begun
        await asyncio.sleep(0.01)
    line.close()
    print([task.cancel() for task in waiting])
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50, capture_output=True)  # it would take 60 s


def test_work_in_line_is_done_in_turn_and_its_errors_are_told():
    async def test():
        line = WorkQueue("pieces", 3)
        assert await asyncio.gather(*(line.result(divmod, n, 2) for n in range(3))) == [(0, 0), (0, 1), (1, 0)]
        with pytest.raises(ZeroDivisionError):
            await line.result(divmod, 1, 0)
        line.close()

    asyncio.run(test())


def test_a_large_picture_is_not_overtaken_for_ever():
    """Small ones that come later wait behind it, though there is room for them."""
    room, order = images._Room(100), []

    def take(pixels):
        room.run(pixels, lambda: order.append(pixels))

    threads = [threading.Thread(target=take, args=(pixels,), daemon=True) for pixels in (100, 10)]

    def others_come():
        for count, thread in enumerate(threads, 2):
            thread.start()
            wait_for(lambda: len(room._places) == count)  # noqa: B023
        assert order == []

    room.run(50, others_come)
    for thread in threads:
        thread.join(20)
    assert order == [100, 10]


def test_ctrl_c_at_any_moment_leaves_the_room_for_pictures_whole(interrupted):
    room, at = images._Room(100), 0
    while interrupted(lambda: room.run(100, lambda: len("decoded")), at := at + 1):
        assert not room._places
    assert at > 5


def test_who_decodes_too_much_waits(monkeypatch):
    """Of two pictures that do not fit beside each other the second is opened when the first is closed."""
    monkeypatch.setattr(images, "_room", images._Room(100))
    picture = image_file(Image.new("L", (8, 8)), "PNG")
    second = threading.Thread(target=lambda: grey_of(picture), daemon=True)

    def another_comes(_):
        second.start()
        time.sleep(0.2)
        assert second.is_alive()

    read_picture(picture, another_comes)
    second.join(20)
    assert not second.is_alive()
