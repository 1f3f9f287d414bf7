"""How well plain Hamming distance on expanded codes ranks as the weighted distance does: 128, 256 and 512 bits.

Models of 64 bits. `correlation` is Spearman's, over the database, mean over queries; `top k` the share of the k nearest
that are among the k nearest of the expanded codes, order (distance, id); `in 10 k` the share that is among their 10·k
nearest, from which an exact ranking of these finds them. `plain` counts every bit of the code once. Without CGHASH_DATA
only scikit-learn's digits are measured.

    python benchmarks/quality/expansion.py [--sets digits,usps] [--families linear,rbf]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

sys.path.insert(0, str(Path(__file__).parents[1]))
from cghash import CGHash
from cghash.codes import expand, expansion_of, unpack, weighted_hamming
from common import load, split, write

SETS = ("digits", "usps", "isolet", "mnist", "newsgroups")
BUDGETS = (128, 256, 512)
TOPS = (10, 100)


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name != "digits":
        return load(name)
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X.astype(np.float32), y


def compared(exact: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Figures of two rankings (q, n), means over queries."""
    ranks = [np.apply_along_axis(rankdata, 1, d) for d in (exact, other)]
    figures = {"correlation": np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(*ranks, strict=True)])}
    orders = [np.argsort(d, axis=1, kind="stable") for d in (exact, other)]
    for k in TOPS:
        for name, among in ((f"top_{k}", k), (f"top_{k}_in_{10 * k}", 10 * k)):
            hits = [np.isin(a[:k], b[:among]).mean() for a, b in zip(*orders, strict=True)]
            figures[name] = np.mean(hits)
    return {name: round(float(value), 4) for name, value in figures.items()}


def measure(name: str, family: str, n_queries: int, seed: int) -> list[dict[str, object]]:
    X, y = data_of(name)
    train, y_train, rest, _ = split(X, y, min(1000, len(y) // 3), min(10_000, len(y) - len(y) // 3 - 10), seed)
    model = CGHash(64, hash_function=family, random_state=seed).fit(train, y_train)
    codes = model.encode(rest)
    queries, database = codes[:n_queries], codes[n_queries:]
    bits = [unpack(c, model.n_bits_) for c in (queries, database)]
    exact = weighted_hamming(*bits, model.weights_)  # type: ignore[call-arg]
    about = {"set": name, "family": family, "database": len(database), "queries": n_queries, "seed": seed}
    about |= {"bits": model.n_bits_, "positive": int(np.sum(model.weights_ > 0))}
    rows = [about | {"expansion": "plain"} | compared(exact, weighted_hamming(*bits, np.ones(model.n_bits_)))]  # type: ignore[call-arg]
    for n_bits in BUDGETS:
        counts = expansion_of(model.weights_, n_bits)
        longer = [unpack(expand(c, model.weights_, n_bits), n_bits) for c in (queries, database)]
        lost = int(np.sum((counts == 0) & (model.weights_ > 0)))
        row = about | {"expansion": n_bits, "used": int(counts.sum()), "lost": lost}
        rows.append(row | compared(exact, weighted_hamming(*longer, np.ones(n_bits))))  # type: ignore[call-arg]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS if os.environ.get("CGHASH_DATA") else SETS[:1]))
    parser.add_argument("--families", default="linear,rbf")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--output", default="expansion")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, family in itertools.product(options.sets.split(","), options.families.split(",")):
        rows += measure(name, family, options.queries, seed=0)
        print(*rows[-4:], sep="\n", flush=True)
    write(options.output, " ".join(["python", *sys.argv]), rows)


if __name__ == "__main__":
    main()
