"""Chains: against enumeration, the compiled kernels of the host, and finite differences."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch

import consistruct as cs
from consistruct.structures import Ragged
from consistruct.structures.chains import ChainScores, viterbi
from consistruct.structures.chains import chain_marginals as host_marginals
from consistruct.surrogates.registry import chain_surrogate
from consistruct.torch import ChainCRF, Decoder, fused, scan, steps
from consistruct.torch.chain import (
    chain_log_partition,
    chain_marginals,
    chain_sample,
    chain_score,
    chain_viterbi,
)

LENGTHS = [7, 3, 1, 0, 5]


def scores(shared, dtype=torch.float64, scale=1.0, s=4):
    generator = torch.Generator().manual_seed(0)
    n, T = len(LENGTHS), max(LENGTHS)
    unary = scale * torch.randn(n, T, s, dtype=dtype, generator=generator)
    shape = (s, s) if shared else (n, T - 1, s, s)
    edges = scale * torch.randn(shape, dtype=dtype, generator=generator)
    mask = torch.arange(T) < torch.tensor(LENGTHS)[:, None]
    return unary, edges, mask


def packed(unary, edges):
    """The same scores for the kernels of the host."""
    own = np.concatenate([unary[row, :n].numpy() for row, n in enumerate(LENGTHS)])
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    if edges.ndim == 2:
        return ChainScores(own, edges.numpy(), offsets)
    rows = []
    for row, n in enumerate(LENGTHS):
        rows += [edges[row, : max(n - 1, 0)].numpy(), np.zeros((min(n, 1), *edges.shape[2:]))]
    return ChainScores(own, np.concatenate(rows), offsets)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("dtype", "scale", "tolerance"),
    [(torch.float64, 1.0, 1e-12), (torch.float32, 1.0, 1e-5), (torch.float64, 1e4, 1e-8)],
)
def test_against_the_kernels_of_the_host(shared, dtype, scale, tolerance):
    unary, edges, mask = scores(shared, dtype, scale)
    distribution = host_marginals(packed(unary, edges))
    states, pairs = chain_marginals(unary, edges, mask)
    near = {"rtol": tolerance, "atol": tolerance}
    found = chain_log_partition(unary, edges, mask)
    np.testing.assert_allclose(found.numpy(), distribution.log_partition, **near)
    np.testing.assert_allclose(states[mask].numpy(), distribution.unary, **near)
    assert not states[~mask].any()
    if shared:
        np.testing.assert_allclose(pairs.sum(0).numpy(), distribution.edges, **near)
    else:
        ends = np.concatenate([[t < n - 1 for t in range(n)] for n in LENGTHS if n]).astype(bool)
        inner = pairs[mask[:, 1:]].numpy()
        np.testing.assert_allclose(inner, distribution.edges[ends], **near)
    best = viterbi(packed(unary, edges)).values
    paths = chain_viterbi(unary, edges, mask)
    np.testing.assert_array_equal(paths[mask].numpy(), best)
    assert (paths[~mask] == -1).all()


def enumerated(unary, edges):
    """log Z and marginals of one sequence, by all sequences of states."""
    T, s = unary.shape
    every = list(itertools.product(range(s), repeat=T))
    terms = [
        sum(unary[t, y[t]] for t in range(T)) + sum(edges[y[t], y[t + 1]] for t in range(T - 1))
        for y in every
    ]
    value = torch.stack(terms)
    p = torch.softmax(value, 0)
    states = torch.zeros(T, s, dtype=unary.dtype)
    for share, y in zip(p, every, strict=True):
        for t in range(T):
            states[t, y[t]] += share
    return torch.logsumexp(value, 0), states


def test_against_enumeration_with_forbidden_states_and_gaps():
    unary, edges, _ = scores(True, s=3)
    unary, edges = unary[:1, :5], edges.clone()
    edges[0, 1] = -torch.inf
    unary[0, 2, 0] = -torch.inf
    value, states = enumerated(unary[0], edges)
    found = chain_log_partition(unary, edges)
    torch.testing.assert_close(found[0], value)
    torch.testing.assert_close(chain_marginals(unary, edges)[0][0], states)
    torch.testing.assert_close(scan.log_partition(unary, edges, torch.ones(1, 5).bool())[0], value)
    # what is masked is stepped over, wherever it stands
    gap = torch.tensor([[False, True, False, True, True]])
    left = unary[0, gap[0]]
    value, states = enumerated(left, edges)
    torch.testing.assert_close(chain_log_partition(unary, edges, gap)[0], value)
    torch.testing.assert_close(chain_marginals(unary, edges, gap)[0][0, gap[0]], states)
    torch.testing.assert_close(scan.log_partition(unary, edges, gap)[0], value)
    path = chain_viterbi(unary, edges, gap)
    torch.testing.assert_close(path[gap], chain_viterbi(left[None], edges)[0])
    torch.testing.assert_close(
        chain_score(unary, edges, path, gap), chain_score(left[None], edges, path[gap][None])
    )


@pytest.mark.parametrize("shared", [True, False])
def test_log_space_and_linear_space_agree(shared):
    unary, edges, mask = scores(shared)
    for one, other in zip(
        steps._linear_posterior(unary, edges, mask),
        steps._log_posterior(unary, edges, mask),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
    assert steps._linear_posterior(unary, edges * torch.inf, mask) is None
    assert steps._linear_posterior(unary, 1e5 * edges, mask) is None


@pytest.mark.parametrize("shared", [True, False])
def test_first_and_second_derivatives(shared):
    unary, edges, mask = scores(shared, s=2)
    unary, edges = unary[:, :4].requires_grad_(), edges[..., :3, :, :] if not shared else edges
    edges, mask = edges.detach().requires_grad_(), mask[:, :4]

    def value(u, e):
        return chain_log_partition(u, e, mask)

    def marginals(u, e):
        return chain_marginals(u, e, mask)

    assert torch.autograd.gradcheck(value, (unary, edges))
    assert torch.autograd.gradcheck(marginals, (unary, edges))
    assert torch.autograd.gradgradcheck(value, (unary, edges))


def test_only_one_of_the_scores_needs_a_derivative():
    unary, edges, mask = scores(True, s=2)
    unary.requires_grad_()
    (slope,) = torch.autograd.grad(chain_log_partition(unary, edges, mask).sum(), unary)
    torch.testing.assert_close(slope, chain_marginals(unary, edges, mask)[0])


def test_samples_follow_the_distribution():
    unary, edges, mask = scores(True, s=3)
    unary, mask = unary[:2, :3], mask[:2, :3]
    generator = torch.Generator().manual_seed(1)
    drawn = chain_sample(unary, edges, mask, n_samples=20_000, generator=generator)
    assert drawn.shape == (20_000, 2, 3)
    states, pairs = chain_marginals(unary, edges, mask)
    for a in range(3):
        share = (drawn == a).double().mean(0)
        torch.testing.assert_close(share, states[:, :, a], atol=0.015, rtol=0)
    together = torch.zeros(3, 3, dtype=torch.float64)
    for t in range(2):
        index = drawn[:, 0, t] * 3 + drawn[:, 0, t + 1]
        together += torch.bincount(index, minlength=9).view(3, 3) / len(drawn)
    torch.testing.assert_close(together, pairs[0], atol=0.02, rtol=0)
    generator.manual_seed(1)
    again = chain_sample(unary, edges, mask, n_samples=20_000, generator=generator)
    assert torch.equal(again, drawn)


@pytest.mark.parametrize("name", ["log", "hinge", "softmax-margin", "quadratic"])
def test_the_layer_against_the_surrogates_of_the_host(name):
    unary, edges, mask = scores(True)
    keep = [0, 1, 2, 4]  # the empty sequence has no loss
    crf = ChainCRF(4, name, part_cost=1.0 if name == "log" else 0.7, reduction="none").double()
    with torch.no_grad():
        crf.edges.copy_(edges)
        crf.start.copy_(torch.tensor([0.3, -0.2, 0.0, 1.0]))
        crf.end.copy_(torch.tensor([-0.5, 0.1, 0.4, 0.0]))
    rng = np.random.default_rng(0)
    tags = torch.as_tensor(rng.integers(0, 4, mask.shape))
    weight = torch.tensor([1.0, 2.0, 0.5, 3.0], dtype=torch.float64)
    unary, mask, tags = unary[keep].requires_grad_(), mask[keep], tags[keep]
    values = crf(unary, torch.where(mask, tags, -100), mask, weight)
    values.sum().backward()
    lengths = [LENGTHS[row] for row in keep]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    own = unary.detach()[mask].numpy().copy()
    own[offsets[:-1]] += crf.start.detach().numpy()
    own[offsets[1:] - 1] += crf.end.detach().numpy()
    member = type(chain_surrogate(name))(part_cost=crf.part_cost)
    true = Ragged(tags[mask].numpy(), offsets)
    host = member.value_and_gradient(ChainScores(own, edges.numpy(), offsets), true, weight.numpy())
    np.testing.assert_allclose(values.detach().numpy(), host.values * weight.numpy(), atol=1e-10)
    np.testing.assert_allclose(unary.grad[mask].numpy(), host.unary, atol=1e-10)
    for parameter, slope in (
        (crf.edges, host.edges),
        (crf.start, host.start),
        (crf.end, host.end),
    ):
        assert parameter.grad is not None
        np.testing.assert_allclose(parameter.grad.numpy(), slope, atol=1e-10)
    assert not unary.grad[~mask].any()
    decided = member.decode(ChainScores(own, edges.numpy(), offsets), "argmax")
    np.testing.assert_array_equal(crf.decode(unary, mask)[mask].numpy(), decided.values)
    mean = copy.deepcopy(crf)
    mean.reduction = "mean"
    torch.testing.assert_close(mean(unary, tags, mask, weight), values.sum() / weight.sum())


def test_layer_inference_and_copies():
    crf = ChainCRF(3).double()
    torch.nn.init.normal_(crf.edges)
    torch.nn.init.normal_(crf.start)
    unary, _, mask = scores(True, s=3)
    states = crf.marginals(unary, mask)
    torch.testing.assert_close(states.sum(2), mask.double())
    best = crf.decode(unary, mask, "marginals")
    torch.testing.assert_close(best[mask], states.argmax(2)[mask])
    twin = pickle.loads(pickle.dumps(crf))
    torch.testing.assert_close(twin.log_partition(unary, mask), crf.log_partition(unary, mask))
    assert set(crf.state_dict()) == {"edges", "start", "end"}
    assert crf.sample(unary, mask, n_samples=2).shape == (2, *mask.shape)
    half = crf(unary.bfloat16(), mask.long(), mask)
    assert half.dtype == torch.float32


def test_compiled_without_a_break():
    crf = ChainCRF(3)
    unary, _, mask = scores(True, torch.float32, s=3)
    tags = torch.zeros(mask.shape, dtype=torch.int64)
    unary.requires_grad_()
    compiled = torch.compile(crf, fullgraph=True, backend="aot_eager")
    value = compiled(unary, tags, mask)
    torch.testing.assert_close(value, crf(unary, tags, mask))
    (slope,) = torch.autograd.grad(value, unary)
    torch.testing.assert_close(slope, torch.autograd.grad(crf(unary, tags, mask), unary)[0])


def test_the_kernel_is_for_gpus_only():
    assert not fused.available(torch.zeros(1, 2, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda u, e, m: chain_log_partition(u[0], e, m), "unary must have shape"),
        (lambda u, e, m: chain_log_partition(u, e[:2], m), "edges must have shape"),
        (lambda u, e, m: chain_log_partition(u, e, m.float()), "mask must contain Booleans"),
        (lambda u, e, m: ChainCRF(3)(u, m.long(), m), "unary must have shape"),
        (lambda u, e, m: ChainCRF(4)(u, m.long(), m.float()), "mask must contain Booleans"),
        (lambda u, e, m: ChainCRF(4)(u, m.long()[:2], m), "target must have shape"),
        (lambda u, e, m: ChainCRF(4)(u, 4 * m.long(), m), "tags 0..3"),
        (lambda u, e, m: ChainCRF(4, "logistic"), "surrogate must be one of"),
        (lambda u, e, m: ChainCRF(4, reduction="all"), "reduction must be one of"),
        (lambda u, e, m: ChainCRF(4).decode(u, m, "best"), "how must be"),
        (lambda u, e, m: ChainCRF(4, "hinge").decode(u, m, "marginals"), "only the log loss"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call(*scores(True))
    assert "\n" not in str(caught.value)


def test_chain_scores_of_a_member():
    loss, space = cs.losses.Hamming(4, 3), cs.structures.Chain(4, 3)
    theta = torch.randn(5, space.width, dtype=torch.float64)
    found = Decoder(loss, scores=space)(theta)
    np.testing.assert_array_equal(found.numpy(), space.decode(theta.numpy()))
