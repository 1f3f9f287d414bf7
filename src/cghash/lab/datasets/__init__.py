"""Data sets: from the user's folder first, else from their public source into the cache.

| module             | what it does                                                           |
|--------------------|------------------------------------------------------------------------|
| `registry`         | which data sets there are, what they hold, where they come from        |
| `loading`          | `load`: the places where a data set may be, in their order             |
| `dataset`          | `DataSet`: items, labels, split, pictures                              |
| `folders`          | the data folder and the cache                                          |
| `download`         | files from public sources: resumed, checked                            |
| `archives`         | .zip and .tar, unpacked safely                                         |
| `original_formats` | MNIST's idx, USPS and ISOLET as text or compressed, CIFAR-10's batches |
| `image_folders`    | 15-Scene, LabelMe-12-50k and PASCAL VOC 2007                           |
| `building`         | originals to arrays, with features where they are images or texts      |
| `user_files`       | the user's own files                                                   |
"""

from __future__ import annotations

from .dataset import DataSet
from .folders import cache_folder, data_folder
from .loading import describe_missing, load
from .registry import DATASETS, NAMES, Entry

__all__ = ["DATASETS", "NAMES", "DataSet", "Entry", "cache_folder", "data_folder", "describe_missing", "load"]
