"""Criteria over the whole registry: every member with every surrogate, derivatives, compilation."""

from __future__ import annotations

import pytest
import torch

from consistruct.torch import TaskLoss
from tests.torch.comparisons import compare_with_numpy
from tests.torch.members import LOSSES_TRIED, SOME, batch, cases, named


@pytest.mark.parametrize("loss", LOSSES_TRIED, ids=repr)
def test_every_surrogate_of_every_member(loss):
    for _, name in cases([loss]):
        compare_with_numpy(loss, name)


@pytest.mark.parametrize("loss", SOME, ids=repr)
def test_derivatives_of_every_surrogate(loss):
    for _, name in cases([loss]):
        criterion = TaskLoss(loss, name, reduction="none")
        theta, true = batch(loss, criterion.width, n=2)
        theta.requires_grad_()

        def value(scores, criterion=criterion, true=true):
            return criterion(scores, true)

        assert torch.autograd.gradcheck(value, theta)
        if name != "hinge":
            assert torch.autograd.gradgradcheck(value, theta)


@pytest.mark.parametrize(("loss", "name"), [(loss, "quadratic") for loss in SOME], ids=named)
def test_compiled_without_a_break(loss, name):
    torch.compiler.reset()
    criterion = TaskLoss(loss, name)
    theta, true = batch(loss, criterion.width, dtype=torch.float32)
    theta.requires_grad_()
    compiled = torch.compile(criterion, fullgraph=True, backend="aot_eager")
    value = compiled(theta, true)
    torch.testing.assert_close(value, criterion(theta, true))
    (slope,) = torch.autograd.grad(value, theta)
    torch.testing.assert_close(slope, torch.autograd.grad(criterion(theta, true), theta)[0])
