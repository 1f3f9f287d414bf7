"""A program on the native kernels and on their NumPy twins gives the same answers; each kernel has its own test too."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from cghash._kernels import native

pytestmark = [pytest.mark.core, pytest.mark.portable, pytest.mark.native]

PROGRAM = """
import json, sys
import numpy as np
from sklearn.datasets import load_digits
from cghash import CGHash, WeightedHammingIndex, _kernels
from cghash.criteria import retrieve_by_codes

X, y = load_digits(return_X_y=True)
X, y, queries, truth = X[:150], y[:150], X[150:180], y[150:180]
answers = {"kernels": _kernels.instruction_set()}

def fit_of(model):
    return [model.result_.objective, model.encode(queries).tolist()]

for how in (dict(hash_function="linear"), dict(hash_function="rbf"), dict(hash_function="stump"),
            dict(loss="hinge"), dict(loss="logistic", regularizer="linf"), dict(loss="exponential", method="paper")):
    model = CGHash(6, n_neighbors=3, random_state=0, n_jobs=1, **how).fit(X, y)
    answers[f"fit {how}"] = fit_of(model)
answers["fit without labels"] = fit_of(CGHash(6, n_neighbors=3, random_state=0, n_jobs=1).fit(X))

rng = np.random.default_rng(0)
index = WeightedHammingIndex(75, rng.integers(0, 9, 75).astype(float))
codes = rng.integers(0, 256, (5000, 10), dtype=np.uint8)
codes[:, -1] &= 7
index.add(codes)
index.remove(np.arange(0, 5000, 7))
index.update(codes[:50], np.arange(1, 350, 7))
index.add(codes[:9], np.arange(9000, 9009))
for _ in range(2):
    near = index.search(codes[:40], 10)
    kept = index.search(codes[3], 5, filter=index.ids % 2 == 0)
    within = index.range_search(codes[:3], 60.0)
    answers.setdefault("search", []).append([part.tolist() for found in (near, kept, within) for part in found])
    index.prepare()
    index.save(sys.argv[1])
    index = WeightedHammingIndex.load(sys.argv[1], writable="memory")
    index.reweight(rng.random(75))
bits = np.unpackbits(codes[:400], axis=1)
found = retrieve_by_codes(bits[:60], bits[60:], rng.random(80), np.arange(60) % 3, np.arange(340) % 3)
answers["criteria"] = [found.map, found.knn_error]
print(json.dumps(answers))
"""


def answers_of(kernels, path):
    """What the program prints on some kernels."""
    told = os.environ | {"CGHASH_KERNELS": kernels}
    done = subprocess.run([sys.executable, "-c", PROGRAM, path], env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.lengthy
@pytest.mark.skipif(native is None, reason="the native extension was not built")
def test_a_program_has_the_same_answers_on_the_twins(tmp_path):
    ours, twins = (answers_of(kernels, tmp_path / kernels) for kernels in ("native", "numpy"))
    assert twins.pop("kernels") == "numpy" != ours.pop("kernels")
    for name, answer in ours.items():
        if name.startswith("fit"):
            objective, codes = answer
            if name == "fit without labels":  # whose search parts ways in rounding on some processors
                assert twins[name][0] == pytest.approx(objective, rel=0.03)
            else:
                assert twins[name] == [pytest.approx(objective, rel=1e-9), codes], name
        else:
            assert twins[name] == answer, name
