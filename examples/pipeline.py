"""In a scikit-learn pipeline: neighbours that vote, by code; bits and C chosen by cross-validation.

Beside it the same vote over the vectors themselves: 64 numbers an item instead of 1 to 4 bytes.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cghash import CGHash, HashNeighborsClassifier
from cghash.lab.drawing import STYLE

X, y = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(X, y, train_size=700, stratify=y, random_state=0)

voters = HashNeighborsClassifier(CGHash(sampling="classes", n_neighbors=5, random_state=0), n_neighbors=3)
pipeline = make_pipeline(StandardScaler(), voters)
grid = {
    "hashneighborsclassifier__hasher__n_bits": [8, 16, 32],
    "hashneighborsclassifier__hasher__C": [0.003, 0.03],
}
search = GridSearchCV(pipeline, grid, cv=3).fit(train, y_train)
vectors = make_pipeline(StandardScaler(), KNeighborsClassifier(3)).fit(train, y_train)

for name, value in search.best_params_.items():
    print(f"{name.split('__')[-1]} = {value}")
print(f"accuracy by codes   {search.score(test, y_test):.2f}")
print(f"accuracy by vectors {vectors.score(test, y_test):.2f}")

scores = search.cv_results_["mean_test_score"].reshape(2, 3)  # C × bits
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
    looks = zip(grid["hashneighborsclassifier__hasher__C"], ("#3aa0e8", "#1b2f8f"), "so", strict=True)
    for line, (C, colour, marker) in zip(scores, looks, strict=True):
        axes.plot([8, 16, 32], line, color=colour, marker=marker, label=f"C = {C}")
    axes.set(xlabel="bits", ylabel="accuracy, cross-validated", xticks=[8, 16, 32])
    axes.legend()
    figure.savefig("pipeline.png", dpi=150)
