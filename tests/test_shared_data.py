"""Quality on real data sets, where the folder CGHASH_DATA holds them: floors well under what benchmarks measure."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from cghash import CGHash
from cghash.criteria import evaluate

FOLDER = os.environ.get("CGHASH_DATA")
pytestmark = [
    pytest.mark.skipif(not FOLDER, reason="CGHASH_DATA names no folder with the data sets"),
    pytest.mark.slow,
]


def quality(name, n_train, n_test, **parameters):
    with np.load(Path(FOLDER) / f"{name}.npz") as arrays:
        X, y = arrays["X"].astype(np.float32), arrays["y"]
    split = train_test_split(X, y, train_size=n_train, test_size=n_test, stratify=y, random_state=0)
    train, test, y_train, y_test = split
    model = CGHash(60, random_state=0, **parameters).fit(train, y_train)
    return evaluate(model.transform(test), model.transform(train), model.weights_, y_test, y_train)


@pytest.mark.parametrize(
    ("name", "sizes", "least"),
    [("isolet", (5000, 2000), (0.80, 0.89, 0.07)), ("usps", (4000, 2000), (0.75, 0.9, 0.065))],
)
def test_paper_settings_keep_the_quality_that_was_measured(name, sizes, least):
    figures = quality(name, *sizes, method="paper", sampling="neighbors")
    assert figures["map"] > least[0]
    assert figures["top"] > least[1]
    assert figures["knn_error"] < least[2]


@pytest.mark.parametrize(("name", "least"), [("isolet", 0.92), ("usps", 0.93)])
def test_rbf_functions_over_whole_classes_keep_the_quality_that_was_measured(name, least):
    assert quality(name, 1500, 1000, hash_function="rbf", sampling="classes", C=0.03)["map"] > least
