"""Which data sets there are, what they hold, where they come from and what their originals look like.

Checksums are those that the publishers, or scikit-learn and torchvision for them, give. Where none is published, the
first download is trusted and its SHA-256 kept (see `download`), and the shape of what was read is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_uppercase, digits

from .download import RemoteFile

__all__ = ["DATASETS", "LABELME", "NAMES", "NEWSGROUPS", "SCENES", "VOC", "Entry"]


@dataclass(frozen=True)
class Entry:
    """What is known of a data set before it is loaded.

    Attributes
    ----------
    name, about : its name here, and one line about it
    shape : (n, d) of all its items
    n_train : leading rows that form the customary train split
    classes : names of its labels
    page : where a person reads about it and gets it
    terms, citation : under which terms, and what to cite
    stem : its prepared file is `<stem>.npz`
    files : its originals at their public source
    homes : folders, below the data folder, where originals are looked for
    originals : what such a folder must hold, alternatives parted by |
    images : whether such a folder holds images beside them
    pixels : (height, width, black, white) where the features are pixels
    needs : a package that is needed to make the features, beside the extra `lab`
    """

    name: str
    about: str
    shape: tuple[int, int]
    n_train: int | None
    classes: tuple[str, ...]
    page: str
    terms: str
    citation: str
    stem: str = ""
    files: tuple[RemoteFile, ...] = ()
    homes: tuple[str, ...] = ()
    originals: tuple[str, ...] = ()
    images: bool = False
    pixels: tuple[int, int, float, float] | None = None
    needs: str | None = None


# names of the classes, in the order of their labels


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


DIGITS, LETTERS = tuple(digits), tuple(ascii_uppercase)
SCENES = _names(
    "Bedroom Coast Forest Highway Industrial InsideCity Kitchen LivingRoom Mountain Office OpenCountry Store Street "
    "Suburb TallBuilding"
)
LABELME = _names("person car building window tree sign door bookshelf chair table keyboard head")
VOC = _names(
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep "
    "sofa train tvmonitor"
)
CIFAR = _names("airplane automobile bird cat deer dog frog horse ship truck")
NEWSGROUPS = _names(
    "alt.atheism comp.graphics comp.os.ms-windows.misc comp.sys.ibm.pc.hardware comp.sys.mac.hardware comp.windows.x "
    "misc.forsale rec.autos rec.motorcycles rec.sport.baseball rec.sport.hockey sci.crypt sci.electronics sci.med "
    "sci.space soc.religion.christian talk.politics.guns talk.politics.mideast talk.politics.misc talk.religion.misc"
)


def _from(place: str, *files: tuple[str, float] | tuple[str, float, str]) -> tuple[RemoteFile, ...]:
    """Files below one address: name, megabytes, and the checksum where one is published."""
    return tuple(RemoteFile(name, place + name, *about) for name, *about in files)


_SCENE = {
    "page": "http://www-cvr.ai.uiuc.edu/ponce_grp/data/ (a copy: https://doi.org/10.6084/m9.figshare.7007177)",
    "terms": "for research",
    "citation": "Lazebnik, Schmid & Ponce: Beyond bags of features, CVPR 2006",
    "files": _from("http://www-cvr.ai.uiuc.edu/ponce_grp/data/scene_categories/", ("scene_categories.zip", 92)),
    "homes": ("", "scene_categories", "15-Scene", "scene15"),
    "originals": ("bedroom|Bedroom|00|train/bedroom|train/Bedroom",),
    "images": True,
}
_PASCAL = {
    "page": "http://host.robots.ox.ac.uk/pascal/VOC/voc2007/",
    "terms": "images under the terms of flickr",
    "citation": "Everingham, Van Gool, Williams, Winn & Zisserman: The PASCAL Visual Object Classes, IJCV 2010",
    "files": _from(
        "http://host.robots.ox.ac.uk/pascal/VOC/voc2007/",
        ("VOCtrainval_06-Nov-2007.tar", 460, "md5:c52e279531787c972589f7e41ab4ae64"),
        ("VOCtest_06-Nov-2007.tar", 451, "md5:b6e924de25625d8de591ea690078ad9f"),
    ),
    "homes": ("VOCdevkit/VOC2007", "VOC2007"),
    "originals": ("JPEGImages", "Annotations", "ImageSets/Main/trainval.txt", "ImageSets/Main/test.txt"),
    "images": True,
}

_ENTRIES = (
    Entry(
        "isolet",
        "spoken letters, 617 features of each utterance",
        (7797, 617),
        6238,
        LETTERS,
        "https://archive.ics.uci.edu/dataset/54/isolet",
        "CC BY 4.0",
        "Cole & Fanty: ISOLET, UCI Machine Learning Repository, 1994, https://doi.org/10.24432/C51G69",
        "isolet",
        _from("https://archive.ics.uci.edu/static/public/54/", ("isolet.zip", 16)),
        ("", "isolet"),
        ("isolet1+2+3+4.data|isolet1+2+3+4.data.Z", "isolet5.data|isolet5.data.Z"),
    ),
    Entry(
        "scene15",
        "15 kinds of scenes: 200 words of dense SIFT in 31 windows",
        (4485, 6200),
        1500,
        SCENES,
        stem="scene15_bow6200",
        **_SCENE,  # type: ignore[arg-type]
    ),
    Entry(
        "mnist",
        "handwritten digits, 28 × 28 pixels",
        (70000, 784),
        60000,
        DIGITS,
        "http://yann.lecun.com/exdb/mnist/",
        "none stated",
        "LeCun, Bottou, Bengio & Haffner: Gradient-based learning applied to document recognition, Proc. IEEE 1998",
        "mnist",
        _from(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            ("train-images-idx3-ubyte.gz", 9.9, "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            ("train-labels-idx1-ubyte.gz", 0.03, "md5:d53e105ee54ea40749a09fcbcd1e9432"),
            ("t10k-images-idx3-ubyte.gz", 1.6, "md5:9fb629c4189551a2d022fa330f9573f3"),
            ("t10k-labels-idx1-ubyte.gz", 0.005, "md5:ec29112dd5afa0611ce80d1b7f02629c"),
        ),
        ("", "mnist", "MNIST/raw"),
        tuple(
            f"{part}-ubyte.gz|{part}-ubyte"
            for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
        ),
        pixels=(28, 28, 0, 255),
    ),
    Entry(
        "labelme",
        "photographs with one of 12 objects in the middle (LabelMe-12-50k without its clutter): GIST",
        (25000, 512),
        20000,
        LABELME,
        "https://www.ais.uni-bonn.de/download/datasets.html",
        "for research",
        "Uetz & Behnke: Large-scale object recognition with CUDA-accelerated hierarchical neural networks, ICIS 2009",
        "labelme_gist512",
        _from("https://www.ais.uni-bonn.de/deep_learning/", ("LabelMe-12-50k.tar.gz", 500)),
        ("LabelMe-12-50k", "labelme", ""),
        ("train/annotation.txt|annotation-train.txt", "test/annotation.txt|annotation-test.txt"),
        images=True,
    ),
    Entry(
        "usps",
        "handwritten digits from envelopes, 16 × 16 pixels",
        (9298, 256),
        7291,
        DIGITS,
        "https://hastie.su.domains/ElemStatLearn/data.html",
        "none stated",
        "Le Cun et al.: Handwritten digit recognition with a back-propagation network, NIPS 1989",
        "usps",
        _from("https://hastie.su.domains/ElemStatLearn/datasets/", ("zip.train.gz", 1.8), ("zip.test.gz", 0.45)),
        ("", "usps"),
        ("zip.train.gz|zip.train", "zip.test.gz|zip.test"),
        pixels=(16, 16, -1, 1),
    ),
    Entry(
        "pascal07",
        "photographs with some of 20 objects (PASCAL VOC 2007), several labels an item: GIST",
        (9963, 512),
        5011,
        VOC,
        stem="pascal07_gist512",
        **_PASCAL,  # type: ignore[arg-type]
    ),
    Entry(
        "digits",
        "handwritten digits, 8 × 8 pixels, that come with scikit-learn",
        (1797, 64),
        None,
        DIGITS,
        "https://archive.ics.uci.edu/dataset/80",
        "CC BY 4.0",
        "Alpaydin & Kaynak: Optical recognition of handwritten digits, UCI Machine Learning Repository, 1998",
        pixels=(8, 8, 0, 16),
    ),
    Entry(
        "cifar10",
        "small photographs of 10 objects: GIST of the grey image",
        (60000, 512),
        50000,
        CIFAR,
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        "none stated",
        "Krizhevsky: Learning multiple layers of features from tiny images, 2009",
        "cifar10_gist512",
        _from(
            "https://www.cs.toronto.edu/~kriz/",
            ("cifar-10-binary.tar.gz", 170, "md5:c32a1d4ab5d03f1284b67883e8d87530"),
        ),
        ("", "cifar-10-batches-bin"),
        (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"),
    ),
    Entry(
        "newsgroups20",
        "messages of 20 newsgroups, by date, as sentence embeddings (all-MiniLM-L6-v2)",
        (18846, 384),
        11314,
        NEWSGROUPS,
        "http://qwone.com/~jason/20Newsgroups/",
        "none stated",
        "Lang: NewsWeeder: learning to filter netnews, ICML 1995",
        "newsgroups20_minilm384",
        (
            RemoteFile(
                "20news-bydate.tar.gz",
                "https://ndownloader.figshare.com/files/5975967",
                14.5,
                "sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
            ),
        ),
        ("", "20news-bydate"),
        ("20news-bydate-train", "20news-bydate-test"),
        needs="sentence_transformers",
    ),
    Entry(
        "scene15-gist",
        "15 kinds of scenes: GIST",
        (4485, 512),
        1500,
        SCENES,
        stem="scene15_gist512",
        **_SCENE,  # type: ignore[arg-type]
    ),
    Entry(
        "pascal07-words",
        "photographs with some of 20 objects, several labels an item: 200 words of dense SIFT in 31 windows",
        (9963, 6200),
        5011,
        VOC,
        stem="pascal07_bow6200",
        **_PASCAL,  # type: ignore[arg-type]
    ),
)

DATASETS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
NAMES = tuple(DATASETS)
