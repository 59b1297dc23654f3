"""A criterion beside its NumPy surrogate."""

from __future__ import annotations

import numpy as np

from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.surrogates import DistributionSurrogate, QuadraticSurrogate, make_surrogate
from consistruct.torch import TaskLoss
from tests.torch.members import batch


def compare_with_numpy(loss, name, scores=None):
    surrogate = make_surrogate(name, loss, scores)
    criterion = TaskLoss(loss, name, reduction="none", scores=scores)
    assert criterion.width == surrogate.score_space.width
    theta, true = batch(loss, criterion.width)
    theta.requires_grad_()
    values = criterion(theta, true)
    values.sum().backward()
    plain = theta.detach().numpy()
    expected, slope = surrogate.value_and_gradient(plain, true.numpy())
    np.testing.assert_allclose(values.detach().numpy(), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(theta.grad.numpy(), slope, rtol=1e-9, atol=1e-9)
    for reduction, value in (("mean", expected.mean()), ("sum", expected.sum())):
        found = TaskLoss(loss, name, reduction=reduction, scores=scores)(theta, true)
        np.testing.assert_allclose(found.item(), value, rtol=1e-9, atol=1e-9)
    compare_decisions(surrogate, criterion, plain, theta)
    try:
        target = surrogate.expected_target(plain)
    except (CapabilityError, ConsistructError):
        return
    mine = criterion.expected_target(theta).detach().numpy()
    np.testing.assert_allclose(mine, target, rtol=1e-7, atol=1e-7)


def compare_decisions(surrogate, criterion, plain, theta):
    """Equally good is good enough: ties of scores may be broken by rounding."""
    by_target = isinstance(surrogate, DistributionSurrogate)
    how = "bayes" if by_target else "argmax"
    space = surrogate.loss.score_space if by_target else surrogate.score_space
    scores = -surrogate.expected_target(plain) if by_target else plain
    best = (space.embed(surrogate.decode(plain, how)) * scores).sum(1)
    found = criterion.decode(theta).numpy()
    np.testing.assert_allclose((space.embed(found) * scores).sum(1), best, rtol=1e-9, atol=1e-9)
    if isinstance(surrogate, QuadraticSurrogate) and space.tie_rule == "smallest index":
        np.testing.assert_array_equal(found, surrogate.decode(plain, how))
