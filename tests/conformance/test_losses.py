"""Every registered loss, and losses drawn by hypothesis, against the public conformance checks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consistruct.losses import (
    NDCG,
    Abstain,
    Block,
    CostMatrix,
    CostVectors,
    Decision,
    ExpectedRankUtility,
    FBeta,
    Hamming,
    MeanAveragePrecision,
    Mixed,
    Ordinal,
    PairwiseDisagreement,
    PartErrors,
    PartialLabels,
    PrecisionAt,
    Tree,
    ZeroOne,
    mixture,
)
from consistruct.losses.base import Loss
from consistruct.losses.registry import LOSSES
from consistruct.structures import DependencyTrees, Segments
from consistruct.testing import check_huge_loss, check_loss

EXAMPLES = [loss for entry in LOSSES.values() for loss in entry.examples]
MORE: list[Loss] = [
    0.4 * ZeroOne(4) + 0.6 * Block((2, 2)),
    mixture([Block((2, 2, 2)), Block((3, 3))], [0.5, 0.5]),  # neither spans the other
    2.5 * Hamming(3),
    Hamming(2) + 3 * Hamming(2),
    0.0 * ZeroOne(3),
    CostVectors(3) + CostVectors(3),
    PartErrors(Segments(3, 2, transitions=True)),
    PartErrors(DependencyTrees(3, single_root=False)),
    PartErrors(Segments(6, 1, 2)),
    ZeroOne(3) + CostMatrix([[0, 1, 2], [3, 0, 1], [1, 1, 0]], rows="pred"),
    CostMatrix(np.random.default_rng(0).random((5, 8)), rows="pred"),
    CostMatrix(np.outer(np.arange(6), np.arange(1, 5)), rows="pred"),
    CostMatrix(1e6 * np.random.default_rng(1).random((4, 4)), rows="pred"),
    Ordinal(2),
    Ordinal(12, 3.0),
    Abstain(3, 0.0),
    Abstain(2, 5.0),
]


@pytest.mark.parametrize("loss", EXAMPLES + MORE, ids=repr)
def test_loss_keeps_the_contracts(loss):
    check_loss(loss)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_huge_member_runs_or_states_why_not(name):
    huge = LOSSES[name].huge
    if huge is None:
        # listed labels, or decisions that are not counted, may lack a huge member
        assert LOSSES[name].cls in (CostMatrix, Decision, PartErrors, Tree)
        return
    check_huge_loss(huge)


@pytest.mark.parametrize(
    "loss",
    [
        Hamming(129, 3),
        Block((2**250, 2**249, 2**250)),
        Mixed((2**250, 2**249), 0.0),
        0.5 * Hamming(300) + 0.5 * Hamming(300),
        0.4 * ZeroOne(2**300) + 0.6 * Block((2**299, 2**299)),
    ],
    ids=lambda loss: repr(loss)[:60],
)
def test_other_huge_losses(loss):
    check_huge_loss(loss)


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def assignments(draw):
    n_blocks = draw(st.integers(1, 4))
    rest = draw(st.lists(st.integers(0, n_blocks - 1), max_size=5))
    return tuple(draw(st.permutations([*range(n_blocks), *rest])))


@st.composite
def matrices(draw):
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    entry = st.sampled_from([0.0, 1.0, 2.0, 0.5, 3.25])  # repeats make merged rows and low rank
    return np.array(
        draw(st.lists(entry, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    ).reshape(shape)


@st.composite
def trees(draw):
    n_nodes = draw(st.integers(1, 8))
    parents = [-1] + [draw(st.integers(-1, node - 1)) for node in range(1, n_nodes)]
    order = draw(st.permutations(range(n_nodes)))  # children may come before their parents
    shuffled = [0] * n_nodes
    for node, parent in enumerate(parents):
        shuffled[order[node]] = -1 if parent < 0 else order[parent]
    weights = draw(
        st.none() | st.lists(st.sampled_from([0.0, 1.0, 0.5]), min_size=n_nodes, max_size=n_nodes)
    )
    predict = draw(st.sampled_from(["leaves", "nodes"]))
    if draw(st.booleans()):
        return Tree(shuffled, kind="level", predict=predict)
    return Tree(shuffled, weights, predict=predict)


losses = st.one_of(
    st.integers(1, 9).map(ZeroOne),
    sizes.map(Block),
    assignments().map(lambda blocks: Block(assignment=blocks)),
    st.builds(Mixed, sizes, st.floats(0, 1).filter(lambda eta: eta == 0 or eta > 1e-3)),
    st.integers(1, 4).map(Hamming),
    st.builds(Hamming, st.integers(1, 2), st.integers(2, 4)),
    matrices().map(lambda M: CostMatrix(M, rows="pred")),
    trees(),
    st.builds(Ordinal, st.integers(1, 7), st.sampled_from([1.0, 2.0, 0.5, 3.0])),
    st.builds(Abstain, st.integers(1, 5), st.sampled_from([0.0, 0.3, 0.5, 0.8, 2.0])),
)
shares = st.sampled_from([0.0, 0.5, 1.0])


@st.composite
def set_losses(draw):
    # all sizes of four labels: too badly conditioned for the dense reference if β is small
    T = draw(st.integers(1, 4))
    sizes = draw(
        (st.none() if T < 4 else st.just((1, 4)))
        | st.sets(st.integers(0, T), min_size=1, max_size=2).map(tuple)
    )
    if sizes is not None and max(sizes) == 0:
        sizes = (0, T)
    return FBeta(T, draw(st.sampled_from([0.5, 1.0, 2.0])), sizes=sizes, empty=draw(shares))


@st.composite
def rankings(draw):
    n = draw(st.integers(1, 4))
    n_grades = draw(st.integers(2, 3 if n < 4 else 2))
    q = draw(st.integers(1, n))
    grades = {"n_grades": n_grades, "empty": draw(shares)}
    return draw(
        st.sampled_from(
            [
                PrecisionAt(n, q, **grades),
                NDCG(n, q, gain="linear", discount="reciprocal", **grades),
                NDCG(n, None, discount="linear", **grades),
                ExpectedRankUtility(n, draw(st.sampled_from([1.5, 3.0])), **grades),
                PairwiseDisagreement(n, n_grades, empty=draw(shares)),
                MeanAveragePrecision(n, empty=draw(shares)),
                PartialLabels(Ordinal(n), draw(st.sampled_from(["infimum", "supremum"]))),
            ]
        )
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.one_of(set_losses(), rankings()))
def test_any_metric_loss_keeps_the_contracts(loss):
    check_loss(loss)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(losses)
def test_any_loss_keeps_the_contracts(loss):
    check_loss(loss)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(2, 6), st.lists(st.floats(0.1, 3), min_size=2, max_size=3), st.data())
def test_any_combination_keeps_the_contracts(k, weights, data):
    terms = []
    for weight in weights:
        blocks = data.draw(st.lists(st.integers(0, 1), min_size=k - 2, max_size=k - 2))
        term = data.draw(
            st.sampled_from([ZeroOne(k), Ordinal(k), Block(assignment=[0, 1, *blocks])])
        )
        terms.append(weight * term)
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    check_loss(total)
