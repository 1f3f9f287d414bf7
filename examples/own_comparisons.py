"""Your own notion of alike: the same signs, compared by their colour and compared by their shape.

Each sign has a colour, a shape and much that has nothing to do with either. Two people answer the same 1000 questions
"which of these two is more like this one?", one by colour, one by shape; each gets codes of two bytes of their own.
"""

import matplotlib.pyplot as plt
import numpy as np

from cghash import CGHash
from cghash.lab.drawing import STYLE

COLOURS = ["#0067b8", "#d42a2a", "#2b982f", "#f58314"]
SHAPES = ["o", "s", "^", "*"]
rng = np.random.default_rng(0)
colour, shape = rng.integers(4, size=(2, 600))
X = np.hstack([np.eye(4)[colour], np.eye(4)[shape]]) @ rng.normal(size=(8, 32)) + 1.6 * rng.normal(size=(600, 32))
questions = np.stack([rng.choice(500, 3, replace=False) for _ in range(1000)])  # the last 100 signs are never shown


def answered(notion):
    """The questions that one's notion decides, as triplets (anchor, near, far)."""
    anchor, left, right = questions.T
    near_left, near_right = notion[anchor] == notion[left], notion[anchor] == notion[right]
    T = np.where(near_left[:, None], questions, questions[:, [0, 2, 1]])
    return T[near_left != near_right]


def nearest(notion):
    model = CGHash(16, C=0.03, random_state=0).fit(X, triplets=answered(notion))
    return model.build_index(X[:500]).search(model.encode(X[500:]), k=8)[1]


euclidean = ((X[500:, None] - X[:500]) ** 2).sum(axis=2).argsort(axis=1)[:, :8]
found = {"before": euclidean, "by colour": nearest(colour), "by shape": nearest(shape)}
for name, rows in found.items():
    alike = [100 * np.mean(notion[rows] == notion[500:, None]) for notion in (colour, shape)]
    print(f"{name:<10} of the 8 nearest {alike[0]:.0f} % have the same colour, {alike[1]:.0f} % the same shape")

with plt.rc_context({**STYLE, "axes.grid": False}):
    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for line, query in enumerate((0, 5)):
        for part, (name, rows) in enumerate(found.items()):
            y = -4 * line - part
            axes.text(-0.7, y, name, ha="right", va="center")
            for x, sign in enumerate([500 + query, *rows[query]]):
                look = {"marker": SHAPES[shape[sign]], "color": COLOURS[colour[sign]]}
                axes.scatter(x if x == 0 else x + 0.6, y, s=260, **look)
    axes.set(xlim=(-2.6, 9.2), ylim=(-6.6, 1.0), xticks=[0, 5.1], xticklabels=["asked", "nearest"], yticks=[])
    axes.tick_params(length=0, top=True, bottom=False, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    figure.savefig("own_comparisons.png", dpi=150)
