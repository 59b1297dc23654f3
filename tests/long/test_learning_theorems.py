"""Theorems 5 and 6 on well-specified problems: excess risks below their bounds, 95 % confidence.

Every risk is exact; only the training draws vary. The limits are those of Student's t for the mean
over the repeats, with Bonferroni's correction over the grid of N.
"""

import numpy as np
import pytest

from consistruct.losses import Block, Hamming, Mixed, Ordinal, ZeroOne
from consistruct.structures import Blocks, Full
from paper.hardness import hardness_study
from paper.learning_curves import VARIANTS, learning_curve
from paper.problems import synthetic_problem

STEPS = (10, 32, 100, 316, 1000, 3162, 10_000, 31_623, 100_000)
PROBLEMS = [
    (ZeroOne(4), None),
    (ZeroOne(256), None),
    (Block((2**18,) * 4), None),
    (Block((2**14,) * 64), None),  # 2^20 labels
    (Hamming(2), None),
    (Hamming(20), None),  # 2^20 labels, none of them listed
    (Hamming(5, 4), None),
    (Hamming(5), Full(Hamming(5))),
    (Mixed((5,) * 20, 0.1), None),
    (Mixed((5,) * 20, 0.1), Blocks((5,) * 20)),
    (Ordinal(6), None),
]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("loss", "scores"), PROBLEMS, ids=repr)
def test_excess_risks_are_below_their_bounds_at_every_n(loss, scores, variant):
    problem = synthetic_problem(loss, scores, n_anchors=4)
    curve = learning_curve(problem, STEPS, variant=variant, repeats=20)
    for point in curve.points:
        assert point.surrogate_upper < point.surrogate_bound, point
        assert point.task_upper <= point.task_bound, point
    if variant == "paper":
        return
    # it learns, and the bounds say something
    last = curve.points[-1]
    assert last.task < 0.01 * curve.task_start
    # the surrogate bound is an order of magnitude away or two, not a fact about any algorithm
    ratios = np.array([p.surrogate_bound / p.surrogate for p in curve.points])
    assert ratios.min() > 1
    if variant == "known optimum":
        assert ratios[:5].max() < 20
        assert last.task_bound < 0.5 * loss.max_value


def test_a_bound_that_is_too_small_would_be_seen():
    """A twentieth of the bound fails on every problem of the list: the test has power."""
    for loss, scores in PROBLEMS[:4]:
        problem = synthetic_problem(loss, scores, n_anchors=4)
        curve = learning_curve(problem, STEPS[:5], variant="known optimum", repeats=20)
        assert any(p.surrogate_upper > p.surrogate_bound / 20 for p in curve.points)


@pytest.mark.parametrize("eps", [0.02, 0.01])
def test_functions_to_be_learned_make_a_problem_hard_and_not_k_eff(eps):
    study = hardness_study(eps=eps)
    alone = study.fit("k_eff")
    assert alone.r_squared < 0.05
    assert abs(alone.exponents[0]) < 3 * alone.standard_errors[0]
    assert study.fit("anchors").r_squared > 0.5
    # at equal noise the norm tells; a norm that is small because of noise does not
    norm = study.fit("‖W*‖·√k_eff")
    at_equal_noise = study.fit("‖W*‖·√k_eff", "signal")
    assert norm.r_squared < 0.2
    assert at_equal_noise.r_squared > 0.5
    assert at_equal_noise.exponents[0] > 0.5
    assert at_equal_noise.exponents[1] < -0.5
