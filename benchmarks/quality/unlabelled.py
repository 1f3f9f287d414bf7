"""How the default of a fit without labels was chosen: which items are near, which far, how many, C, and the family.

Learned from items without their labels; the same items are the database, others ask. Measured by labels (mAP) and by
the share of the 10 nearest by Euclidean distance that are among the 50 nearest by code, of 32 and of 64 bits. ITQ by
PCA and Euclidean distance itself stand beside.

    python benchmarks/quality/unlabelled.py [--sets digits,usps] [--seeds 2]
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from cghash import CGHash
from cghash.criteria import euclidean_neighbors, evaluate, evaluate_vectors, recall_by_codes
from cghash.learning.cpu.neighbors import nearest
from cghash.learning.supervision import draw_distinct
from cghash.learning.triplets import TripletSet, from_lists, join
from cghash.peers import ITQ
from common import load, split, write

SETS = ("digits", "usps", "isolet", "newsgroups")
BITS = (32, 64)
CHOSEN = "K nearest × rest"
RETRIEVED = 50  # items looked through for the 10 nearest

Ints = np.ndarray
Way = Callable[[Ints, int, np.random.Generator], TripletSet]


def blocks(near: Ints, far: Ints) -> TripletSet:
    return from_lists(near, far, len(near))


def drawn(order: Ints, first: int, last: int, k: int, rng: np.random.Generator) -> Ints:
    """For each item, k of those that it ranks from `first` up to `last`, nearest first: (n, k)."""
    ranks = np.sort(first + draw_distinct(rng, len(order), last - first, k), axis=1)
    return np.take_along_axis(order, ranks, axis=1)


def next_ones(order: Ints, k: int, rng: np.random.Generator) -> TripletSet:
    return blocks(order[:, :k], order[:, k : 2 * k])


def rest(order: Ints, k: int, rng: np.random.Generator) -> TripletSet:
    return blocks(order[:, :k], drawn(order, k, order.shape[1], k, rng))


def middle(order: Ints, k: int, rng: np.random.Generator) -> TripletSet:
    return blocks(order[:, :k], drawn(order, k, order.shape[1] // 10, k, rng))


def wide(order: Ints, k: int, rng: np.random.Generator) -> TripletSet:
    near = order.shape[1] // 40
    return blocks(drawn(order, 0, near, k, rng), drawn(order, near, order.shape[1], k, rng))


def anyone(order: Ints, k: int, rng: np.random.Generator) -> TripletSet:
    both = drawn(order, 0, order.shape[1], 2 * k, rng)
    return blocks(both[:, :k], both[:, k:])


def both(*ways: Way) -> Way:
    return lambda order, k, rng: join([way(order, k, rng) for way in ways])


# What is near × what is far, for each item; n items, K of each kind
WAYS: dict[str, Way] = {
    "K nearest × next K": next_ones,
    "K nearest × rest": rest,
    "K nearest × next K, and × rest": both(next_ones, rest),
    "K nearest × middle": middle,
    "K nearest × middle, and × rest": both(middle, rest),
    "nearest n/40 × rest": wide,
    "K nearest × rest, and nearest n/40 × rest": both(rest, wide),
    "nearer × farther of any 2K": anyone,
    "K nearest × rest, and nearer × farther": both(rest, anyone),
}


# The settings measured: every way with several C, then more and fewer neighbours and RBF functions in the way chosen
SETTINGS: list[dict[str, Any]] = [
    *({"family": "linear", "way": way, "K": 10, "C": C} for way, C in itertools.product(WAYS, (0.01, 0.03, 0.1))),
    *({"family": "linear", "way": CHOSEN, "K": K, "C": C} for K, C in itertools.product((5, 20, 30), (0.03, 0.1))),
    {"family": "linear", "way": CHOSEN, "K": 10, "C": 0.3},
    *({"family": "rbf", "way": CHOSEN, "K": 10, "C": C} for C in (0.03, 0.1)),
]


def data_of(name: str, n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Items to learn from and search, and items that ask, with their labels."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return split(X, y, min(n, 1297), 500, seed)
    return split(*load(name), n, 500, seed)


def figures(bits: tuple[Ints, Ints], weights: Any, data: tuple[np.ndarray, ...], true: Ints) -> dict[str, float]:
    _, y, _, y_queries = data
    found = evaluate(*bits, weights, y_queries, y)
    recall = recall_by_codes(true, *bits, weights, [RETRIEVED])[0]
    return {"map": round(float(found["map"]), 4), "recall": round(float(recall), 4)}


def order_of(X: np.ndarray) -> Ints:
    """All other items by their distance from each: (n, n - 1)."""
    return nearest(X, None, len(X) - 1, 0, 1)[0]


def beside(data: tuple[np.ndarray, ...], true: Ints, seed: int) -> list[dict[str, Any]]:
    """Euclidean distance and ITQ on the same items."""
    X, y, queries, y_queries = data
    rows = [{"family": "Euclidean", "map": round(float(evaluate_vectors(queries, X, y_queries, y)["map"]), 4)}]
    for bits in BITS:
        model = ITQ(bits, projection="pca", random_state=seed).fit(X)
        codes = model.transform(queries), model.transform(X)
        rows.append({"family": "ITQ", "bits": bits, **figures(codes, model.weights_, data, true)})
    return rows


def measure(data: tuple[np.ndarray, ...], true: Ints, order: Ints, seed: int, setting: dict[str, Any]) -> list[Any]:
    """A row for each number of bits."""
    X, _, queries, _ = data
    triplets = WAYS[setting["way"]](order, setting["K"], np.random.default_rng(seed))
    began = time.perf_counter()
    model = CGHash(max(BITS), C=setting["C"], hash_function=setting["family"], n_jobs=1, random_state=seed)
    model.fit(X, triplets=triplets)
    seconds = round(time.perf_counter() - began, 1)
    rows = []
    for bits in BITS:
        shorter = model.truncate(min(bits, model.n_bits_))
        codes = shorter.transform(queries), shorter.transform(X)
        found = figures(codes, shorter.weights_, data, true)
        rows.append({**setting, "bits": bits, "learned": shorter.n_bits_, **found, "seconds": seconds})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--items", type=int, default=1500, help="to learn from; of digits at most 1297")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--output", default="unlabelled")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for name, seed in itertools.product(options.sets.split(","), range(options.seeds)):
        data = data_of(name, options.items, seed)
        true, order = euclidean_neighbors(data[2], data[0], 10), order_of(data[0])
        found = beside(data, true, seed)
        for setting in SETTINGS:
            found += measure(data, true, order, seed, setting)
            print({"set": name, "seed": seed, **found[-1]}, flush=True)
        rows += [{"set": name, "seed": seed, **row} for row in found]
    write(options.output, " ".join(["python", *sys.argv]), rows)


if __name__ == "__main__":
    main()
