"""Losses that parameters mean, and values known by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cghash.exceptions import InvalidInputError
from cghash.learning.cpu.columns import Columns
from cghash.learning.losses import LOSSES, Exponential, Hinge, Logistic, Loss, SquaredHinge, loss_of
from cghash.learning.triplets import from_rows

pytestmark = [pytest.mark.core, pytest.mark.portable]


@pytest.mark.parametrize(
    ("loss", "margin", "value", "derivative"),
    [
        (SquaredHinge(), [-1.0, 0.5, 1.0, 3.0], [4.0, 0.25, 0.0, 0.0], [-4.0, -1.0, 0.0, 0.0]),
        (Hinge(), [-1.0, 0.5, 1.0, 3.0], [2.0, 0.5, 0.0, 0.0], [-1.0, -1.0, 0.0, 0.0]),
        (Logistic(), [0.0, np.log(3)], [np.log(2), np.log(4 / 3)], [-0.5, -0.25]),
        (Exponential(), [0.0, np.log(4)], [1.0, 0.25], [-1.0, -0.25]),
    ],
)
def test_values_by_hand(loss, margin, value, derivative):
    np.testing.assert_allclose(loss.value(np.array(margin)), value, rtol=1e-15)
    np.testing.assert_allclose(loss.derivative(np.array(margin)), derivative, rtol=1e-15)


@pytest.mark.parametrize(
    ("loss", "slope", "conjugate"),
    [
        (SquaredHinge(), [0.1, 0.0, -2.0, -4.0], [np.inf, 0.0, -1.0, 0.0]),
        (Hinge(), [0.1, 0.0, -0.5, -1.0, -1.1], [np.inf, 0.0, -0.5, -1.0, np.inf]),
        (Logistic(), [0.1, 0.0, -0.5, -1.0, -1.1], [np.inf, 0.0, -np.log(2), 0.0, np.inf]),
        (Exponential(), [0.1, 0.0, -1.0, -np.e], [np.inf, 0.0, -1.0, 0.0]),
    ],
)
def test_conjugates_by_hand(loss, slope, conjugate):
    np.testing.assert_allclose(loss.conjugate(np.array(slope)), conjugate, rtol=1e-15, atol=1e-15)


def test_logistic_neither_overflows_nor_vanishes_far_out():
    margin = np.array([-1000.0, -40.0, 40.0, 700.0])
    with np.errstate(over="raise"):
        np.testing.assert_allclose(Logistic().value(margin), [1000.0, 40.0, np.exp(-40.0), np.exp(-700.0)], rtol=1e-12)
        np.testing.assert_allclose(
            Logistic().derivative(margin), [-1.0, -1.0, -np.exp(-40.0), -np.exp(-700.0)], rtol=1e-12
        )


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_name_means_its_loss(name):
    assert loss_of(name).name == name
    assert isinstance(loss_of(name), Loss)


def test_an_object_with_the_three_methods_is_a_loss():
    class Own:
        value = derivative = conjugate = staticmethod(np.abs)

    own = Own()
    assert loss_of(own) is own


class WithoutConjugate:
    def value(self, margin):
        return margin

    def derivative(self, margin):
        return margin


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("hinges", rf"must be one of {re.escape(str(sorted(LOSSES)))}.*'hinges'"),
        (None, "without value, derivative, conjugate"),
        (1, "got 1"),
        (Hinge, "without being an instance"),
        (WithoutConjugate(), "without conjugate"),
    ],
)
def test_what_is_no_loss_is_refused_and_named(loss, message):
    with pytest.raises(InvalidInputError, match=message):
        loss_of(loss)


def test_a_loss_derived_from_a_built_in_one_is_taken_at_its_word():
    """The kernels know the parent by its code; its child must go through its own methods."""

    class Wide(SquaredHinge):
        def value(self, margin):
            return np.maximum(2.0 - margin, 0.0) ** 2

        def derivative(self, margin):
            return -2.0 * np.maximum(2.0 - margin, 0.0)

        def conjugate(self, slope):
            return np.where(slope <= 0, 2.0 * slope + slope**2 / 4.0, np.inf)

    columns = Columns(from_rows([[0, 1, 2]], 3), Wide())
    columns.append(np.array([True, True, False]))
    value, gradient = columns.evaluate(np.array([0.5]))
    assert value == pytest.approx(1.5**2)
    assert gradient[0] == pytest.approx(-3.0)
