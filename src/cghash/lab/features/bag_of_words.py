"""Bags of visual words: how often each word of a dictionary occurs in each of 31 windows of an image.

The words are the centres of k-means over dense SIFT descriptors. The windows are those of Wu & Rehg (CENTRIST, PAMI
2011): the whole image; its 2 × 2 quarters, and one window of that size in the middle; its 4 × 4 sixteenths, and the
3 × 3 windows of that size which are shifted by half a window both ways, so that what lies on a border is in the middle
of another: 1 + (4 + 1) + (16 + 9) = 31. With 200 words these are 6200 counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Floats, Singles
from ..._validation import check_whole
from ...exceptions import InvalidInputError
from .images import Image, check_grey, collect, one_blas_thread
from .parallel import Progress, each
from .sift import dense_sift

__all__ = ["LARGEST", "WINDOWS", "BagOfWords", "windows"]


LEVELS = 3
WINDOWS = 31
LARGEST = 300  # pixels of the longer side; larger images are shrunk


def windows() -> Floats:
    """The windows (31, 4), as (top, left, bottom, right) in shares of the height and the width.

    Examples
    --------
    >>> windows()[[0, 1, 5]].tolist()  # the whole, a quarter, the middle
    [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5], [0.25, 0.25, 0.75, 0.75]]
    """
    found = []
    for level in range(LEVELS):
        n = 2**level
        for shift, count in (0.0, n), (0.5, n - 1):
            starts = (np.arange(count) + shift) / n
            found += [(top, left, top + 1 / n, left + 1 / n) for top in starts for left in starts]
    return np.array(found)


class BagOfWords:
    """Counts of visual words in windows.

    Parameters
    ----------
    n_words : size of the dictionary
    n_descriptors : how many descriptors, drawn evenly over the images, the dictionary is learned from
    random_state : of the draw and of k-means
    n_jobs : threads, -1 for all cores; the answer does not depend on it
    progress : is called with (done, all) for each image

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (3, 32, 32), dtype=np.uint8)
    >>> X = BagOfWords(n_words=5).fit(images).transform(images)
    >>> X.shape, X[0].reshape(31, 5)[0].sum()  # all 9 patches are in the first window
    ((3, 155), np.float32(9.0))
    """

    codebook_: Singles  # (n_words, 128)

    def __init__(
        self,
        n_words: int = 200,
        *,
        n_descriptors: int = 100_000,
        random_state: int = 0,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_words = n_words
        self.n_descriptors = n_descriptors
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, images: Sequence[Image]) -> BagOfWords:
        """Learn the dictionary from images: paths, or (h, w) arrays of uint8."""
        from sklearn.cluster import MiniBatchKMeans

        n_words = check_whole(self.n_words, 1, "n_words")
        sample = self._sample(images)
        if len(sample) < n_words:
            raise InvalidInputError(
                f"images must give at least n_words={n_words} descriptors, got {len(sample)} from {len(images)} images"
            )
        means = MiniBatchKMeans(n_words, batch_size=4096, n_init=3, random_state=self.random_state)
        self.codebook_ = means.fit(sample).cluster_centers_.astype(np.float32)
        return self

    def transform(self, images: Sequence[Image]) -> Singles:
        """Counts (n, 31 · n_words) float32, in the order (window, word)."""
        if not hasattr(self, "codebook_"):
            raise InvalidInputError("BagOfWords must be fitted before transform")
        rows = each(self._counts, images, self.n_jobs, self.progress)
        return collect(rows, len(images), WINDOWS * len(self.codebook_))

    def _sample(self, images: Sequence[Image]) -> Singles:
        """Descriptors of an even draw of every image: at most n_descriptors."""
        check_whole(self.n_descriptors, 1, "n_descriptors")
        share = max(1, self.n_descriptors // max(1, len(images)))
        generator = np.random.default_rng(self.random_state)
        chosen = np.sort(generator.permutation(len(images))[: self.n_descriptors])
        found = each(_descriptors, [images[i] for i in chosen], self.n_jobs, self.progress)
        with one_blas_thread():
            drawn = [d[generator.permutation(len(d))[:share]] for d in found]
        return np.concatenate(drawn) if drawn else np.empty((0, 128), dtype=np.float32)

    def _counts(self, image: Image) -> Singles:
        descriptors, centres = dense_sift(check_grey(image, largest=LARGEST))
        n_words = len(self.codebook_)
        word = _nearest(descriptors, self.codebook_)
        counts = [np.bincount(word[inside], minlength=n_words) for inside in _membership(centres)]
        return np.concatenate(counts).astype(np.float32)


def _descriptors(image: Image) -> Singles:
    return dense_sift(check_grey(image, largest=LARGEST))[0]


def _nearest(descriptors: Singles, codebook: Singles) -> NDArray[np.intp]:
    """The word nearest to each descriptor, the first of equals."""
    squared = (codebook * codebook).sum(axis=1) - 2.0 * descriptors @ codebook.T  # less |d|²
    nearest: NDArray[np.intp] = squared.argmin(axis=1)
    return nearest


def _membership(centres: Singles) -> Any:
    """Which patches lie in each window, by their centre: (31, m) bool."""
    y, x = centres.T.astype(np.float64)
    top, left, bottom, right = windows().T[:, :, None]
    return (y >= top) & (y < bottom) & (x >= left) & (x < right)
