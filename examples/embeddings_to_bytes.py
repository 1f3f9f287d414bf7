"""Embeddings without labels, into bytes: how many of the true neighbours are still found.

5000 made embeddings of 128 numbers, of 40 topics on a curved surface of 16 dimensions, with noise around it. Codes are
learned from 1500 of them; the neighbours that count are the 10 nearest of the float vectors themselves.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import NearestNeighbors

from cghash import CGHash
from cghash.criteria import recall_by_codes
from cghash.lab.drawing import STYLE
from cghash.lab.reporting.line_styles import line_styles_of
from cghash.peers import ITQ, LSH

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 16))[rng.integers(40, size=5000)] + rng.normal(size=(5000, 16))
X = np.tanh(X @ rng.normal(size=(16, 128)) / 4) + 0.3 * rng.normal(size=(5000, 128))
X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
learn, base, queries = X[:1500], X[:4500], X[4500:]
true = NearestNeighbors(n_neighbors=10).fit(base).kneighbors(queries, return_distance=False)

cuts = [10, 20, 50, 100, 200]
hashers = {"CGHash": CGHash(64, C=0.03, random_state=0), "ITQ": ITQ(64, random_state=0), "LSH": LSH(64, random_state=0)}
found = {}
for name, hasher in hashers.items():
    hasher.fit(learn)
    found[name] = recall_by_codes(true, hasher.transform(queries), hasher.transform(base), hasher.weights_, cuts)

print(f"{X[0].nbytes} bytes an item become {hashers['CGHash'].encode(X[:1]).nbytes}; share of the 10 true neighbours")
for name, recall in found.items():
    print(f"{name:<7}", "  ".join(f"{r:.2f} among {k}" for k, r in zip(cuts, recall, strict=True)))

with plt.rc_context(STYLE):
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for name, style in line_styles_of(found).items():
        axes.plot(cuts, found[name], label=f"{name}, 8 bytes", **style.line)
    axes.set(xscale="log", xlabel="items looked at", ylabel="true neighbours among them", ylim=(0, 1.02))
    axes.set_xticks(cuts, cuts)
    axes.minorticks_off()
    axes.legend(loc="lower right")
    figure.savefig("embeddings_to_bytes.png", dpi=150)
