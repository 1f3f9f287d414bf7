"""A shop's index: one file, opened at once, searched among some items only, changed while it is in use.

Digits stand for articles, even ones for those in stock. Every answer is exact, also behind the filter.
"""

import numpy as np
from sklearn.datasets import load_digits

from cghash import CGHash, WeightedHammingIndex

X, y = load_digits(return_X_y=True)
model = CGHash(32, random_state=0).fit(X[:1000], y[:1000])

index = WeightedHammingIndex(32, model.weights_)
index.add(model.encode(X[:1700]), ids=np.arange(5000, 6700))  # article numbers
index.save("articles.index")

query = model.encode(X[1700:1701])
in_stock = np.flatnonzero(y[:1700] % 2 == 0) + 5000


def show(what, index, **among):
    distances, ids = index.search(query, k=5, **among)
    found = "  ".join(f"{i}:{digit}" for i, digit in zip(ids[0], articles[ids[0] - 5000], strict=True))
    print(f"{what:<34} {found}   up to {distances[0, -1]:.2f}")


articles = np.append(y[:1700], y[1700])
print(f"a {y[1700]} asks; each answer is article:digit")
with WeightedHammingIndex.load("articles.index", writable=True) as index:  # mapped, not read; changes go to a log
    show("all 1700", index)
    show("in stock", index, filter=in_stock)
    nearest = index.search(query[0], k=1)[1]
    index.remove(nearest)
    show("the nearest was sold", index)
    index.add(query, ids=[6700])
    show("the asked-for one itself came in", index)

again = WeightedHammingIndex.load("articles.index")  # as after a restart: the log is read
show("opened again", again)
print(WeightedHammingIndex.verify("articles.index")["n_codes"], "articles, every byte of file and log verified")
