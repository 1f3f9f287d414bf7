"""Data sets: where they are looked for, image folders in their original layout, files of one's own."""

import gzip
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cghash.exceptions import FormatError, InvalidInputError, MissingDataError, MissingDependencyError
from cghash.lab import datasets
from cghash.lab.datasets import DATASETS, NAMES, building, load
from cghash.lab.datasets.image_folders import read_labelme, read_scenes, read_voc
from cghash.lab.datasets.registry import LABELME, NEWSGROUPS, SCENES, VOC
from cghash.lab.features import gist, thumbnails

FOLDER = os.environ.get("CGHASH_DATA")


@pytest.fixture(autouse=True)
def nothing_outside(tmp_path, monkeypatch):
    """Neither the machine's data folder, nor its cache, nor the network."""
    monkeypatch.delenv("CGHASH_DATA", raising=False)
    monkeypatch.setenv("CGHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("urllib.request.urlopen", None)


def image(path, seed=0, side=40):
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).integers(0, 256, (side, side + 8), dtype=np.uint8)
    Image.fromarray(noise).save(path, quality=95)
    return path


def text(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def prepared(path, n=6, d=256, **more):
    rng = np.random.default_rng(0)
    arrays = {"X": rng.uniform(-1, 1, (n, d)).astype(np.float16), "y": np.arange(n, dtype=np.uint8), "n_train": 4}
    np.savez(path, **(arrays | more))
    return arrays


# where they are looked for


def test_every_data_set_says_what_it_is_and_where_it_comes_from():
    assert set(NAMES) >= {
        "isolet",
        "scene15",
        "mnist",
        "labelme",
        "usps",
        "pascal07",
        "digits",
        "cifar10",
        "newsgroups20",
    }
    for name, entry in DATASETS.items():
        assert entry.name == name
        assert entry.about
        assert entry.citation
        assert entry.page.startswith("http")
        assert len(entry.classes) == len(set(entry.classes)) > 9
        for remote in entry.files:
            kind, _, digest = (remote.checksum or "").partition(":")
            assert len(digest) == {"md5": 32, "sha256": 64, "": 0}[kind]


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_prepared_file_in_the_data_folder_is_read(tmp_path, monkeypatch, by):
    arrays = prepared(tmp_path / "usps.npz")
    if by == "variable":
        monkeypatch.setenv("CGHASH_DATA", str(tmp_path))
    data = load("usps", folder=tmp_path if by == "argument" else None)
    np.testing.assert_array_equal(data.X, arrays["X"].astype(np.float32))
    assert data.X.dtype == np.float32
    assert data.y.tolist() == list(range(6))
    assert (data.n_train, data.classes, data.multi_label) == (4, tuple("0123456789"), False)
    assert "hastie.su.domains" in data.source
    assert repr(data) == "DataSet('usps', 6 × 256, 10 classes, 4 to train)"


def test_argument_comes_before_the_variable(tmp_path, monkeypatch):
    for name, n in ("a", 5), ("b", 6):
        (tmp_path / name).mkdir()
        prepared(tmp_path / name / "usps.npz", n)
    monkeypatch.setenv("CGHASH_DATA", str(tmp_path / "a"))
    assert len(load("usps").X) == 5
    assert len(load("usps", folder=tmp_path / "b").X) == 6


def test_cache_follows_the_system_unless_it_is_set(monkeypatch, tmp_path):
    assert datasets.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("CGHASH_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / "cghash"
    monkeypatch.setattr("sys.platform", "darwin")
    assert datasets.cache_folder().parts[-3:] == ("Library", "Caches", "cghash")


@pytest.mark.parametrize("name", [name for name in NAMES if DATASETS[name].files])
def test_missing_data_set_is_one_message(name, tmp_path):
    with pytest.raises(MissingDataError) as caught:
        load(name, folder=tmp_path, download=False)
    assert str(caught.value) == datasets.describe_missing(name)
    assert DATASETS[name].page in str(caught.value)
    assert DATASETS[name].files[0].name in str(caught.value)


def test_unknown_names_and_folders_are_errors(tmp_path, monkeypatch):
    with pytest.raises(InvalidInputError, match=r"name must be one of \['isolet'"):
        load("mnst")
    with pytest.raises(InvalidInputError, match="folder must name a folder"):
        load("usps", folder=tmp_path / "nothing")
    monkeypatch.setenv("CGHASH_DATA", str(tmp_path / "nothing"))
    with pytest.raises(InvalidInputError, match="CGHASH_DATA must name a folder"):
        load("usps")
    with pytest.raises(InvalidInputError, match="which has its own"):
        load("digits", label_column="y")


WRONG = {
    "labels too few": {"y": np.zeros(5, np.uint8)},
    "a label too high": {"y": np.full(6, 10)},
    "labels that are words": {"y": np.array(list("abcdef"))},
    "X of one dimension": {"X": np.zeros(6)},
    "X of words": {"X": np.full((6, 2), "a")},
    "X with nan": {"X": np.full((6, 2), np.nan)},
    "n_train past the end": {"n_train": 7},
    "n_train of two": {"n_train": [1, 2]},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_prepared_file_with(tmp_path, wrong):
    prepared(tmp_path / "usps.npz", **wrong)
    with pytest.raises(FormatError, match=r"usps\.npz"):
        load("usps", folder=tmp_path)


def test_prepared_file_that_is_none_is_an_error(tmp_path):
    (tmp_path / "usps.npz").write_bytes(b"PK\3\4 nothing")
    with pytest.raises(FormatError, match=r"usps\.npz"):
        load("usps", folder=tmp_path)


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    data = load("digits")
    np.testing.assert_array_equal(data.X, load_digits().data)
    np.testing.assert_array_equal(data.y, load_digits().target)
    np.testing.assert_array_equal(data.pictures([3]), np.rint(load_digits().images[3:4] * 255 / 16))
    assert data.images.shape == (1797, 8, 8)


# originals in the data folder


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.mark.parametrize("home", ["", "mnist", "MNIST/raw"])
def test_mnist_is_read_from_its_own_files(tmp_path, home):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (9, 28, 28), dtype=np.uint8), rng.integers(0, 10, 9, dtype=np.uint8)
    (tmp_path / home).mkdir(parents=True, exist_ok=True)
    for part, rows in ("train", slice(0, 6)), ("t10k", slice(6, 9)):
        (tmp_path / home / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images[rows])))
        (tmp_path / home / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels[rows]))
    for _ in range(2):  # from the originals, then from the cache
        data = load("mnist", folder=tmp_path)
        np.testing.assert_array_equal(data.X, images.reshape(9, 784))
        np.testing.assert_array_equal(data.y, labels)
        np.testing.assert_array_equal(data.images, images)
        assert data.n_train == 6


def test_mnist_with_other_images_than_labels_is_an_error(tmp_path):
    for part in "train", "t10k":
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx(np.zeros((3, 28, 28), np.uint8)))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.zeros(2, np.uint8)))
    with pytest.raises(FormatError, match="train must have images"):
        load("mnist", folder=tmp_path)


def test_changed_originals_are_read_anew(tmp_path):
    line = " ".join(["0.5"] * 256)
    for digit in 3, 4:
        for part in "train", "test":
            text(tmp_path / f"zip.{part}", f"{digit} {line}\n" * digit)
        assert load("usps", folder=tmp_path).y.tolist() == [digit] * 2 * digit


def test_other_files_beside_the_originals_do_not_matter(tmp_path):
    folder = tmp_path / "data"
    for part in "train", "test":
        text(folder / f"zip.{part}", "3 " + "0.5 " * 256)
    load("usps", folder=folder)
    text(folder / "else" / "notes.txt", "nothing of USPS")
    load("usps", folder=folder)
    assert len(list((tmp_path / "cache").glob("*.npz"))) == 1


def test_isolet_is_read_from_its_own_files(tmp_path):
    line = ", ".join(["-0.25"] * 617)
    text(tmp_path / "isolet1+2+3+4.data", f"{line}, 1.\n{line}, 26.\n")
    text(tmp_path / "isolet5.data", f"{line}, 2.\n")
    data = load("isolet", folder=tmp_path)
    assert data.y.tolist() == [0, 25, 1]
    assert (data.n_train, data.classes[25], data.X.shape) == (2, "Z", (3, 617))


def cifar_folder(folder):
    rng = np.random.default_rng(0)
    folder.mkdir()
    pixels = rng.integers(0, 256, (6, 3072), dtype=np.uint8)
    for i, name in enumerate([*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]):
        (folder / name).write_bytes(bytes([i]) + pixels[i].tobytes())
    return pixels.reshape(6, 3, 32, 32).transpose(0, 2, 3, 1)


def test_cifar_is_gist_of_the_grey_image(tmp_path):
    colour = cifar_folder(tmp_path / "cifar-10-batches-bin")
    data = load("cifar10", folder=tmp_path, progress=False)
    grey = np.stack([np.array(Image.fromarray(one).convert("L")) for one in colour])
    assert np.abs(data.images.astype(int) - grey).max() <= 1  # Pillow rounds otherwise
    np.testing.assert_array_equal(data.X, gist(list(data.images), size=32))
    assert data.y.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.n_train == 5


def test_archive_in_the_data_folder_is_unpacked_in_the_cache(tmp_path):
    cifar_folder(tmp_path / "cifar-10-batches-bin")
    folder = tmp_path / "data"
    folder.mkdir()
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "cifar-10-batches-bin", "cifar-10-batches-bin")
    first, second = (load("cifar10", folder=folder, progress=False) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    assert [path.name for path in folder.iterdir()] == ["cifar-10-binary.tar.gz"]


# image folders


def scenes(folder, counts, suffix=".jpg"):
    for name, count in counts.items():
        for i in range(count):
            image(folder / name / f"image_{i:04d}{suffix}", seed=i + 100 * len(name))
    return folder


def test_scenes_are_called_the_same_however_their_folders_are(tmp_path):
    found = read_scenes(scenes(tmp_path, {"MITcoast": 2, "CALsuburb": 1, "bedroom": 1, "PARoffice": 1}))
    assert found.classes == SCENES
    named = dict(zip(found.names, (SCENES[label] for label in found.y), strict=True))
    assert named == {
        "CALsuburb/image_0000.jpg": "Suburb",
        "MITcoast/image_0000.jpg": "Coast",
        "MITcoast/image_0001.jpg": "Coast",
        "PARoffice/image_0000.jpg": "Office",
        "bedroom/image_0000.jpg": "Bedroom",
    }
    assert found.n_train is None


def test_first_hundred_of_each_class_lead(tmp_path):
    for name, n in ("one", 102), ("two", 101):
        (tmp_path / name).mkdir()
        for i in range(n):
            (tmp_path / name / f"{i:03d}.jpg").touch()
    found = read_scenes(tmp_path)
    assert found.classes == ("one", "two")
    assert found.n_train == 200
    assert found.y[:200].tolist() == [0] * 100 + [1] * 100
    assert found.names[200:] == ["one/100.jpg", "one/101.jpg", "two/100.jpg"]


def test_split_of_folders_train_and_test_is_kept(tmp_path):
    for part in "train", "test":
        scenes(tmp_path / part, {"Coast": 2, "Bedroom": 1})
    found = read_scenes(tmp_path)
    assert found.n_train == 3
    assert [SCENES[label] for label in found.y] == ["Bedroom", "Coast", "Coast"] * 2


def test_folder_without_classes_is_an_error(tmp_path):
    with pytest.raises(FormatError, match="folder of images for each"):
        read_scenes(scenes(tmp_path, {"only": 2}))


@pytest.mark.parametrize("kind", ["image", "folder"])
def test_links_out_of_a_folder_of_images_are_refused(tmp_path, kind):
    elsewhere = scenes(tmp_path / "elsewhere", {"street": 2, "coast": 2})
    folder = scenes(tmp_path / "mine", {"forest": 2, "office": 2})
    inside = next((folder / "forest").iterdir())
    (folder / "office" / "again.jpg").symlink_to(inside)
    assert len(read_scenes(folder).names) == 5
    linked = folder / "forest" / "theirs.jpg" if kind == "image" else folder / "coast"
    linked.symlink_to(next((elsewhere / "street").iterdir()) if kind == "image" else elsewhere / "coast")
    with pytest.raises(FormatError, match=r"must hold its images itself, got .*, a link that leads out of it"):
        read_scenes(folder)
    (tmp_path / "whole").symlink_to(elsewhere)
    assert len(read_scenes(tmp_path / "whole").names) == 4


def test_scenes_have_gist_and_pictures(tmp_path):
    folder = scenes(tmp_path / "scene_categories", {"bedroom": 2, "MITcoast": 2})
    first, again = (load("scene15-gist", folder=tmp_path, progress=False) for _ in range(2))
    files = sorted(folder.rglob("*.jpg"))
    np.testing.assert_array_equal(first.X, gist(files))
    np.testing.assert_array_equal(again.X, first.X)
    np.testing.assert_array_equal(again.images, thumbnails(files))
    np.testing.assert_array_equal(again.pictures([2]), thumbnails(files[2:3]))


def test_scenes_have_bags_of_words(tmp_path):
    for part, n in ("train", 5), ("test", 2):
        for name in "Bedroom", "Coast":
            for i in range(n):
                image(tmp_path / "scene15" / part / name / f"{i}.png", seed=i, side=120)
    data = load("scene15", folder=tmp_path, progress=False)
    assert data.X.shape == (14, 6200)
    assert data.n_train == 10
    patches = ((120 - 16) // 8 + 1) * ((128 - 16) // 8 + 1)
    assert (data.X.reshape(14, 31, 200)[:, 0].sum(axis=1) == patches).all()


def labelme(folder, train, test):
    """Lines of values by image number, and an image for each."""
    for part, lines in ("train", train), ("test", test):
        for number in lines:
            image(folder / part / f"{number // 1000:04d}" / f"{number:06d}.jpg", seed=number)
        rows = [f"{number:06d} {' '.join(f'{v:.2f}' for v in values)}" for number, values in lines.items()]
        text(folder / part / "annotation.txt", "\n".join(rows) + "\n")
    return folder


def values(*ones, others=-1.0):
    return [1.0 if i in ones else others for i in range(12)]


def test_labelme_has_the_object_in_the_middle_and_no_clutter(tmp_path):
    train = {0: values(3), 1: values(others=-0.4), 1002: values(11, others=0.5), 1003: values(0, 5)}
    folder = labelme(tmp_path / "LabelMe-12-50k", train, {7: values(2), 8: values(others=0.99)})
    found = read_labelme(folder)
    assert found.names == [
        "train/0000/000000.jpg",
        "train/0001/001002.jpg",
        "train/0001/001003.jpg",
        "test/0000/000007.jpg",
    ]
    assert [LABELME[label] for label in found.y] == ["window", "head", "person", "building"]
    data = load("labelme", folder=tmp_path, progress=False)
    np.testing.assert_array_equal(data.X, gist(found.paths))
    assert data.n_train == 3
    assert data.images.shape == (4, 64, 64)


@pytest.mark.parametrize("line", ["000000 1 2", "000000 " + "x " * 12, "000000 " + "2 " * 12, "000000 " + "nan " * 12])
def test_labelme_line_that_is_not_twelve_values_is_an_error(tmp_path, line):
    folder = labelme(tmp_path, {0: values(1)}, {1: values(1)})
    text(folder / "train" / "annotation.txt", f"\n{line}\n")
    with pytest.raises(FormatError, match=r"annotation\.txt, line 2"):
        read_labelme(folder)


def test_labelme_values_are_taken_unrounded_where_they_are_there(tmp_path):
    folder = labelme(tmp_path, {0: values(1), 1: values(0, others=0.3)}, {2: values(4)})
    exact = np.array([values(1), values(others=0.3)], dtype="<f4")
    exact[1, 0] = 0.997  # 1.00 in the text, but clutter
    (folder / "train" / "annotation.bin").write_bytes(exact.tobytes())
    assert read_labelme(folder).y.tolist() == [1, 4]
    for wrong in exact.tobytes()[:-1], exact.tobytes() + bytes(4), (exact * 2).tobytes():
        (folder / "train" / "annotation.bin").write_bytes(wrong)
        with pytest.raises(FormatError, match=r"annotation\.bin must hold"):
            read_labelme(folder)


def test_labelme_image_that_is_not_there_is_an_error(tmp_path):
    folder = labelme(tmp_path, {0: values(1)}, {1: values(1)})
    (folder / "test" / "0000" / "000001.jpg").unlink()
    with pytest.raises(FormatError, match=r"an image 000001\.jpg"):
        read_labelme(folder)


def voc(folder, trainval, test):
    """Objects (name, difficult) by image, in the layout of VOC2007."""
    for part, images in ("trainval", trainval), ("test", test):
        text(folder / "ImageSets" / "Main" / f"{part}.txt", "\n".join(images) + "\n")
        for stem, objects in images.items():
            image(folder / "JPEGImages" / f"{stem}.jpg", seed=int(stem))
            body = "".join(
                f"<object><name>{name}</name><difficult>{difficult}</difficult><part><name>head</name></part></object>"
                for name, difficult in objects
            )
            text(folder / "Annotations" / f"{stem}.xml", f"<annotation><folder>VOC2007</folder>{body}</annotation>")
    return folder


def test_voc_labels_are_the_objects_that_are_not_difficult(tmp_path):
    trainval = {"000005": [("chair", 0), ("chair", 0), ("dog", 0)], "000007": [("car", 0), ("person", 1)]}
    folder = voc(tmp_path / "VOCdevkit" / "VOC2007", trainval, {"000001": [("person", 1), ("sofa", 1)]})
    found = read_voc(folder)
    named = [{VOC[j] for j in np.flatnonzero(row)} for row in found.y]
    assert named == [{"chair", "dog"}, {"car"}, {"person", "sofa"}]
    data = load("pascal07", folder=tmp_path, progress=False)
    assert data.multi_label
    assert (data.n_train, data.y.shape, data.y.dtype) == (2, (3, 20), np.uint8)
    np.testing.assert_array_equal(data.X, gist(found.paths))
    np.testing.assert_array_equal(load("pascal07", folder=tmp_path).y, data.y)
    assert repr(data) == "DataSet('pascal07', 3 × 512, 20 labels, several an item, 2 to train)"


BOMB = (
    '<!DOCTYPE a [<!ENTITY x "xxxxxxxx"><!ENTITY y "&x;&x;&x;">]>'
    "<annotation><object><name>&y;</name></object></annotation>"
)
ANNOTATIONS = {
    "a document type": BOMB,
    "another encoding": '<?xml version="1.0" encoding="utf-16"?>'.encode("utf-16") + BOMB.encode("utf-16"),
    "an end too early": "<annotation><object>",
    "no objects": "<annotation/>",
    "an unknown object": "<annotation><object><name>unicorn</name></object></annotation>",
    "no end": "<annotation>" + "x" * (1 << 20),
}


@pytest.mark.parametrize("content", ANNOTATIONS.values(), ids=ANNOTATIONS)
def test_voc_annotation_with(tmp_path, content):
    folder = voc(tmp_path, {"000001": [("car", 0)]}, {"000002": [("car", 0)]})
    path = folder / "Annotations" / "000002.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FormatError, match=r"000002\.xml"):
        read_voc(folder)


@pytest.mark.parametrize("names", ["", "../../secret", "a/b"])
def test_voc_image_set_of_other_things_than_names_is_an_error(tmp_path, names):
    folder = voc(tmp_path, {"000001": [("car", 0)]}, {"000002": [("car", 0)]})
    text(folder / "ImageSets" / "Main" / "test.txt", names)
    with pytest.raises(FormatError, match=r"test\.txt"):
        read_voc(folder)


def test_truncated_image_is_named(tmp_path):
    folder = voc(tmp_path / "VOC2007", {"000001": [("car", 0)]}, {"000002": [("car", 0)]})
    path = folder / "JPEGImages" / "000002.jpg"
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(FormatError, match=r"000002\.jpg"):
        load("pascal07", folder=tmp_path, progress=False)
    assert not list((tmp_path / "cache").glob("*.npz"))


def test_progress_of_features_is_told(tmp_path):
    scenes(tmp_path / "scene15", {"bedroom": 2, "store": 1})
    told = []
    load("scene15-gist", folder=tmp_path, progress=lambda *about: told.append(about))
    assert told == [("features of scene15-gist", i, 3) for i in (1, 2, 3)]


# texts


def message(subject, *lines):
    return f"From: someone@somewhere\nSubject: {subject}\nLines: 3\n\n" + "\n".join(lines)


def test_newsgroups_are_embedded_without_headers_and_quotes(tmp_path):
    for part, number in ("train", "9"), ("train", "10"), ("test", "11"):
        path = tmp_path / f"20news-bydate-{part}" / "sci.space" / number
        text(path, message(f"Re: orbit {number}", "In article 5, a@b writes:", "> quoted", "| too", "", "own words"))
    seen = []
    arrays = building.newsgroups(tmp_path, lambda texts: (seen.extend(texts), np.ones((len(texts), 3)))[1])
    assert seen == [f"orbit {number}\n\nown words" for number in (9, 10, 11)]
    assert [NEWSGROUPS[label] for label in arrays["y"]] == ["sci.space"] * 3
    assert arrays["n_train"] == 2


def test_newsgroups_without_the_embedder_say_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(building, "find_spec", lambda name: None)
    with pytest.raises(
        MissingDependencyError, match=r"pip install sentence-transformers, or put newsgroups20_minilm384\.npz"
    ):
        load("newsgroups20", folder=tmp_path)


# files of one's own


def test_own_npz_has_its_labels_and_its_split(tmp_path):
    np.savez(tmp_path / "mine.npz", X=np.eye(4, dtype=np.uint8), y=np.array(["b", "a", "b", "c"]), n_train=3)
    data = load(tmp_path / "mine.npz")
    assert data.X.dtype == np.float32
    assert data.y.tolist() == [1, 0, 1, 2]
    assert (data.classes, data.n_train, data.images) == (("a", "b", "c"), 3, None)
    with pytest.raises(InvalidInputError, match="no pictures"):
        data.pictures([0])


def test_data_sets_travel_to_other_processes(tmp_path):
    scenes(tmp_path / "scene15", {"bedroom": 1, "store": 1})
    for name in "digits", "scene15-gist":
        data = load(name, folder=tmp_path, progress=False)
        twin = pickle.loads(pickle.dumps(data))  # noqa: S301
        np.testing.assert_array_equal(twin.X, data.X)
        np.testing.assert_array_equal(twin.pictures([1]), data.pictures([1]))


def test_own_npy_has_labels_in_a_second_file_or_none(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(3, 2))
    np.save(tmp_path / "y.npy", np.array([[0, 1], [1, 1], [0, 0]]))
    assert load(str(tmp_path / "x.npy")).y is None
    data = load(tmp_path / "x.npy", labels=tmp_path / "y.npy")
    assert data.X.dtype == np.float64
    assert data.multi_label
    assert data.y.tolist() == [[0, 1], [1, 1], [0, 0]]
    assert "no labels" in repr(load(tmp_path / "x.npy"))


def test_own_parquet_has_a_label_column(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": [1.0, 2.0], "b": [3, 4], "kind": ["x", "w"]})
    import pyarrow.parquet as parquet

    parquet.write_table(table, tmp_path / "t.parquet")
    data = load(tmp_path / "t.parquet", label_column="kind")
    assert data.X.tolist() == [[1, 3], [2, 4]]
    assert (data.y.tolist(), data.classes) == ([1, 0], ("w", "x"))


def test_own_files_that_are_wrong_are_errors(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1.0, np.inf]]))
    with pytest.raises(InvalidInputError, match="finite"):
        load(tmp_path / "x.npy")
    with pytest.raises(InvalidInputError, match="which is not there"):
        load("nothing.npz")
    np.savez(tmp_path / "n.npz", X=np.eye(2), y=[0, 1], n_train=9)
    with pytest.raises(FormatError, match="n_train must be a whole number of 1 to 2"):
        load(tmp_path / "n.npz")
    with pytest.raises(InvalidInputError, match="not both"):
        load(tmp_path / "n.npz", labels=tmp_path / "n.npz", label_column="y")


# the shared files


PREPARED = [name for name in NAMES if FOLDER and (Path(FOLDER) / f"{DATASETS[name].stem}.npz").is_file()]


@pytest.mark.skipif(not FOLDER, reason="CGHASH_DATA names no folder with the data sets")
@pytest.mark.parametrize("name", PREPARED or ["none"])
def test_prepared_files_have_the_shapes_of_the_registry(name):
    entry = DATASETS[name]
    data = load(name, folder=FOLDER, download=False)
    assert (data.X.shape, data.n_train, data.classes) == (entry.shape, entry.n_train, entry.classes)
    assert data.X.dtype == np.float32
    assert np.unique(data.y).tolist() == list(range(len(entry.classes)))
    if data.painter is not None:
        assert data.pictures([0, 5]).std(axis=(1, 2)).min() > 0
