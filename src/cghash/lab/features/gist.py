"""GIST: the energy of oriented filters, averaged over a coarse grid (Oliva & Torralba, IJCV 2001).

With f the grey image on a square, I = log(1 + f), and * a convolution that is computed in the Fourier domain:

1. Local contrast normalisation. With the Gaussian low-pass g of frequency response exp(−|ξ|² / s²), ξ in cycles an
   image, s = 4 / √log 2 (half of the amplitude at 4 cycles an image):
   I' = I − g * I,  and  I'' = I' / (0.2 + √(g * I'²)).
2. Filters. At scale s = 0 … 3 and orientation θ_k = πk / 8, k = 0 … 7, the frequency response at radius r (cycles a
   pixel) and angle φ is a Gaussian in the radius and one in the angle,
   G_{s,k}(r, φ) = exp(−3.5·(r / r_s − 1)² − 2π·(φ − θ_k)²),  r_s = 0.3 / 1.85^s,  φ − θ_k taken in [−π, π),
   and 0 at r = 0. Each filter sees one half plane, so that its response is complex: the modulus is the local energy.
3. Features: the mean of |G_{s,k} * I''| over each cell of a 4 × 4 grid: 4 · 8 · 16 = 512 numbers, in the order
   (scale, orientation, row, column). k counts the direction of the grating's wave vector: k = 0 are vertical stripes.

The image is mirrored at its edges by an eighth of its side before 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..._arrays import Bytes, Singles
from ..._validation import check_whole
from ...exceptions import InvalidInputError
from .images import Image, check_grey, collect, square
from .parallel import Progress, each

__all__ = ["GRID", "ORIENTATIONS", "SCALES", "gist"]


SCALES, ORIENTATIONS, GRID = 4, 8, 4
HIGHEST, RATIO = 0.3, 1.85  # cycles a pixel of the finest scale; between scales
RADIAL, ANGULAR = 3.5, 2 * np.pi  # of the two Gaussians
CUT, FLOOR = 4.0, 0.2  # of the contrast normalisation


def gist(
    images: Sequence[Image], *, size: int = 128, n_jobs: int | None = None, progress: Progress | None = None
) -> Singles:
    """GIST features of grey images.

    Parameters
    ----------
    images : paths of image files, or (h, w) arrays of uint8; the centre square of each is taken
    size : side in pixels that the square is brought to, a multiple of 4
    n_jobs : threads, -1 for all cores; the features do not depend on it
    progress : is called with (done, all)

    Returns
    -------
    X : (n, 512) float32, in the order (scale, orientation, row, column)

    Examples
    --------
    >>> stripes = np.tile((np.arange(64) % 4 < 2).astype(np.uint8) * 255, (64, 1))  # a period of 4 pixels, vertical
    >>> energy = gist([stripes], size=64).reshape(4, 8, 16).sum(axis=2)
    >>> tuple(int(i) for i in np.unravel_index(energy.argmax(), energy.shape))  # the finest scale, direction 0
    (0, 0)
    """
    if check_whole(size, 4 * GRID, "size") % GRID:
        raise InvalidInputError(f"size must be a multiple of {GRID}, got {size}")
    rows = each(partial(_features, size=size), images, n_jobs, progress)
    return collect(rows, len(images), SCALES * ORIENTATIONS * GRID * GRID)


def _features(image: Image, size: int) -> Singles:
    grey: Bytes = square(check_grey(image), size)
    pad = size // 8
    padded = np.pad(np.log1p(grey, dtype=np.float32), pad, mode="symmetric")
    energy = _energy(_normalised(padded))[:, pad : pad + size, pad : pad + size]
    cell = size // GRID
    blocks = energy.reshape(-1, GRID, cell, GRID, cell)
    means: Singles = blocks.mean(axis=(2, 4), dtype=np.float32).ravel()
    return means


def _normalised(image: Singles) -> Singles:
    """I'' of step 1, of an image whose mean level does not matter."""
    detail = image - _low_pass(image)
    spread: Singles = np.sqrt(np.maximum(_low_pass(detail * detail), 0))
    normalised: Singles = np.divide(detail, spread + FLOOR, dtype=np.float32)
    return normalised


def _low_pass(image: Singles) -> Singles:
    from scipy import fft

    passed: Singles = fft.irfft2(fft.rfft2(image) * _gaussian(len(image)), s=image.shape)
    return passed


def _energy(image: Singles) -> Singles:
    """|G_{s,k} * I''| of step 2: (32, side, side)."""
    from scipy import fft

    response = fft.ifft2(fft.fft2(image) * _filters(len(image)), overwrite_x=True)
    energy: Singles = np.abs(response)
    return energy


@lru_cache(maxsize=4)
def _gaussian(side: int) -> Singles:
    y, x = np.fft.fftfreq(side)[:, None] * side, np.fft.rfftfreq(side) * side  # cycles an image
    response: Singles = np.exp(-(x * x + y * y) * np.log(2) / CUT**2).astype(np.float32)
    return response


@lru_cache(maxsize=4)
def _filters(side: int) -> Singles:
    """Frequency responses (32, side, side)."""
    y, x = np.meshgrid(np.fft.fftfreq(side), np.fft.fftfreq(side), indexing="ij")
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    bank = np.stack([_filter(radius, angle, s, k) for s in range(SCALES) for k in range(ORIENTATIONS)])
    if side % 2 == 0:  # the highest frequency has no mirror image: without it, mirrored images have mirrored features
        bank[:, side // 2, :] = bank[:, :, side // 2] = 0.0
    bank[:, 0, 0] = 0.0
    return bank.astype(np.float32)


def _filter(radius: Any, angle: Any, scale: int, orientation: int) -> Any:
    centre = HIGHEST / RATIO**scale
    turned = (angle - np.pi * orientation / ORIENTATIONS + np.pi) % (2 * np.pi) - np.pi
    return np.exp(-RADIAL * (radius / centre - 1.0) ** 2 - ANGULAR * turned**2)
