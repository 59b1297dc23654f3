"""Synthetic problems against enumeration, the compiled loop against `PaperSGD`, the regression."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from consistruct.guarantees import optimum_norm, sample_complexity
from consistruct.learning.models.features.feature_maps import LinearFeatures, ScoreMap
from consistruct.learning.models.solvers.paper_sgd import PaperSGD
from consistruct.losses import Block, CostMatrix, Hamming, Mixed, Ordinal, ZeroOne
from consistruct.structures import Blocks, Dense, Full
from consistruct.surrogates import QuadraticSurrogate
from paper.figures import hardness_figure, learning_curves_figure
from paper.hardness import HardnessRow, HardnessStudy, _fits, hardness_study
from paper.learning_curves import (
    VARIANTS,
    Descent,
    LearningPoint,
    _upper_limits,
    learning_curve,
    orthonormal_coordinates,
    paper_coordinates,
)
from paper.problems import synthetic_problem

CASES = [
    (ZeroOne(4), None),
    (Block((1, 3, 2)), None),
    (Hamming(3), None),
    (Hamming(2, 3), None),
    (Hamming(3), Full(Hamming(3))),
    (Mixed((2, 3), 0.3), None),
    (Mixed((2, 3), 0.3), Blocks((2, 3))),
    (Ordinal(4), None),
]


def case_id(case):
    return f"{case[0]!r}-{'own' if case[1] is None else repr(case[1])}"


@pytest.fixture(params=CASES, ids=[case_id(case) for case in CASES])
def problem(request):
    loss, scores = request.param
    return synthetic_problem(loss, scores, n_anchors=3, noise=0.4, n_inputs=7, random_state=1)


def conditional_distributions(problem):
    """q(y | x) of every listed label, (inputs, labels), from the definition of each kind."""
    loss, given = problem.loss, problem.anchors.probabilities
    every = loss.true_labels.enumerate()
    if isinstance(loss, Hamming):
        parts = np.arange(loss.T)
        anchors = np.array([[one[parts, y].prod() for y in every] for one in given])
    elif isinstance(loss, Block):
        sizes = np.array(loss.partition.block_sizes)
        block = loss.partition.block_of(every)
        anchors = given[:, block] / sizes[block]
    else:
        anchors = given
    return anchors, problem.features @ anchors


def test_distributions_sum_to_one_and_lie_in_the_rkhs(problem):
    anchors, q = conditional_distributions(problem)
    np.testing.assert_allclose(q.sum(axis=1), 1.0, atol=1e-12)
    assert (q >= 0).all()
    # q_c = ⟨anchors[:, c], φ⟩, so its norm is that of the column
    norms = np.linalg.norm(anchors, axis=0).sum()
    assert norms <= problem.q_bound * (1 + 1e-12)
    if not isinstance(problem.loss, Hamming):
        assert norms == pytest.approx(problem.q_bound, rel=1e-12)
    assert problem.radius == pytest.approx(np.linalg.norm(problem.features, axis=1).max())


def test_risks_are_those_of_enumeration(problem):
    """Both risks as sums over inputs and labels, with the surrogate's and the loss's own values."""
    rng = np.random.default_rng(0)
    _, q = conditional_distributions(problem)
    every = problem.loss.true_labels.enumerate()
    surrogate = QuadraticSurrogate(problem.loss, problem.scores)
    labels = problem.loss.predictions.enumerate()
    L = np.array([problem.loss(np.repeat(c[None], len(every), axis=0), every) for c in labels])
    expected = q @ L.T  # (inputs, labels)
    indices = problem.scores.predictable().indices
    best = (expected if indices is None else expected[:, indices]).min(axis=1)

    def surrogate_risk(weights):
        theta = problem.features @ weights
        values = [
            surrogate.value_and_gradient(np.repeat(t[None], len(every), axis=0), every)[0]
            for t in theta
        ]
        return float(np.mean((q * np.array(values)).sum(axis=1)))

    least = surrogate_risk(problem.optimum)
    for scale in (0.0, 0.1, 1.0):
        weights = problem.optimum + scale * rng.normal(size=problem.optimum.shape)
        excess = surrogate_risk(weights) - least
        assert problem.surrogate_excess(weights) == pytest.approx(excess, abs=1e-12)
        predicted = problem.scores.decode(problem.features @ weights)
        chosen = problem.loss.predictions.index(predicted).astype(int)
        task = (expected[np.arange(len(chosen)), chosen] - best).mean()
        assert problem.task_excess(weights) == pytest.approx(task, abs=1e-12)


def test_the_centered_excess_ignores_constants_and_nothing_else():
    problem = synthetic_problem(ZeroOne(4), n_anchors=3)
    shifted = problem.optimum + np.array([[1.0], [2.0], [-3.0]])  # of each anchor, to all scores
    assert problem.surrogate_excess(shifted, centered=True) == pytest.approx(0.0, abs=1e-12)
    assert problem.surrogate_excess(shifted) > 0.1
    moved = problem.optimum.copy()
    moved[0, 0] += 1.0
    assert problem.surrogate_excess(moved, centered=True) > 0.01


def test_examples_follow_the_distributions(problem):
    rows, true = problem.sample(200_000, np.random.default_rng(0))
    _, q = conditional_distributions(problem)
    joint = np.zeros(q.shape)
    np.add.at(joint, (rows, problem.loss.true_labels.index(true).astype(int)), 1 / len(rows))
    expected = q / len(q)
    spread = np.sqrt(expected * (1 - expected) / len(rows))
    assert (np.abs(joint - expected) <= 5 * spread + 1e-12).all()


def test_bases_have_the_scores_of_the_space(problem):
    space = problem.scores
    F, mu = space.matrix(), space.predictions.weights()
    theta = np.random.default_rng(0).normal(size=(2, space.width))
    for basis, centered in (
        (paper_coordinates(space), False),
        (orthonormal_coordinates(space), True),
    ):
        embedding = F @ basis.back.T
        np.testing.assert_allclose(
            embedding.T @ (mu[:, None] * embedding), np.diag(basis.spectrum), atol=1e-12
        )
        scores, same = F @ theta.T, embedding @ (theta @ basis.forward).T
        if centered and space.contains_constant:
            scores = scores - mu @ scores
        np.testing.assert_allclose(same, scores, atol=1e-10)


def given_order(n, seed):
    return np.random.default_rng(seed).permutation(n)


IN_OWN_BASIS = [case for case in CASES if case != (Hamming(3), None)]  # that one: next test


@pytest.mark.parametrize("problem", IN_OWN_BASIS, ids=case_id, indirect=True)
@pytest.mark.parametrize("radius", [0.2, 50.0])
def test_the_descent_is_that_of_paper_sgd(problem, radius):
    """On the same examples, in the basis of the score space; PaperSGD knows no rotations."""
    rows, true = problem.sample(300, np.random.default_rng(3))
    solver = PaperSGD(radius=radius, gradient_bound=2.0)
    score_map = ScoreMap(LinearFeatures(3), fit_intercept=False)
    found = solver.solve(
        QuadraticSurrogate(problem.loss, problem.scores),
        score_map,
        problem.features[rows],
        true,
        rng=np.random.default_rng(4),
    )
    order = given_order(300, 4)
    ours = Descent(problem, paper_coordinates(problem.scores)).follow(
        [(rows[order[:100]], true[order[:100]]), (rows[order[100:]], true[order[100:]])],
        step=float(found.path["step"]),
        radius=radius,
    )
    F = problem.scores.matrix()
    np.testing.assert_allclose(F @ ours.T, F @ found.weights.T, atol=1e-10)


@pytest.mark.parametrize("radius", [0.2, 50.0])
def test_binary_parts_run_in_the_basis_of_the_paper(radius):
    loss = Hamming(3)
    problem = synthetic_problem(loss, n_anchors=3)
    bits = loss.predictions.enumerate()
    F = np.column_stack([np.full(8, 0.5), bits])
    rows, true = problem.sample(300, np.random.default_rng(3))
    found = PaperSGD(radius=radius).solve(
        QuadraticSurrogate(loss, Dense(F, over=loss.predictions)),
        ScoreMap(LinearFeatures(3), fit_intercept=False),
        problem.features[rows],
        true,
        rng=np.random.default_rng(4),
    )
    order = given_order(300, 4)
    ours = Descent(problem, paper_coordinates(problem.scores)).follow(
        [(rows[order], true[order])], step=float(found.path["step"]), radius=radius
    )
    scores = problem.scores.matrix() @ ours.T
    np.testing.assert_allclose(scores, F @ found.weights.T, atol=1e-10)


def test_unlisted_true_labels_give_the_run_of_listed_ones(monkeypatch):
    problem = synthetic_problem(Hamming(4), n_anchors=3)
    basis = orthonormal_coordinates(problem.scores)
    rows, true = problem.sample(50, np.random.default_rng(0))
    listed = Descent(problem, basis).follow([(rows, true)], step=0.1, radius=1.0)
    monkeypatch.setattr("paper.learning_curves.ENUMERATION_LIMIT", 8)
    unlisted = Descent(problem, basis)
    assert unlisted._table is None
    np.testing.assert_allclose(unlisted.follow([(rows, true)], step=0.1, radius=1.0), listed)


def test_the_optimum_lies_in_every_ball(problem):
    for variant in VARIANTS:
        curve = learning_curve(problem, (10,), variant=variant, repeats=2)
        basis = paper_coordinates if variant == "paper" else orthonormal_coordinates
        turned = problem.optimum @ basis(problem.scores).forward
        assert np.linalg.norm(turned) <= curve.D * (1 + 1e-9)
        if variant == "known optimum":
            assert float(np.linalg.norm(turned)) == pytest.approx(curve.D)
            assert curve.optimum_norm == pytest.approx(
                optimum_norm(problem.scores, problem.optimum)
            )


def test_bounds_are_those_of_sample_complexity():
    problem = synthetic_problem(Hamming(5))
    given = {"eps": 0.1, "radius": problem.radius, "q_bound": problem.q_bound}
    plan = sample_complexity(problem.loss, **given)
    known = sample_complexity(
        problem.loss, **given, optimum_norm=optimum_norm(problem.scores, problem.optimum)
    )
    columns = {"paper": plan.paper, "sharp": plan.sharp, "known optimum": known.sharp}
    for variant, column in columns.items():
        (point,) = learning_curve(problem, (1000,), variant=variant, repeats=2).points
        assert point.surrogate_bound == pytest.approx(column.excess_after(1000))
    # Theorem 6 the other way round: N* examples guarantee ε
    n_star = round(known.sharp.iterations)
    (point,) = learning_curve(problem, (n_star,), variant="known optimum", repeats=2).points
    assert point.task_bound == pytest.approx(0.1, rel=1e-3)


def test_a_curve_is_reproducible_and_knows_its_start():
    problem = synthetic_problem(ZeroOne(5))
    one, two = (learning_curve(problem, (10, 20), random_state=3) for _ in range(2))
    assert one.points == two.points
    assert learning_curve(problem, (10, 20), random_state=4).points != one.points
    zero = np.zeros_like(problem.optimum)
    assert one.task_start == problem.task_excess(zero)
    assert one.surrogate_start == problem.surrogate_excess(zero)


def test_limits_of_the_mean_are_students_and_hold_together():
    measured = np.array(
        [[[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]], [[2.0, 1.0], [2.0, 1.0], [2.0, 1.0]]]
    )
    limits = _upper_limits(measured)
    # two points: quantile 0.975 of Student's t with 2 degrees of freedom, 4.302653
    assert limits[0, 0] == pytest.approx(2 + 4.302653 * 1 / math.sqrt(3), rel=1e-6)
    np.testing.assert_allclose(limits[:, 1], [0.0, 1.0])


def test_reached_interpolates_between_logarithms():
    curve = learning_curve(synthetic_problem(ZeroOne(3)), (10, 1000), repeats=2)

    def points(*risks):
        return tuple(
            LearningPoint(n, 0.0, 0.0, 0.0, risk, 0.0, 0.0, 0.0)
            for n, risk in zip((10, 1000, 100_000), risks, strict=True)
        )

    assert replace(curve, points=points(1.0, 0.01, 0.0)).reached(0.1) == pytest.approx(100)
    assert replace(curve, points=points(1.0, 0.0, 0.0)).reached(0.1) == 1000
    # for good: a dip does not count
    assert replace(curve, points=points(0.05, 1.0, 0.01)).reached(0.1) == pytest.approx(10_000)
    assert math.isnan(replace(curve, points=points(1.0, 0.5, 0.2)).reached(0.1))
    assert math.isnan(replace(curve, points=points(0.05, 0.02, 0.01)).reached(0.1))


def test_the_regression_finds_exponents_that_are_there():
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(40):
        k_eff, norm = np.exp(rng.normal(size=2))
        n_anchors, noise = int(rng.integers(2, 30)), float(rng.random())
        reached = 7.0 * k_eff**0.5 * norm**3
        rows.append(HardnessRow("0-1", ZeroOne(3), n_anchors, noise, k_eff, norm, 1.0, reached))
    study = HardnessStudy(0.1, "sharp", tuple(rows), _fits(rows))
    fit = study.fit("k_eff", "‖W*‖")
    assert fit.exponents == pytest.approx((0.5, 3.0))
    assert fit.r_squared == pytest.approx(1.0)
    assert study.fit("anchors").r_squared < 0.3
    with pytest.raises(ValueError, match="no fit on noise; the fits are k_eff; "):
        study.fit("noise")


def test_pictures_of_small_runs():
    problem = synthetic_problem(ZeroOne(4), n_anchors=3)
    curves = [learning_curve(problem, (10, 100), variant=v, repeats=2) for v in VARIANTS]
    figure = learning_curves_figure({"0-1": curves})
    header = figure.csv().splitlines()[0].split(",")
    assert header[0] == "N"
    assert len(figure.columns) == 1 + 2 * 3 * 3  # risks, constants, (measured, bound, limit)
    assert figure.picture("png").startswith(b"\x89PNG")
    study = hardness_study(anchors=(3, 8), noises=(0.5,), repeats=2)
    scatter = hardness_figure(study)
    assert len(scatter.columns["k_eff"]) == len(study.rows)
    families = [name for name in scatter.columns if name.startswith("N, ")]
    filled = np.array([np.isfinite(scatter.columns[name]) for name in families])
    assert (filled.sum(axis=0) <= 1).all()  # every problem belongs to one family
    assert scatter.picture("svg").startswith(b"<?xml")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: synthetic_problem(ZeroOne(3), n_anchors=1), "n_anchors must be"),
        (lambda: synthetic_problem(ZeroOne(3), noise=2.0), "noise must be"),
        (lambda: synthetic_problem(ZeroOne(3), Full(4)), "scores must cover the 3 predictions"),
        (
            lambda: synthetic_problem(ZeroOne(10**6)),
            "at most 4096 true labels, or a Hamming or block",
        ),
        (
            lambda: learning_curve(synthetic_problem(ZeroOne(3)), variant="best"),
            "variant must be one of paper, sharp, known optimum, got 'best'",
        ),
        (
            lambda: learning_curve(synthetic_problem(ZeroOne(3)), ()),
            "n_steps must contain at least",
        ),
        (lambda: learning_curve(synthetic_problem(ZeroOne(3)), repeats=1), "repeats must be"),
        (lambda: hardness_study(eps=0.0), "eps must be"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_rectangular_losses_have_problems_too():
    loss = CostMatrix([[0.0, 1.0, 2.0], [1.0, 0.0, 0.5]], rows="pred")
    curve = learning_curve(synthetic_problem(loss), (10, 100), variant="sharp", repeats=4)
    assert curve.holds
