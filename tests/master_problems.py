"""Small master problems, as hypothesis draws them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


@st.composite
def small_problems(draw, costs, uppers):
    """Columns over triplets (t, m) in {-1, 0, 1}, weights of the triplets (t,), costs (m,) and an upper bound."""
    t, m = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    entries = st.lists(st.sampled_from([-1, 0, 1]), min_size=m, max_size=m)
    A = np.array(draw(st.lists(entries, min_size=t, max_size=t)))
    A = np.vstack([A, A[:1], -A[-1:]])  # a triplet twice, a triplet and its contrary
    A[:, draw(st.integers(0, m - 1))] *= draw(st.sampled_from([0, 1]))  # perhaps a column that says nothing
    p = np.array(draw(st.lists(st.floats(0.05, 1.0), min_size=t + 2, max_size=t + 2)))
    cost = np.array(draw(st.lists(st.sampled_from(costs), min_size=m, max_size=m)))
    return A, p / p.sum(), cost, draw(st.sampled_from(uppers))
