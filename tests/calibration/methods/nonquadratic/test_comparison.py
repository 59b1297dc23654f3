"""The scale-free comparison: S by simulation, invariance, rows and plot."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import rel_entr

import consistruct as cs
from consistruct.calibration import compare_surrogates
from consistruct.surrogates import ABSurrogate
from tests.calibration.methods.nonquadratic import brute_force

L = np.array([[0.0, 0.6, 1.0], [0.5, 0.0, 0.4], [0.9, 0.3, 0.0]])


def simulated_cost(divergence, n_true_labels, n=4000, repeats=4000):
    """n · E D(u, q̂_n) for frequencies of n draws from the uniform distribution."""
    rng = np.random.default_rng(0)
    frequencies = rng.multinomial(n, np.full(n_true_labels, 1 / n_true_labels), size=repeats) / n
    uniform = np.full(n_true_labels, 1 / n_true_labels)
    return n * float(np.mean([divergence(uniform, q) for q in frequencies]))


def ab_divergence(name):
    def divergence(u, q):
        p = (L @ q) / L.max()
        best = np.log((1 - p) / p) / (1 if name == "logistic" else 2)
        return brute_force.excess_ab(name, L, u, best)

    return divergence


DIVERGENCES = {
    "log": lambda u, q: float(rel_entr(u, q).sum()),
    "sparsemax": lambda u, q: 0.5 * float(((u - q) ** 2).sum()),
    "quadratic": lambda u, q: 0.5 * float(((L @ (u - q)) ** 2).mean()),
    "linear-regret": lambda u, q: (  # the best label for q, and κ = L_max = 1
        0.5 * float(((L @ (u - q)) ** 2).sum()) + float((L @ u)[(L @ q).argmin()] - (L @ u).min())
    ),
    "logistic": ab_divergence("logistic"),
    "exponential": ab_divergence("exponential"),
}


@pytest.mark.parametrize("name", DIVERGENCES)
def test_the_noise_scale_is_the_cost_of_acting_on_frequencies(name):
    (curve,) = compare_surrogates(cs.losses.CostMatrix(L, rows="pred"), (name,), eps=[0.5]).curves
    assert math.exp(curve.noise_log) == pytest.approx(
        simulated_cost(DIVERGENCES[name], 3), rel=0.08
    )


def test_structured_formulas_agree_with_listed_ones():
    listed = compare_surrogates(cs.losses.CostMatrix(1 - np.eye(5)), ("quadratic", "logistic"), 0.5)
    formula = compare_surrogates(cs.losses.ZeroOne(5), ("quadratic", "logistic"), 0.5)
    for one, other in zip(listed.curves, formula.curves, strict=True):
        assert one.noise_log == pytest.approx(other.noise_log, rel=1e-6)
    hamming = cs.losses.Hamming(3)
    matrix = cs.losses.CostMatrix(hamming.matrix(), rows="pred")
    (own,) = compare_surrogates(hamming, ("quadratic",), 0.5).curves
    (dense,) = compare_surrogates(matrix, ("quadratic",), 0.5).curves
    assert own.noise_log == pytest.approx(dense.noise_log)
    big = compare_surrogates(cs.losses.ZeroOne(10**6), ("logistic",), 0.5).curves[0]
    # G'' = 1/p(1 − p) against the variance p(1 − p) of each of the k rows
    assert big.noise_log == pytest.approx(math.log(0.5), abs=1e-6)


def test_the_figure_does_not_depend_on_the_units_of_the_surrogate():
    def scaled(factor, stretch):
        class Scaled(ABSurrogate):
            jointly_convex = True  # G is a square, 1/G'' constant

            def a(self, f):
                return factor * f * stretch, np.full_like(f, factor * stretch)

            def b(self, f):
                return factor * (f * stretch) ** 2 / 2, factor * stretch**2 * f

        return Scaled

    loss = cs.losses.CostMatrix(L[:2], rows="pred")
    found = compare_surrogates(loss, (scaled(1.0, 1.0), scaled(7.0, 1.0), scaled(1.0, 0.5)), [0.5])
    values = [draws for curve in found.curves for draws in curve.draws if draws is not None]
    assert len(values) == 3
    heights = [curve.points[0].lower for curve in found.curves]
    assert heights[1] == pytest.approx(7 * heights[0], rel=1e-4)
    for lower, upper in values[1:]:
        assert lower == pytest.approx(values[0][0], rel=1e-4)
        assert upper == pytest.approx(values[0][1], rel=1e-4)


def test_rows_and_plot():
    import matplotlib as mpl

    mpl.use("Agg")
    found = compare_surrogates(
        cs.losses.ZeroOne(3), ("quadratic", ("log", "bayes"), "hinge"), eps=[0.25, 0.75]
    )
    rows = found.rows()
    assert len(rows) == 6
    assert {row["surrogate"] for row in rows} == {"quadratic", "log, Bayes decoding", "hinge"}
    assert [row["draws_most"] for row in rows if row["surrogate"] == "hinge"] == [None, None]
    legend = found.plot().get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "quadratic",
        "log, Bayes decoding",
        "hinge (no scale-free figure)",
    ]
    own = found.plot(scale_free=False)
    assert own.get_ylabel().startswith("H(ε)")
    with pytest.raises(ValueError, match="at least one surrogate"):
        compare_surrogates(cs.losses.ZeroOne(3), ())
