"""One fit, every length: quality over bits, with the learned weights and with every bit counted alike.

`truncate(m)` is the model of the first m bits with the weights that they had then; nothing is learned again.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cghash import CGHash
from cghash.criteria import evaluate
from cghash.lab.drawing import STYLE

X, y = load_digits(return_X_y=True)
base, queries, y_base, y_queries = train_test_split(X, y, test_size=500, stratify=y, random_state=0)
model = CGHash(64, random_state=0).fit(base, y_base)
bits, bits_base = model.transform(queries), model.transform(base)

lengths = [4, 8, 12, 16, 24, 32, 48, 64]
quality = {"learned weights": [], "every bit counts 1": []}
for m in lengths:
    for name, weights in (("learned weights", model.truncate(m).weights_), ("every bit counts 1", np.ones(m))):
        quality[name].append(evaluate(bits[:, :m], bits_base[:, :m], weights, y_queries, y_base)["map"])

print("bits  weighted  plain")
for m, weighted, plain in zip(lengths, *quality.values(), strict=True):
    print(f"{m:4}  {weighted:8.2f}  {plain:5.2f}")

with plt.rc_context(STYLE):
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
    for (name, values), colour, marker in zip(quality.items(), ("#0067b8", "#868b94"), "ov", strict=True):
        left.plot(lengths, values, color=colour, marker=marker, label=name)
    left.set(xlabel="bits", ylabel="mean average precision", ylim=(0, 1), xticks=range(0, 65, 16))
    left.legend()
    right.bar(range(64), model.weights_, width=1.0, color="#0067b8", edgecolor="white", linewidth=0.4)
    right.set(xlabel="bit, in the order in which it was learned", ylabel="weight after 64 bits")
    figure.savefig("weights_and_truncation.png", dpi=150)
