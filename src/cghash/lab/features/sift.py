"""Dense SIFT: histograms of gradient orientations around the points of a grid (Lowe, IJCV 2004).

A patch of 16 × 16 pixels has 4 × 4 cells of 4 × 4 pixels. A pixel's gradient (central differences, of size m and angle
θ, the way in which grey rises; x goes right and y goes down) gives m to the two nearest of 8 orientations 2πk / 8,
and of that to the cells, in proportion to nearness: 1 − |x − c| / 4 in each direction from a cell's centre c. The 128
sums, in the order (row, column, orientation), are brought to length 1, cut at 0.2, and brought to length 1 again.
Patches lie every 8 pixels; those without contrast have the descriptor 0.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Bytes, Ints, Singles

__all__ = ["BINS", "CELL", "CELLS", "PATCH", "STEP", "dense_sift"]


CELL, CELLS, BINS, STEP = 4, 4, 8, 8  # pixels, cells a side, orientations, pixels
PATCH = CELL * CELLS
CUT, FLAT = 0.2, 1.0  # a patch whose gradients sum to less is noise of the coding


def dense_sift(image: Bytes) -> tuple[Singles, Singles]:
    """SIFT descriptors on a grid.

    Parameters
    ----------
    image : (h, w) uint8; one smaller than a patch is repeated at its edges

    Returns
    -------
    descriptors : (m, 128) float32, each of length 1 or 0
    centres : (m, 2) float32, (y, x) of each patch as a share of the height and the width

    Examples
    --------
    >>> ramp = np.tile(np.arange(0, 96, 3, dtype=np.uint8), (32, 1))  # grey rises to the right
    >>> descriptors, centres = dense_sift(ramp)
    >>> descriptors.shape, descriptors.reshape(9, 16, 8).sum(axis=(0, 1)).argmax(), centres[0].tolist()
    ((9, 128), np.int64(0), [0.25, 0.25])
    """
    grey = _at_least_a_patch(image.astype(np.float32))
    tops, lefts = (np.arange(0, side - PATCH + 1, STEP) for side in grey.shape)
    cells = _cells(_orientation_maps(grey), tops, lefts)  # (8, tops, 4, lefts, 4)
    raw = cells.transpose(1, 3, 2, 4, 0).reshape(len(tops) * len(lefts), CELLS * CELLS * BINS)
    y, x = np.meshgrid((tops + PATCH / 2) / grey.shape[0], (lefts + PATCH / 2) / grey.shape[1], indexing="ij")
    return _normalised(raw), np.column_stack([y.ravel(), x.ravel()]).astype(np.float32)


def _at_least_a_patch(grey: Singles) -> Singles:
    missing = [max(0, PATCH - side) for side in grey.shape]
    return np.pad(grey, [(m // 2, m - m // 2) for m in missing], mode="edge") if any(missing) else grey


def _orientation_maps(grey: Singles) -> Singles:
    """The size of each pixel's gradient, shared between its two nearest orientations: (8, h, w)."""
    dy, dx = np.gradient(grey, axis=0), np.gradient(grey, axis=1)
    size = np.hypot(dy, dx)
    place = np.arctan2(dy, dx) * np.float32(BINS / (2 * np.pi)) % BINS  # in [0, 8]
    low = np.floor(place)
    share = place - low
    maps = np.zeros((BINS, *grey.shape), dtype=np.float32)
    y, x = np.arange(grey.shape[0])[:, None], np.arange(grey.shape[1])
    first = low.astype(np.intp) % BINS
    maps[first, y, x] = size * (1 - share)
    maps[(first + 1) % BINS, y, x] = size * share
    return maps


def _cells(maps: Singles, tops: Ints, lefts: Ints) -> Singles:
    down = _weights(tops, maps.shape[1])  # (4 tops, h)
    across = _weights(lefts, maps.shape[2])  # (4 lefts, w)
    sums: Singles = np.matmul(np.matmul(down, maps), across.T)
    return sums.reshape(BINS, len(tops), CELLS, len(lefts), CELLS)


def _weights(starts: Ints, side: int) -> Singles:
    """Weights of pixels in the cells of patches, inside the patch alone: (4 starts, side)."""
    pixels = np.arange(side) - starts[:, None]  # (starts, side), from the patch's edge
    centres = (np.arange(CELLS) + 0.5) * CELL - 0.5
    weights = np.maximum(0.0, 1 - np.abs(pixels[:, None] - centres[:, None]) / CELL)
    weights *= ((pixels >= 0) & (pixels < PATCH))[:, None]
    flat: Singles = weights.reshape(-1, side).astype(np.float32)
    return flat


def _normalised(raw: Singles) -> Singles:
    length = np.linalg.norm(raw, axis=1, keepdims=True)
    cut = np.minimum(raw / np.maximum(length, FLAT), CUT) * (length > FLAT)
    descriptors: Singles = cut / np.maximum(np.linalg.norm(cut, axis=1, keepdims=True), 1e-12)
    return descriptors
