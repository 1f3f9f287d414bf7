"""Downloads from a real server on this machine: cut transfers, kills, wrong files, and a whole data set."""

import gzip
import hashlib
import http.server
import signal
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from cghash.exceptions import FormatError, MissingDataError
from cghash.lab import datasets
from cghash.lab.datasets import download, loading, registry
from cghash.lab.datasets.download import RemoteFile, fetch

CONTENT = np.random.default_rng(0).bytes(300_000)
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()


@dataclass
class Site:
    """What the server does: its files by path, and one fault for each of the next requests."""

    files: dict = field(default_factory=lambda: {"/a.bin": CONTENT})
    tag: str = '"one"'
    faults: list = field(default_factory=list)
    asked: list = field(default_factory=list)  # the Range of each request
    go_on: threading.Event = field(default_factory=threading.Event)
    url: str = ""


class Handler(http.server.BaseHTTPRequestHandler):
    site: Site

    def log_message(self, *args):
        pass

    def do_GET(self):
        site, wanted = self.site, self.headers.get("Range")
        site.asked.append(wanted)
        fault = site.faults.pop(0) if site.faults else None
        content = site.files.get(self.path)
        if isinstance(fault, int) or content is None:
            self.send_error(fault or 404)
            return
        same = self.headers.get("If-Range", site.tag) == site.tag
        start = int(wanted[6:-1]) if wanted and same and fault != "all" else 0
        if start >= len(content) and start:
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            first = 0 if fault == "wrong start" else start
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        if fault not in ("endless", "no length"):
            self.send_header("Content-Length", str(len(content) - start))
        if site.tag:
            self.send_header("ETag", site.tag)
        self.end_headers()
        self.send_body(content[start:], fault)

    def send_body(self, body, fault):
        if fault in ("cut", "stall"):
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if fault == "stall":
                self.site.go_on.wait(30)
        elif fault == "endless":
            for _ in range(40):
                self.wfile.write(bytes(1 << 20))
        else:
            self.wfile.write(body)


@contextmanager
def serving(site):
    handler = type("Bound", (Handler,), {"site": site})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda request, address: None  # clients that leave early
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        site.go_on.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def site():
    with serving(Site()) as running:
        yield running


def remote(site, checksum=MD5, path="/a.bin", megabytes=0.3):
    return RemoteFile("a.bin", site.url + path, megabytes, checksum)


def get(site, folder, **kwargs):
    return fetch(remote(site, **kwargs), folder, pause=0.001)


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_file_comes_whole_with_its_progress(site, tmp_path):
    told = []
    path = fetch(remote(site), tmp_path / "new" / "folder", lambda done, total: told.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["a.bin"]
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_file_that_is_there_is_not_asked_for_again(site, tmp_path):
    get(site, tmp_path)
    assert get(site, tmp_path).read_bytes() == CONTENT
    assert len(site.asked) == 1


def test_damaged_file_is_fetched_again(site, tmp_path):
    path = get(site, tmp_path)
    path.write_bytes(CONTENT[:-1] + b"!")
    assert get(site, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("checksum", [MD5, None])
def test_cut_transfers_go_on_where_they_ended(site, tmp_path, checksum):
    site.faults = ["cut", "cut", 503]
    assert get(site, tmp_path, checksum=checksum).read_bytes() == CONTENT
    half = len(CONTENT) // 2
    assert site.asked == [None, f"bytes={half}-", f"bytes={half + half // 2}-", f"bytes={half + half // 2}-"]


def test_file_that_changed_in_between_is_begun_anew(site, tmp_path):
    site.faults = ["cut", *[500] * download.ATTEMPTS]
    with pytest.raises(MissingDataError, match="150000 bytes are kept"):
        get(site, tmp_path, checksum=None)
    other = CONTENT[::-1]
    site.files["/a.bin"], site.tag, site.faults = other, '"two"', []
    assert get(site, tmp_path, checksum=None).read_bytes() == other


def test_without_checksum_and_tag_nothing_is_pieced_together(site, tmp_path):
    site.tag, site.faults = "", ["cut"]
    assert get(site, tmp_path, checksum=None).read_bytes() == CONTENT
    assert site.asked == [None, None]


FAULTS = {
    "knows no ranges": ["cut", "all"],
    "knows no lengths": ["no length"],
    "answers from another place": ["cut", "wrong start"],
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
def test_file_comes_whole_from_a_server_that(site, tmp_path, faults):
    site.faults = list(faults)
    assert get(site, tmp_path).read_bytes() == CONTENT


def test_part_longer_than_the_file_is_begun_anew(site, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(bytes(len(CONTENT) + 5))
    assert get(site, tmp_path).read_bytes() == CONTENT


def test_wrong_checksum_is_an_error_and_nothing_is_kept(site, tmp_path):
    with pytest.raises(FormatError, match=rf"must have the checksum md5:0+, got {MD5}; it was not kept"):
        get(site, tmp_path, checksum="md5:" + "0" * 32)
    assert names(tmp_path) == []


def test_damaged_part_does_not_stay_for_ever(site, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(b"wrong")
    with pytest.raises(FormatError, match="checksum"):
        get(site, tmp_path)
    assert get(site, tmp_path).read_bytes() == CONTENT


def test_without_a_published_checksum_the_first_one_seen_counts(site, tmp_path):
    path = get(site, tmp_path, checksum=None)
    assert (tmp_path / "a.bin.sha256").read_text() == f"{hashlib.sha256(CONTENT).hexdigest()}  a.bin\n"
    assert download.is_right(path, remote(site, checksum=None))
    path.write_bytes(CONTENT[1:])
    assert not download.is_right(path, remote(site, checksum=None))


def test_what_comes_again_must_be_what_came_first(site, tmp_path):
    get(site, tmp_path, checksum=None).unlink()
    first = (tmp_path / "a.bin.sha256").read_text()
    assert get(site, tmp_path, checksum=None).read_bytes() == CONTENT  # the same once more
    (tmp_path / "a.bin").unlink()
    site.files["/a.bin"] = CONTENT[::-1]
    with pytest.raises(FormatError, match=r"not what came first; if it is right, remove .*a\.bin\.sha256"):
        get(site, tmp_path, checksum=None)
    assert names(tmp_path) == ["a.bin.sha256"]
    assert (tmp_path / "a.bin.sha256").read_text() == first
    (tmp_path / "a.bin.sha256").unlink()
    assert get(site, tmp_path, checksum=None).read_bytes() == CONTENT[::-1]


def test_missing_file_is_told_at_once(site, tmp_path):
    with pytest.raises(MissingDataError, match="answered 404"):
        get(site, tmp_path, path="/nothing")
    assert len(site.asked) == 1
    assert names(tmp_path) == []


def test_server_that_is_not_there_is_told_after_some_attempts(site, tmp_path):
    gone = replace(remote(site), url="http://127.0.0.1:1/a.bin")
    with pytest.raises(MissingDataError, match="could not be fetched"):
        fetch(gone, tmp_path, pause=0.001)


def test_a_full_disk_is_told_at_once_and_by_its_file(site, tmp_path):
    resource = pytest.importorskip("resource", reason="Windows has no limit on the size of files")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            get(site, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.filename == str(tmp_path / "a.bin.part")
    assert len(site.asked) == 1
    assert get(site, tmp_path).read_bytes() == CONTENT


def test_server_that_keeps_failing_is_given_up(site, tmp_path):
    site.faults = [503] * 100
    with pytest.raises(MissingDataError, match="answered 503"):
        get(site, tmp_path)
    assert len(site.asked) == download.ATTEMPTS


def test_endless_and_oversized_answers_are_refused(site, tmp_path):
    site.faults = ["endless"]
    with pytest.raises(FormatError, match="sent more"):
        get(site, tmp_path)
    site.files["/a.bin"] = bytes(2_000_000)
    with pytest.raises(FormatError, match=r"about 0\.001 MB"):
        get(site, tmp_path, megabytes=0.001)
    assert names(tmp_path) == []


def test_killed_download_goes_on_from_what_it_had(site, tmp_path):
    site.faults = ["stall"]
    code = (
        "import sys; from pathlib import Path; from cghash.lab.datasets.download import RemoteFile, fetch;"
        "fetch(RemoteFile('a.bin', sys.argv[1], 0.3, sys.argv[2]), Path(sys.argv[3]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, f"{site.url}/a.bin", MD5, str(tmp_path)])
    part = tmp_path / "a.bin.part"
    give_up = time.monotonic() + 30
    while not (part.exists() and part.stat().st_size) and time.monotonic() < give_up:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = part.stat().st_size
    assert 0 < kept < len(CONTENT)
    site.go_on.set()
    assert get(site, tmp_path).read_bytes() == CONTENT
    assert site.asked == [None, f"bytes={kept}-"]


def test_two_at_a_time_fetch_once(site, tmp_path):
    threads = [threading.Thread(target=get, args=(site, tmp_path)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(site.asked) == 1
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def usps_lines(n, seed):
    rng = np.random.default_rng(seed)
    table = np.column_stack([rng.integers(0, 10, n), np.round(rng.uniform(-1, 1, (n, 256)), 3)])
    text = "".join(f"{row[0]:.4f} {' '.join(f'{value:.3f}' for value in row[1:])} \n" for row in table)
    return table, gzip.compress(text.encode())


@pytest.fixture
def small_usps(site, tmp_path, monkeypatch):
    """The registry's USPS, with 30 + 10 items, on the server here."""
    train, packed_train = usps_lines(30, 0)
    test, packed_test = usps_lines(10, 1)
    site.files = {"/zip.train.gz": packed_train, "/zip.test.gz": packed_test}
    entry = registry.DATASETS["usps"]
    files = tuple(replace(file, url=f"{site.url}/{file.name}") for file in entry.files)
    monkeypatch.setitem(registry.DATASETS, "usps", replace(entry, files=files, shape=(40, 256), n_train=30))
    monkeypatch.setenv("CGHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CGHASH_DATA", raising=False)
    return np.concatenate([train, test])


def test_data_set_is_downloaded_once_and_read_from_the_cache(site, small_usps, tmp_path):
    told = []
    for _ in range(2):
        data = datasets.load("usps", progress=lambda *about: told.append(about))
        np.testing.assert_array_equal(data.X, small_usps[:, 1:].astype(np.float32))
        np.testing.assert_array_equal(data.y, small_usps[:, 0])
        assert data.n_train == 30
    assert len(site.asked) == 2
    assert {words for words, _, _ in told} == {"downloading zip.train.gz", "downloading zip.test.gz"}
    assert (tmp_path / "cache" / "usps.npz").is_file()


def test_originals_in_the_cache_are_used_without_the_network(site, small_usps, tmp_path):
    datasets.load("usps", progress=False)
    (tmp_path / "cache" / "usps.npz").unlink()
    assert datasets.load("usps", download=False, progress=False).X.shape == (40, 256)
    assert len(site.asked) == 2


def test_download_of_other_contents_than_expected_is_an_error(site, small_usps, monkeypatch):
    monkeypatch.setitem(registry.DATASETS, "usps", replace(registry.DATASETS["usps"], shape=(9298, 256)))
    with pytest.raises(FormatError, match=r"must give 9298 × 256 features, got \(40, 256\)"):
        datasets.load("usps", progress=False)


def test_download_that_is_not_what_it_should_be_is_not_kept(site, small_usps):
    right, site.files["/zip.test.gz"] = site.files["/zip.test.gz"], b"<html>moved</html>"
    with pytest.raises(FormatError, match=r"zip\.test\.gz must hold lines of 257 numbers"):
        datasets.load("usps", progress=False)
    site.files["/zip.test.gz"] = right
    assert datasets.load("usps", progress=False).X.shape == (40, 256)


def test_source_that_changed_after_the_first_download_is_refused_again_and_again(site, small_usps, tmp_path):
    datasets.load("usps", progress=False)
    cache = tmp_path / "cache"
    (cache / "usps.npz").unlink()
    (cache / "originals" / "usps" / "zip.test.gz").unlink()
    site.files["/zip.test.gz"] = usps_lines(10, 2)[1]
    for _ in range(2):
        with pytest.raises(FormatError, match="not what came first"):
            datasets.load("usps", progress=False)


def test_data_set_that_cannot_be_had_says_where_to_get_it_and_where_to_put_it(site, small_usps):
    site.files = {}
    with pytest.raises(MissingDataError) as caught:
        datasets.load("usps", progress=False)
    message = str(caught.value)
    assert "\n" not in message
    for words in ("answered 404", "zip.train.gz", "hastie.su.domains", "usps.npz", "CGHASH_DATA", "CGHASH_CACHE"):
        assert words in message


def test_without_download_nothing_is_asked_for(site, small_usps):
    with pytest.raises(MissingDataError, match="not in the data folder or the cache"):
        datasets.load("usps", download=False)
    assert site.asked == []


def test_archive_is_downloaded_and_unpacked(site, tmp_path, monkeypatch):
    line = ", ".join(["0.5"] * 617)
    with zipfile.ZipFile(tmp_path / "isolet.zip", "w") as archive:
        archive.writestr("isolet1+2+3+4.data", f"{line}, 3.\n{line}, 4.\n")
        archive.writestr("isolet5.data", f"{line}, 5.\n")
    site.files = {"/isolet.zip": (tmp_path / "isolet.zip").read_bytes()}
    entry = registry.DATASETS["isolet"]
    files = (replace(entry.files[0], url=f"{site.url}/isolet.zip"),)
    monkeypatch.setitem(registry.DATASETS, "isolet", replace(entry, files=files, shape=(3, 617)))
    monkeypatch.setenv("CGHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CGHASH_DATA", raising=False)
    for _ in range(2):
        assert datasets.load("isolet", progress=False).y.tolist() == [2, 3, 4]
    assert len(site.asked) == 1


def test_archive_without_the_originals_is_an_error(site, tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "isolet.zip", "w") as archive:
        archive.writestr("readme", "moved elsewhere")
    monkeypatch.setenv("CGHASH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(FormatError, match=r"isolet\.zip must hold isolet1"):
        datasets.load("isolet", folder=tmp_path, progress=False)


def test_progress_lines_tell_each_tenth(capsys, site, small_usps):
    datasets.load("usps", progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert "cghash: downloading zip.train.gz: 100 %" in lines
    assert len(lines) == len(set(lines)) <= 22


def test_loading_needs_no_network_for_what_comes_with_scikit_learn(monkeypatch):
    monkeypatch.setattr(loading, "fetch", None)
    assert datasets.load("digits").X.shape == registry.DATASETS["digits"].shape
