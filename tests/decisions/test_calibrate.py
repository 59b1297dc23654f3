"""Recalibration before deciding: what is chosen, what it gains, what it states."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import consistruct as cs
from consistruct.losses import CostMatrix, Hamming

COSTS = CostMatrix([[0, 8, 8], [1, 0, 8], [1, 1, 0]], rows="pred")


def distorted(n, power, seed):
    """True probabilities, labels drawn from them, and probabilities to another power."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), n)
    y = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    return p, y, softmax(power * np.log(p), axis=1)


def test_a_temperature_is_undone():
    _, y_val, q_val = distorted(1500, 3.0, 0)
    p, _, q = distorted(4000, 3.0, 1)
    found = cs.decide(COSTS, q, calibrate=(q_val, y_val))
    raw = cs.decide(COSTS, q)
    losses = p @ COSTS.M.T
    each = np.arange(len(p))
    assert "a temperature (power 0.3" in found.notes[0]
    least = losses.min(axis=1).mean()
    assert losses[each, found.labels].mean() - least < 0.1 * (
        losses[each, raw.labels].mean() - least
    )
    assert found.expected_loss.mean() == pytest.approx(least, rel=0.05)


def test_right_probabilities_stay():
    p_val, y_val, _ = distorted(1500, 1.0, 2)
    p, _, _ = distorted(200, 1.0, 3)
    found = cs.decide(COSTS, p, calibrate=(p_val, y_val))
    assert "no change" in found.notes[0]
    np.testing.assert_array_equal(found.labels, cs.decide(COSTS, p).labels)
    np.testing.assert_array_equal(found.expected_loss, cs.decide(COSTS, p).expected_loss)


def test_a_curve_that_no_temperature_makes():
    rng = np.random.default_rng(4)
    q = rng.random(6000)
    truth = 0.1 + 0.3 * (q > 0.7)  # a step: neither sharper nor flatter
    y = (rng.random(6000) < truth).astype(int)
    given = np.column_stack([1 - q, q])
    loss = CostMatrix([[0, 4], [1, 0]], rows="pred")  # the step crosses the threshold 0.2
    found = cs.decide(loss, given[3000:], calibrate=(given[:3000], y[:3000]))
    assert "isotonic regression;" in found.notes[0]
    assert (found.labels == (truth[3000:] > 0.2)).mean() > 0.97


def test_labels_of_sets_are_pooled():
    rng = np.random.default_rng(5)
    p = rng.random((900, 3))
    y = (rng.random(p.shape) < p).astype(int)
    q = 1.0 / (1.0 + ((1.0 - p) / p) ** 3)
    found = cs.decide(Hamming(3), q[:300], calibrate=(q[300:], y[300:]))
    assert "temperature (power 0.3" in found.notes[0]
    expected = np.minimum(p[:300], 1 - p[:300]).mean()
    assert found.expected_loss.mean() == pytest.approx(expected, rel=0.1)


def test_one_against_the_rest_is_brought_to_sums_of_one():
    p_val, y_val, _ = distorted(1500, 1.0, 6)
    scale = np.random.default_rng(7).uniform(0.4, 1.0, (1500, 1))
    found = cs.decide(COSTS, p_val[:200] * scale[:200], calibrate=(p_val * scale, y_val))
    expected = (p_val[:200] @ COSTS.M.T).min(axis=1)
    assert "no change" in found.notes[0]
    np.testing.assert_allclose(found.expected_loss, expected, rtol=1e-9)


def test_columns_of_validation_rows_are_found_by_name():
    rng = np.random.default_rng(8)
    p = rng.random((600, 2)) * [1.0, 0.3]
    y = pd.DataFrame((rng.random(p.shape) < p).astype(int), columns=["sea", "sun"])
    q = pd.DataFrame(1.0 / (1.0 + ((1.0 - p) / p) ** 3), columns=["sea", "sun"])
    found = cs.decide(Hamming(2), q, calibrate=(q, y))
    turned = cs.decide(Hamming(2), q, calibrate=(q[["sun", "sea"]], y[["sun", "sea"]]))
    np.testing.assert_array_equal(found.labels, turned.labels)
    np.testing.assert_array_equal(found.expected_loss, turned.expected_loss)
    with pytest.raises(ValueError, match="columns sea, sun"):
        cs.decide(Hamming(2), q, calibrate=(q.rename(columns={"sea": "lake"}), y))


@pytest.mark.parametrize(
    ("calibrate", "reason"),
    [
        (([[0.5, 0.2, 0.3]] * 30, [0] * 29), "30 rows, but 29"),
        (([[0.5, 0.2, 0.3]] * 5, [0] * 5), "at least 20"),
        (([[0.5, 0.2, 0.3]] * 30, [0] * 29 + [7]), "none of the classes"),
        (([[0.5, 0.5]] * 30, [0] * 30), "3 classes"),
    ],
)
def test_what_cannot_calibrate(calibrate, reason):
    with pytest.raises(ValueError, match=reason):
        cs.decide(COSTS, [[0.2, 0.3, 0.5]], calibrate=calibrate)
