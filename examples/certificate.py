"""How far a fit can still go: objective and bound after each bit, proven for stumps, not for hyperplanes.

Stumps are searched exhaustively, so their bound holds for every stump there is, and the fit knows when it has ended.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from cghash import CGHash
from cghash.exceptions import FewerBitsWarning
from cghash.lab.drawing import STYLE

X, y = load_digits(return_X_y=True)
warnings.simplefilter("ignore", FewerBitsWarning)  # to end before 64 bits is what we are after
results = {}
for family in ("stump", "linear"):
    results[family] = CGHash(64, hash_function=family, C=0.2, random_state=0).fit(X[:300], y[:300]).result_
    last = results[family]
    print(f"{family:<7} {last.status:<12} objective {last.objective:.3f}, bound {last.bound:.3f}, exact: {last.exact}")

with plt.rc_context(STYLE):
    figure, both = plt.subplots(1, 2, figsize=(8.4, 3.2), sharey=True, layout="constrained")
    for axes, (family, result) in zip(both, results.items(), strict=True):
        history = result.history
        bits = range(1, len(history["objective"]) + 1)
        proven = "proven bound" if result.exact else "bound over the functions found"
        axes.fill_between(bits, history["bound"], history["objective"], color="#0067b8", alpha=0.12, label="gap")
        axes.plot(bits, history["objective"], color="#0067b8", label="objective")
        axes.plot(bits, history["bound"], color="#d42a2a", linestyle="-" if result.exact else ":", label=proven)
        axes.set(xlabel="bits", title=f"{family}: {result.status} after {len(bits)} bits", ylim=(0, 1))
        axes.legend()
    both[0].set_ylabel("mean loss + C · sum of weights")
    figure.savefig("certificate.png", dpi=150)
