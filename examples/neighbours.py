"""Who is near, before and after: the neighbours of four digits by their pixels, and by eight learned bytes.

The digits that ask were not learned from. A red frame marks a neighbour that is another digit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from cghash import CGHash
from cghash.lab.drawing import STYLE

K = 8
X, y = load_digits(return_X_y=True)
base, queries, y_base, y_queries = X[:300], X[300:], y[:300], y[300:]

pixels = NearestNeighbors(n_neighbors=K).fit(base).kneighbors(queries, return_distance=False)
model = CGHash(64, hash_function="rbf", random_state=0).fit(base, y_base)
_, codes = model.build_index(base).search(model.encode(queries), K)

found = {"by pixels, 64 numbers": pixels, "by code, 8 bytes": codes}
wrong = [(y_base[rows] != y_queries[:, None]).sum(axis=1) for rows in found.values()]
for name, count in zip(found, wrong, strict=True):
    print(f"{name}: {100 * count.mean() / K:.1f} % of the {K} nearest are another digit")
gained = wrong[0] - wrong[1]
print(f"of {len(queries)} queries: {(gained > 0).sum()} better, {(gained < 0).sum()} worse, the rest alike")

shown = [np.flatnonzero(y_queries == digit)[gained[y_queries == digit].argmax()] for digit in (1, 3, 8, 9)]
with plt.rc_context({**STYLE, "axes.grid": False}):
    figure = plt.figure(figsize=(9, 2.4))
    grid = figure.add_gridspec(4, 2 * K + 3, left=0.01, right=0.99, bottom=0.02, top=0.88, wspace=0.12, hspace=0.12)
    for line, query in enumerate(shown):
        pictures = [(0, queries[query], True)]
        for side, rows in enumerate(found.values()):
            first = 2 + side * (K + 1)
            pictures += [(first + i, base[row], y_base[row] == y_queries[query]) for i, row in enumerate(rows[query])]
        for place, picture, right in pictures:
            axes = figure.add_subplot(grid[line, place], xticks=[], yticks=[])
            axes.imshow(picture.reshape(8, 8), cmap="gray_r")
            axes.spines[:].set(visible=not right, color="#d42a2a", linewidth=2)
    for left, name in zip((0.02, 0.12, 0.59), ("asked", *found), strict=True):
        figure.text(left, 0.92, name)
    figure.savefig("neighbours.png", dpi=150)
