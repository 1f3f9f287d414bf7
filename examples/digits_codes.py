"""Four bytes a digit: precision over recall, beside other codes of the same length and the vectors themselves.

Codes of 32 bits are learned from 1297 labelled digits; 500 others are looked up among them.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import train_test_split

from cghash import CGHash
from cghash.codes import weighted_hamming
from cghash.criteria import average_precision, precision_recall
from cghash.lab.drawing import STYLE
from cghash.lab.reporting.line_styles import line_styles_of
from cghash.peers import ITQ, PCAH

X, y = load_digits(return_X_y=True)
base, queries, y_base, y_queries = train_test_split(X, y, test_size=500, stratify=y, random_state=0)
relevant = y_queries[:, None] == y_base


def distances(hasher):
    hasher.fit(base, y_base)
    return weighted_hamming(hasher.transform(queries), hasher.transform(base), hasher.weights_)


found = {
    "CGHash": distances(CGHash(32, random_state=0)),
    "ITQ-CCA": distances(ITQ(32, projection="cca", random_state=0)),  # is told the labels too
    "PCAH": distances(PCAH(32)),  # the sign of each principal component
    "Euclidean": pairwise_distances(queries, base),  # of the vectors themselves
}
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for name, style in line_styles_of(found).items():
        _, precision, recall = precision_recall(found[name], relevant)
        axes.plot(recall, precision, label=name, markevery=0.12, **style.line)
        print(f"{name:<10} mAP {average_precision(found[name], relevant).mean():.2f}")
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.03))
    axes.legend()
    figure.savefig("digits_codes.png", dpi=150)
