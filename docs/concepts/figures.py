"""Draw the figures of the concept pages, into docs/concepts.

python docs/concepts/figures.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from cghash import CGHash
from cghash.codes import weighted_hamming
from cghash.lab.drawing import INK, draw, to_png

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "benchmarks" / "results" / "search.json"
BLUE, RED, GREY, GREEN, ORANGE = "#0067b8", "#d42a2a", "#868b94", "#2b982f", "#f58314"
K = 10


def lower_bounds(bits: Any, query: Any, weights: Any, limit: float) -> Any:
    """Bounds (n,) of the distances: look-ups over four bits each, rounded down to bytes; sums stop at 255."""
    scale = 200 / limit  # what is much farther than the limit need not be told apart
    total = np.zeros(len(bits))
    for start in range(0, bits.shape[1], 4):
        part = slice(start, start + 4)
        values = 1 << np.arange(bits[:, part].shape[1])
        masks = np.arange(1 << len(values))[:, None] >> np.arange(len(values)) & 1
        table = np.minimum(np.floor(masks @ weights[part] * scale), 255)
        total += table[(bits[:, part] ^ query[part]) @ values]
    return np.minimum(total, 255) / scale


def scan(axes: Any) -> None:
    """Bounds beside distances for one query; what lies below the dashed line is looked at again."""
    X, y = load_digits(return_X_y=True)
    model = CGHash(64, random_state=0).fit(X[:1500], y[:1500])
    bits, query = model.transform(X[:1500]), model.transform(X[1501:1502])
    distances = weighted_hamming(query, bits, model.weights_)[0]
    limit = np.sort(distances)[K - 1]
    bounds = lower_bounds(bits, query[0], model.weights_, limit)
    again = bounds <= limit
    most = 1.4 * limit
    axes.plot([0, most], [0, most], color=INK, linewidth=0.8, alpha=0.5)
    axes.scatter(distances[~again], bounds[~again], s=9, color=GREY, label=f"{np.sum(~again)} passed over")
    axes.scatter(distances[again], bounds[again], s=16, color=BLUE, label=f"{np.sum(again)} ranked exactly")
    axes.axhline(limit, color=RED, linestyle="--", linewidth=1.2, label=f"distance of the {K}th best")
    axes.set(xlabel="distance", ylabel="bound from look-ups", title=f"One query, {len(bits)} codes of 64 bits")
    axes.set(xlim=(-0.03, 1.0), ylim=(-0.01, most))
    axes.legend(loc="lower right")


def measured() -> dict[str, list[float]]:
    """Milliseconds of a single query on one thread, 10 million codes that were learned, for 32, 64 and 128 bits."""
    wanted = {"codes": "learned", "n": 10**7, "k": K, "queries": "single", "threads": 1}
    rows = [
        row
        for row in json.loads(RESULTS.read_text("utf-8"))["rows"]
        if "isa" not in row and wanted.items() <= row.items()
    ]
    rows.sort(key=lambda row: row["bits"])
    names = {"scan": "cghash, scan alone", "pruned": "cghash", "FAISS, exact": "FAISS fast-scan + refine"}
    return {"reading once": [row["read_ms"] for row in rows]} | {
        name: [row["ms"][key] for row in rows] for name, key in names.items()
    }


def times(axes: Any) -> None:
    bars = measured()
    looks = zip(bars.items(), (INK, BLUE, GREEN, ORANGE), strict=True)
    for place, ((name, values), colour) in enumerate(looks):
        at = np.arange(len(values)) + 0.2 * place - 0.3
        axes.bar(at, values, width=0.18, color=colour, label=name)
    axes.set(
        yscale="log", ylabel="milliseconds a query", title="10 million learned codes, one thread", ylim=(0.003, 60)
    )
    axes.set_xticks(range(3), ["32 bits", "64 bits", "128 bits"])
    axes.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    axes.grid(visible=False, axis="x")
    axes.legend(ncols=2, loc="upper left")


def exact_search(figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    scan(left)
    times(right)


def main() -> None:
    (HERE / "exact_search.png").write_bytes(to_png(draw(exact_search, (10.4, 4.0), layout="constrained"), 1400))


if __name__ == "__main__":
    main()
