"""The paper's convergence theorem, measured: E[risk of the average] − least risk ≤ 2DM/√N."""

import numpy as np
import pytest

from consistruct.learning.models.features.feature_maps import LinearFeatures, ScoreMap
from consistruct.learning.models.solvers.paper_sgd import PaperSGD
from consistruct.losses import Block, Hamming, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.surrogates import QuadraticSurrogate

N_INPUTS = 5


def distribution(loss, seed):
    """Five inputs, one-hot features (so every score function is possible), random q(y | x)."""
    rng = np.random.default_rng(seed)
    every = loss.true_labels.enumerate()
    return every, rng.dirichlet(np.full(len(every), 0.3), size=N_INPUTS)


@pytest.mark.parametrize("loss", [ZeroOne(4), Block((1, 3, 2)), Hamming(3)], ids=repr)
@pytest.mark.parametrize("n_steps", [100, 1000])
def test_suboptimality_is_below_the_bound_in_expectation(loss, n_steps):
    every, q = distribution(loss, 0)
    space = loss.score_space
    targets = dense_target(loss.target(every))
    best = -q @ targets  # (inputs, width): the minimizer θ(x) = −E[u | x]
    gram = space.gram()
    surrogate, score_map = (
        QuadraticSurrogate(loss),
        ScoreMap(LinearFeatures(N_INPUTS), fit_intercept=False),
    )
    # ‖W*‖ on the range of Ḡ, where it acts
    radius = np.linalg.norm(gram.solve(gram.apply(best)))
    excess = []
    for repetition in range(40):
        rng = np.random.default_rng(100 + repetition)
        rows = rng.integers(N_INPUTS, size=n_steps)
        picks = np.array([rng.choice(len(every), p=q[row]) for row in rows])
        found = PaperSGD(radius=float(radius)).solve(
            surrogate, score_map, np.eye(N_INPUTS)[rows], every[picks], rng=rng
        )
        gap = score_map.apply(found.weights, np.eye(N_INPUTS)) - best
        excess.append(0.5 * np.mean(np.einsum("nw,nw->n", gap, gram.apply(gap))))
    D, M = float(found.path["radius"]), float(found.path["gradient_bound"])
    bound = 2 * D * M / np.sqrt(n_steps)
    mean, error = np.mean(excess), np.std(excess) / np.sqrt(len(excess))
    assert mean + 5 * error < bound
    # the test can fail: without learning the risk is above the bound of a long run
    start = 0.5 * np.mean(np.einsum("nw,nw->n", best, gram.apply(best)))
    assert mean < start
