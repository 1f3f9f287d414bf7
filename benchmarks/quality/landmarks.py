"""Why RBF functions have 2000 landmarks: quality and seconds of a fit over their number, on one split a set.

The settings are those of `best` in paper.py; the items that labels are learned from are the database, others ask.

    python benchmarks/quality/landmarks.py [--sets isolet,usps] [--landmarks 300,1000,2000,4000]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from cghash import CGHash
from cghash.criteria import evaluate
from cghash.learning.families import rbf
from common import load, split, write

ITEMS = {"isolet": (5000, 2000), "usps": (4000, 2000)}  # to learn from, and that ask


def fitted(n_landmarks: int, X: np.ndarray, y: np.ndarray, seed: int) -> CGHash:
    """60 bits over so many landmarks; the number is the family's, and no parameter of CGHash."""

    class Model(CGHash):
        def _family(self) -> rbf.RBFFamily:
            return rbf.RBFFamily(refined=True, n_landmarks=n_landmarks)

    return Model(60, hash_function="rbf", sampling="classes", C=0.03, n_jobs=1, random_state=seed).fit(X, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(ITEMS))
    parser.add_argument("--landmarks", default="300,1000,2000,4000")
    parser.add_argument("--seed", type=int, default=0, help="of the split and the fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in options.sets.split(","):
        X, y, queries, y_queries = split(*load(name), *ITEMS[name], options.seed)
        for n_landmarks in map(int, options.landmarks.split(",")):
            began = time.process_time()
            model = fitted(n_landmarks, X, y, options.seed)
            seconds = time.process_time() - began
            found = evaluate(model.transform(queries), model.transform(X), model.weights_, y_queries, y)
            figures = {key: round(float(value), 4) for key, value in found.items()}
            rows.append({"set": name, "landmarks": n_landmarks, **figures, "seconds": round(seconds, 1)})
            print(rows[-1], flush=True)
    write("landmarks", " ".join(["python", *sys.argv]), rows)


if __name__ == "__main__":
    main()
