"""Exact search under the weighted Hamming distance."""

from __future__ import annotations

from .weighted_hamming import WeightedHammingIndex

__all__ = ["WeightedHammingIndex"]
