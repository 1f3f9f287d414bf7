"""Quality in the paper's protocol: 60 bits, stratified random splits, database = training items.

`paper` is the paper's method (tanh relaxation, K = 10 neighbour triplets); `default` is CGHash as it comes; `best` is
RBF functions with triplets drawn from whole classes. With "+roots" behind a name, items are square roots of features,
each within the range that it has among the training items.

    python benchmarks/quality/paper.py [--sets isolet,usps] [--methods paper,default,…] [--splits 5] [--output paper]
    python benchmarks/quality/paper.py --sets usps --methods paper,paper+roots --splits 100 --output paper_splits
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.preprocessing import MinMaxScaler

sys.path.insert(0, str(Path(__file__).parents[1]))
from cghash import CGHash
from cghash.criteria import evaluate, evaluate_vectors
from common import load, split, write

SIZES = {"isolet": (5000, 2000), "usps": (4000, 2000)}
GOALS = {
    "isolet": {"map": 0.82, "top": 0.91, "knn_error": 0.05},
    "usps": {"map": 0.76, "top": 0.91, "knn_error": 0.042},
}
METHODS = {
    "paper": {"method": "paper", "sampling": "neighbors", "n_neighbors": 10, "C": 0.003},
    "default": {},
    "best": {"hash_function": "rbf", "sampling": "classes", "C": 0.03},
}


def roots(train: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Square roots of features, from 0 to 1 over the range of the training items; what lies beyond is clipped."""
    scaler = MinMaxScaler(clip=True).fit(train)
    return np.sqrt(scaler.transform(train)), np.sqrt(scaler.transform(queries))


def measure(name: str, method: str, seed: int) -> dict[str, object]:
    train, y_train, queries, y_queries = split(*load(name), *SIZES[name], seed)
    began = time.perf_counter()
    settings = method.removesuffix("+roots")
    if settings != method:
        train, queries = roots(train, queries)
    if settings == "euclidean":
        figures, bits = evaluate_vectors(queries, train, y_queries, y_train), 0
    else:
        model = CGHash(60, random_state=seed, **METHODS[settings]).fit(train, y_train)
        bits = model.n_bits_
        codes = model.transform(queries), model.transform(train)
        figures = evaluate(*codes, model.weights_, y_queries, y_train)
    row = {"set": name, "method": method, "seed": seed, **{k: round(float(v), 4) for k, v in figures.items()}}
    return row | {"bits": bits, "seconds": round(time.perf_counter() - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="isolet,usps")
    parser.add_argument("--methods", default="euclidean,euclidean+roots,paper,paper+roots,default,best")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--output", default="paper")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in options.sets.split(","):
        for method in options.methods.split(","):
            rows += [measure(name, method, seed) for seed in range(options.splits)]
            mine = rows[-options.splits :]
            means = {k: round(float(np.mean([r[k] for r in mine])), 4) for k in ("map", "top", "knn_error", "seconds")}
            print(name, method, means, "goal", GOALS[name] if method.startswith("paper") else "", flush=True)
    write(options.output, " ".join(["python", *sys.argv]), rows)


if __name__ == "__main__":
    main()
