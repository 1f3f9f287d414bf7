"""What every loss must satisfy: convex, falling, with its derivative and its Fenchel conjugate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash._kernels import native, twins
from cghash.learning.losses import LOSSES

pytestmark = [pytest.mark.core, pytest.mark.portable]


class Huberized:
    """A user's loss: the hinge with its corner rounded off between 1 − 2δ and 1."""

    delta = 0.25

    def value(self, margin):
        slack = np.maximum(1.0 - margin, 0.0)
        return np.where(slack < 2 * self.delta, slack**2 / (4 * self.delta), slack - self.delta)

    def derivative(self, margin):
        return -np.clip((1.0 - margin) / (2 * self.delta), 0.0, 1.0)

    def conjugate(self, slope):
        return np.where((slope <= 0) & (slope >= -1), slope + self.delta * slope**2, np.inf)


LOSS = pytest.mark.parametrize("loss", [*LOSSES.values(), Huberized()], ids=lambda loss: type(loss).__name__)
margins = st.lists(st.floats(-12.0, 12.0), min_size=1, max_size=20).map(np.array)


def kinks(loss):
    return [1.0] if not getattr(loss, "smooth", True) else []


@LOSS
@settings(max_examples=50, deadline=None)
@given(margin=margins)
def test_derivative_agrees_with_finite_differences(loss, margin):
    step = 1e-5
    margin = margin[np.all([np.abs(margin - kink) > 2 * step for kink in kinks(loss)], axis=0)]
    differences = (loss.value(margin + step) - loss.value(margin - step)) / (2 * step)
    np.testing.assert_allclose(loss.derivative(margin), differences, rtol=1e-4, atol=1e-5)


@LOSS
@settings(max_examples=50, deadline=None)
@given(one=st.floats(-12, 12), other=st.floats(-12, 12), share=st.floats(0, 1))
def test_value_is_convex_and_falls(loss, one, other, share):
    a, b, between = (loss.value(np.array([x]))[0] for x in (one, other, share * one + (1 - share) * other))
    assert between <= share * a + (1 - share) * b + 1e-9 * (1 + abs(a) + abs(b))
    assert (a - b) * (one - other) <= 0
    slope = loss.derivative(np.array([one]))[0]
    assert slope <= 0
    assert b >= a + slope * (other - one) - 1e-9 * (1 + abs(a) + abs(slope))  # also at a kink


@LOSS
@settings(max_examples=50, deadline=None)
@given(margin=st.floats(-12, 12), slope=st.floats(-30, 1))
def test_fenchel_young(loss, margin, slope):
    """f(ρ) + f*(v) ≥ v·ρ, with equality at v = f'(ρ)."""
    at, v = np.array([margin]), np.array([slope])
    value = loss.value(at)[0]
    assert value + loss.conjugate(v)[0] >= slope * margin - 1e-9 * (1 + value)
    tangent = loss.derivative(at)
    assert value + loss.conjugate(tangent)[0] == pytest.approx(tangent[0] * margin, rel=1e-9, abs=1e-9 * (1 + value))


@LOSS
def test_conjugate_is_the_supremum(loss):
    """sup vρ − f(ρ) on a fine grid; where it still grows at the grid's ends, the conjugate is infinite."""
    grid = np.linspace(-30.0, 60.0, 900_001)
    slopes = np.array([-0.999, -0.75, -0.5, -0.1, -0.01])
    expected = [np.max(v * grid - loss.value(grid)) for v in slopes]
    np.testing.assert_allclose(loss.conjugate(slopes), expected, atol=1e-6)
    assert loss.conjugate(np.array([0.5]))[0] == np.inf
    assert loss.conjugate(np.zeros(1))[0] == pytest.approx(-loss.value(np.array([500.0]))[0], abs=1e-12)


@pytest.mark.native
@pytest.mark.parametrize("loss", [loss for loss in LOSSES.values() if loss.code is not None], ids=repr)
@settings(max_examples=50, deadline=None)
@given(margin=margins)
def test_kernels_know_the_loss_by_its_code(loss, margin):
    """One anchor, one near pair at distance 0, and a far pair at each margin."""
    one, n = np.array([0, 1], np.int64), len(margin)
    D = np.append(0.0, margin)
    for module in filter(None, (twins, native)):
        table = module.PairTable(one[:1], one, np.array([1]), np.array([0, n]), np.full(n, 2), np.ones(1), 3)
        value, q = table.loss(loss.code, D, 1)
        assert value == pytest.approx(loss.value(margin).sum(), rel=1e-12)
        np.testing.assert_allclose(q[1:], loss.derivative(margin), rtol=1e-11)
        assert table.counts(D, 0.0, loss.dead_above, 1)[1] == np.count_nonzero(loss.derivative(margin))
