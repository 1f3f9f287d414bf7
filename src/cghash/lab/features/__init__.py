"""Features of images: GIST, and bags of visual words.

| module         | what it does                                                                     |
|----------------|----------------------------------------------------------------------------------|
| `images`       | grey images from files, safely                                                   |
| `gist`         | GIST: the energy of Gabor filters on a 4 × 4 grid                                |
| `sift`         | dense SIFT: histograms of gradient orientations around the points of a grid      |
| `bag_of_words` | counts of visual words in 31 windows of an image                                 |
| `parallel`     | the same function of many images, in threads; the answer does not depend on them |
"""

from __future__ import annotations

from .bag_of_words import BagOfWords, windows
from .gist import gist
from .images import read_grey, thumbnails
from .sift import dense_sift

__all__ = ["BagOfWords", "dense_sift", "gist", "read_grey", "thumbnails", "windows"]
