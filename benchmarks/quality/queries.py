"""How much a bit should count for a query, by its margin: rules compared with plain codes, and with `model.query`.

A bit is whether a number m, its margin, is above 0. Each rule gives the weight of a bit for a query, times that of the
model: 1 ("codes"), |m|, |m| over the length of the hyperplane's normal ("distance"), |m| over its mean s of
the training items, that with a root or cut off at 1, and, not from m, what least squares decode of the bit
("decoder"). "query" is what the package does. Measured by brute force: the share of the 10 nearest floats among the
first 10 and 100, and the share of the first 100 with the query's label, with its difference from "codes" and the
standard error of that.

    python benchmarks/quality/queries.py [--sets digits,usps]
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from cghash import CGHash, peers
from common import load, write

SETS = ("digits", "usps", "isolet", "mnist", "cifar10", "newsgroups", "glove")
MOST = {"newsgroups": 18_846, "glove": 50_000}  # items; 10 000 of other sets
N_QUERIES = 500
LENGTH = 64  # bits up to which all rules are measured
N_LABELLED = 3000  # items to learn from with labels
N_TRAIN = 10_000  # and without
NORMALS = ("directions_", "coef_", "coefficients_", "coef")

Array = np.ndarray


class Data(NamedTuple):
    X: Array  # the collection, of which the first items are learned from
    y: Array | None
    queries: Array
    y_queries: Array | None
    nearest: Array  # (q, 10) by Euclidean distance


def data_of(name: str) -> Data:
    """A random part of a set, split into a collection and queries."""
    y = None
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
    elif name == "glove":
        with np.load(Path(os.environ["CGHASH_DATA"]) / "glove100.npz") as arrays:
            X = arrays["X"][: MOST[name]].astype(np.float32)
        X /= np.linalg.norm(X, axis=1, keepdims=True)  # compared by cosine
    else:
        X, y = load(name)
    rows = np.random.default_rng(0).permutation(len(X))[: MOST.get(name, 10_000)]
    X, y = X[rows].astype(np.float32), None if y is None else y[rows]
    queries, rest = X[:N_QUERIES], X[N_QUERIES:]
    apart = np.sum(rest * rest, axis=1) - 2 * queries @ rest.T
    labels = (None, None) if y is None else (y[N_QUERIES:], y[:N_QUERIES])
    return Data(rest, labels[0], queries, labels[1], first(apart, 10))


def first(distances: Array, k: int) -> Array:
    """The k nearest (q, k), equal distances in the order of their ids."""
    some = np.sort(np.argpartition(distances, k, axis=1)[:, : 2 * k], axis=1)
    order = np.argsort(np.take_along_axis(distances, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order[:, :k], axis=1)


def models(data: Data) -> Iterator[tuple[str, Any]]:
    """Fitted models by name: all lengths of some, 64 bits of the rest."""
    X, y = data.X[:N_TRAIN], data.y
    long = {"ITQ": {"projection": "pca", "random_state": 0}, "LSH": {"random_state": 0}, "PCAH": {}, "SignBits": {}}
    for name, parameters in long.items():
        for bits in (32, 64, 128, 256):
            yield name, getattr(peers, name)(bits, **parameters).fit(X)
    for name in ("KLSH", "AGH"):
        yield name, getattr(peers, name)(64, random_state=0).fit(X)
    for name in ("SPH", "LSI", "LCH"):
        yield name, getattr(peers, name)(64).fit(X)
    X = X[:N_LABELLED]
    yield "STH", peers.STH(64).fit(X)
    unlabelled = CGHash(64, random_state=0, n_jobs=1).fit(X)
    yield from (("CGHash linear, no labels", unlabelled.truncate(min(m, unlabelled.n_bits_))) for m in (32, 64))
    if y is None:
        return
    y = y[:N_LABELLED]
    for name in ("SDH", "KSH", "BRE", "SPLH", "ITQ", "SSC"):
        yield f"{name}, labels", getattr(peers, name)(64, random_state=0).fit(X, y)
    yield "LDAHash, labels", peers.LDAHash(64).fit(X, y)
    yield "FastHash, labels", peers.FastHash(64, n_trees=20, random_state=0).fit(X, y)
    for family in ("linear", "rbf", "stump"):
        model = CGHash(64, hash_function=family, random_state=0, n_jobs=1).fit(X, y)
        yield from ((f"CGHash {family}, labels", model.truncate(min(m, model.n_bits_))) for m in (32, 64))


def margins_of(model: Any, X: Array) -> Array:
    """Margins (n, bits), of stumps too, for which the package has none."""
    functions = getattr(model, "functions_", None)
    if getattr(functions, "family", "") == "stump":
        return np.asarray(X[:, functions.feature] - functions.threshold)
    if isinstance(model, peers.SSC):
        return np.asarray(X[:, model.feature_] - model.threshold_)[:, : model.n_bits_]
    return np.asarray(model._margins(X))[:, : model.n_bits_]


def rules(model: Any, data: Data) -> dict[str, Array]:
    """Weights (q, bits) of each rule."""
    train = data.X[: N_LABELLED if data.y is not None else N_TRAIN]
    m, of_train = margins_of(model, data.queries), margins_of(model, train)
    size, s = np.abs(m), np.abs(of_train).mean(axis=0)
    ratio = size / np.where(s > 0, s, 1.0)
    found = {"codes": np.ones_like(size), "margin": size, "over mean": ratio}
    found |= {"root": np.sqrt(ratio), "cut at 1": np.minimum(ratio, 1.0), "cut at ½": np.minimum(ratio, 0.5)}
    owner = getattr(model, "functions_", model)
    for normals in (getattr(owner, name, None) for name in NORMALS):
        if normals is not None:
            length = np.linalg.norm(normals, axis=1)[: model.n_bits_]
            found["distance"] = size / np.where(length > 0, length, 1.0)
    found = {name: weights * model.weights_ for name, weights in found.items()}
    signs = np.where(of_train > 0, 1.0, -1.0)
    ridge = 1e-3 * len(signs) * np.eye(signs.shape[1])
    decoded = np.linalg.solve(signs.T @ signs + ridge, signs.T @ (train - train.mean(axis=0)))
    along = (data.queries - train.mean(axis=0)) @ decoded.T
    found["decoder"] = np.maximum(np.where(m > 0, along, -along), 0.0)
    return found | {"query": model.query(data.queries).weights}


def measure(name: str, data: Data, method: str, model: Any) -> list[dict[str, Any]]:
    """A row for each rule."""
    bits = np.concatenate([model.transform(data.X[i : i + 8192]) for i in range(0, len(data.X), 8192)])
    turned = 1.0 - 2.0 * model.transform(data.queries)
    rows, plain = [], np.zeros(0)
    weights_by_rule = rules(model, data)
    if model.n_bits_ > LENGTH:  # of longer codes, what the package does and what it is compared with
        weights_by_rule = {rule: weights_by_rule[rule] for rule in ("codes", "margin", "query")}
    for rule, weights in weights_by_rule.items():
        ranked = first((weights * turned).astype(np.float32) @ bits.T.astype(np.float32), 100)
        found = np.array(
            [np.isin(near, hits[:k]).mean() for near, hits in zip(data.nearest, ranked, strict=True) for k in (10, 100)]
        )
        row = {"set": name, "method": method, "bits": model.n_bits_, "rule": rule}
        row |= {"top_10": found[::2].mean(), "top_100": found[1::2].mean()}
        if data.y is not None and data.y_queries is not None:
            labels = np.mean(data.y[ranked] == data.y_queries[:, None], axis=1)
            plain = labels if rule == "codes" else plain
            gain = labels - plain
            row |= {"labels": labels.mean(), "gain": gain.mean(), "error": gain.std() / np.sqrt(len(gain))}
        rows.append({key: round(float(v), 4) if isinstance(v, float) else v for key, v in row.items()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS if os.environ.get("CGHASH_DATA") else SETS[:1]))
    parser.add_argument("--output", default="queries")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for name in options.sets.split(","):
        data = data_of(name)
        for method, model in models(data):
            if all((r["set"], r["method"], r["bits"]) != (name, method, model.n_bits_) for r in rows):
                found = measure(name, data, method, model)
                print(name, method, model.n_bits_, *(f"{r['rule']} {r['top_100']:.3f}" for r in found), flush=True)
                rows += found
    write(options.output, " ".join(["python", *sys.argv]), rows)


if __name__ == "__main__":
    main()
