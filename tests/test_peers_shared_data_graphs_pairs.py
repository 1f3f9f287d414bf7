"""STH, AGH, SSC and BRE on CIFAR-10 by GIST, where the folder CGHASH_DATA holds it: the order of what is published.

Published for 1000 queries and 5000 training items, mAP: BRE 0.16-0.20, anchor graphs about 0.15-0.18, between the
0.12 of LSH and the 0.30 of KSH (Liu et al.: Supervised hashing with kernels, CVPR 2012, and others after it). The
features here are computed anew, and the training items are the database.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from cghash.criteria import evaluate
from cghash.peers import AGH, BRE, SSC, STH

FOLDER = os.environ.get("CGHASH_DATA")
pytestmark = [
    pytest.mark.portable,
    pytest.mark.skipif(not FOLDER, reason="CGHASH_DATA names no folder with the data sets"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def items():
    with np.load(Path(FOLDER) / "cifar10_gist512.npz") as arrays:
        X, y = arrays["X"], arrays["y"]
    order = np.random.default_rng(0).permutation(len(y))[:2400]
    X, y = X[order].astype(np.float32), y[order]
    return X[400:], y[400:], X[:400], y[:400]


@pytest.mark.parametrize(
    ("model", "least", "most"),
    [
        (STH(32), 0.12, 0.18),
        (AGH(32, random_state=0), 0.14, 0.19),
        (AGH(32, layers=1, random_state=0), 0.14, 0.19),
        (SSC(32, random_state=0), 0.14, 0.2),
        (BRE(32, random_state=0), 0.16, 0.24),
    ],
    ids=repr,
)
def test_precision_is_of_the_order_that_is_published(items, model, least, most):
    X, y, queries, wanted = items
    model.fit(X, y)
    found = evaluate(model.transform(queries), model.transform(X), model.weights_, wanted, y)["map"]
    assert least < found < most
