"""What a loss and a family of hash functions are worth: 16 bits of digits, every combination.

The same triplets for all; 500 digits that were not learned from are looked up among 300 that were.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from cghash import CGHash
from cghash.criteria import evaluate
from cghash.lab.drawing import STYLE

X, y = load_digits(return_X_y=True)
base, queries, y_base, y_queries = X[:300], X[300:800], y[:300], y[300:800]
losses = ["squared_hinge", "logistic", "exponential", "hinge"]
families = {"linear": "#0067b8", "rbf": "#1b2f8f", "tree": "#2b982f", "stump": "#97633f"}

quality = np.zeros((len(families), len(losses)))
print("family   " + "  ".join(f"{loss:>13}" for loss in losses))
for row, family in enumerate(families):
    for column, loss in enumerate(losses):
        model = CGHash(16, loss=loss, hash_function=family, n_neighbors=4, random_state=0).fit(base, y_base)
        found = evaluate(model.transform(queries), model.transform(base), model.weights_, y_queries, y_base)
        quality[row, column] = found["map"]
    print(f"{family:<9}" + "  ".join(f"{value:13.2f}" for value in quality[row]))

with plt.rc_context(STYLE):
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for row, (family, colour) in enumerate(families.items()):
        axes.bar(np.arange(4) + 0.2 * row - 0.3, quality[row], width=0.18, color=colour, label=family)
    axes.set(ylabel="mean average precision", ylim=(0, 1.0))
    axes.set_xticks(range(4), losses)
    axes.grid(visible=False, axis="x")
    axes.legend(ncols=4, loc="upper center")
    figure.savefig("losses_and_families.png", dpi=150)
