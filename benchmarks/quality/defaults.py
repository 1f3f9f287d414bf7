"""How the defaults were chosen: family × sampling × C on six data sets, under two protocols.

`seen`: stratified split, queries of the training classes, database = training items. `unseen`: a third of the classes
is held out of training; queries and database come from these alone.

    python benchmarks/quality/defaults.py [--sets usps,isolet] [--seeds 1]
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from cghash import CGHash
from cghash.criteria import evaluate
from common import load, split, write

SETS = ("usps", "isolet", "mnist", "scene15", "newsgroups", "cifar10")


def seen(X: np.ndarray, y: np.ndarray, n: int, seed: int) -> dict[str, np.ndarray]:
    train, y_train, queries, y_queries = split(X, y, n, 1000, seed)
    return {"train": train, "y_train": y_train, "database": train, "y_database": y_train,
            "queries": queries, "y_queries": y_queries}  # fmt: skip


def unseen(X: np.ndarray, y: np.ndarray, n: int, seed: int) -> dict[str, np.ndarray]:
    classes = np.random.default_rng(seed).permutation(np.unique(y))
    held = np.isin(y, classes[: len(classes) // 3])
    train, y_train, _, _ = split(X[~held], y[~held], n, 100, seed)
    n = min(n, int(held.sum()) - 400)
    database, y_database, queries, y_queries = split(X[held], y[held], n, 400, seed)
    return {"train": train, "y_train": y_train, "database": database, "y_database": y_database,
            "queries": queries, "y_queries": y_queries}  # fmt: skip


def measure(data: dict[str, np.ndarray], seed: int, **parameters: object) -> dict[str, float]:
    began = time.perf_counter()
    model = CGHash(64, random_state=seed, **parameters).fit(data["train"], data["y_train"])
    seconds = time.perf_counter() - began
    bits = model.transform(data["queries"]), model.transform(data["database"])
    figures = evaluate(*bits, model.weights_, data["y_queries"], data["y_database"])
    return {**{k: round(float(v), 4) for k, v in figures.items()}, "bits": model.n_bits_, "seconds": round(seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--families", default="linear,rbf")
    parser.add_argument("--samplings", default="mixed,classes,neighbors")
    parser.add_argument("--Cs", default="0.01,0.03")
    parser.add_argument("--items", type=int, default=1000, help="to train on")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--output", default="defaults")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in options.sets.split(","):
        X, y = load(name)
        for seed, protocol in itertools.product(range(options.seeds), (seen, unseen)):
            data = protocol(X, y, options.items, seed)
            choices = (options.families.split(","), options.samplings.split(","), map(float, options.Cs.split(",")))
            for family, sampling, C in itertools.product(*choices):
                figures = measure(data, seed, hash_function=family, sampling=sampling, C=C)
                rows.append({"set": name, "protocol": protocol.__name__, "seed": seed, "family": family,
                             "sampling": sampling, "C": C, **figures})  # fmt: skip
                print(rows[-1], flush=True)
    write(options.output, " ".join(["python", *sys.argv]), rows)


if __name__ == "__main__":
    main()
