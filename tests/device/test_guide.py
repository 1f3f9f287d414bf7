"""The guide to GPUs: what stands there runs, on the CPU's tensors."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

pytest.importorskip("torch")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

_SPEC = importlib.util.spec_from_file_location("guides", Path(__file__).parents[1] / "test_docs_elsewhere.py")
guides = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(guides)


@pytest.mark.slow
def test_a_device_is_asked_as_the_guide_says(tmp_path, monkeypatch):
    """On the CPU's tensors, with fewer bits."""
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(return_X_y=True)
    X, y = X[:200].astype(np.float32), y[:200]
    pq.write_table(pa.table({"vector": pa.FixedSizeListArray.from_arrays(X.ravel(), 64)}), "items.parquet")
    programs = guides.elsewhere("gpu.md", "python")
    fit, search, encode = (text.replace('"cuda"', '"cpu"').replace("64", "8") for text in programs)
    names = {"X": X, "y": y}
    with threadpool_limits(1):
        exec(fit, names)
        exec(encode, names)
        names["queries"] = names["codes"][:3]
        exec(search, names)
    model, ids = names["model"], names["ids"]
    assert (ids[:, 0] == model.build_index(X).search(model.encode(X[:3]), k=1)[1][:, 0]).all()
