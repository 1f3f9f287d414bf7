"""The methods that CGHash is compared with, each an estimator with its face: `fit`, `transform`, `encode`, files."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {  # name: module; each file cites its paper
    "LSH": "lsh",
    "LSI": "lsi",
    "LCH": "lch",
    "SPH": "sph",
    "SPLH": "splh",
    "SSC": "ssc",
    "STH": "sth",
    "AGH": "agh",
    "BRE": "bre",
    "ITQ": "itq",
    "PCAH": "pcah",
    "KLSH": "klsh",
    "LDAHash": "ldahash",
    "SignBits": "signbits",
    "KSH": "ksh",
    "SDH": "sdh",
    "FastHash": "fasthash",
    "PQ": "pq",
    "RaBitQ": "rabitq",
}
__all__ = ["PEERS", *sorted(_HOMES)]

PEERS = tuple(_HOMES)


def __getattr__(name: str) -> Any:
    """A peer's file is read when it is asked for."""
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
