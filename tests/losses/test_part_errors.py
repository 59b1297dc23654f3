"""Wrong parts: values by definition, packed batches, decisions, specs."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct.exceptions import LossSpecError
from consistruct.losses import PartErrors, parse_loss
from consistruct.structures import Alignments, Chain, DependencyTrees, Ragged, Segments, Spans


def test_a_parse_counts_words_with_a_wrong_head_or_type():
    rng = np.random.default_rng(0)
    crossing = DependencyTrees(6, 3, projective=False)
    for structure in (DependencyTrees(6), DependencyTrees(6, 3), crossing):
        pred, true = (structure.predictions.sample(50, rng) for _ in range(2))
        wrong = (pred != true).reshape(50, 6, -1).any(axis=2).sum(axis=1)
        np.testing.assert_array_equal(PartErrors(structure)(pred, true), wrong)


def test_segments_spans_and_links_count_what_is_in_one_label_only():
    pred, true = [[0, 0, 2, 1]], [[0, 0, 2, 0]]  # the last of three segments has another type
    assert PartErrors(Segments(4, 2))(pred, true) == [1.0]
    # transitions are scored, and not counted
    assert PartErrors(Segments(4, 2, transitions=True))(pred, true) == [1.0]
    left = [[0, 3, 0], [0, 2, 0], [0, 1, 0], [1, 2, 0], [2, 3, 0]]
    right = [[0, 3, 0], [0, 1, 0], [1, 3, 0], [1, 2, 0], [2, 3, 0]]
    assert PartErrors(Spans(3))([left], [right]) == [1.0]
    # one link too much and one missed, and one that is in both; gaps are not counted
    assert PartErrors(Alignments(3, 3))([[0, 1, 3]], [[0, 3, 1]]) == [1.0]
    assert PartErrors(Alignments(2, 2))([[0, 2]], [[0, 1]]) == [0.5]


CROSSING = DependencyTrees(None, projective=False)


@pytest.mark.parametrize(
    "structure", [DependencyTrees(None, 2), CROSSING, Segments(None, 2), Spans(None)]
)
def test_packed_labels_are_judged_one_by_one(structure):
    rng = np.random.default_rng(1)
    sizes = [4, 1, 6, 4]
    pred, true = ([structure.at(n).predictions.sample(1, rng)[0] for n in sizes] for _ in range(2))
    family = PartErrors(structure)
    expected = [
        family.at(n)(p[None], t[None])[0] for n, p, t in zip(sizes, pred, true, strict=True)
    ]
    np.testing.assert_array_equal(family(Ragged.pack(pred), Ragged.pack(true)), expected)
    with pytest.raises(ValueError, match="labels of the same lengths"):
        family(Ragged.pack(pred), Ragged.pack(true[:2]))


def test_a_gold_tree_may_cross():
    gold = [[3, 4, 0, 3]]  # 3 → 1 and 4 → 2 cross
    assert PartErrors(DependencyTrees(4, projective=False))([[3, 3, 0, 3]], gold) == [1.0]
    assert PartErrors(CROSSING)(Ragged.pack([[3, 3, 0, 3]]), Ragged.pack(gold)) == [1.0]
    with pytest.raises(ValueError, match="without crossing arcs"):
        PartErrors(DependencyTrees(4))([[3, 3, 0, 3]], gold)


@pytest.mark.parametrize("structure", [DependencyTrees(5), CROSSING.at(4)], ids=repr)
def test_the_decision_is_that_of_the_structure(structure):
    rng = np.random.default_rng(2)
    theta = 2 * rng.standard_normal((20, structure.width))
    loss = PartErrors(structure)
    labels = structure.predictions.enumerate()
    scores = theta @ structure.matrix().T
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    decided = structure.minimum_risk(theta)
    np.testing.assert_array_equal(decided, loss.score_space.decode(-p @ loss.target(labels)))
    # and no label has a smaller expected loss, by the direct formula
    risks = p @ loss.matrix().T
    chosen = structure.predictions.index(decided)
    np.testing.assert_allclose(risks[np.arange(20), chosen], risks.min(axis=1))
    assert (structure.decode(theta) != decided).any()  # the best label is another question


def test_specs():
    assert parse_loss("part-errors:trees:4x3") == PartErrors(DependencyTrees(4, 3))
    crossing = PartErrors(DependencyTrees(4, 3, projective=False))
    assert parse_loss("part-errors:trees:4x3:nonprojective") == crossing
    assert parse_loss("part_errors:segments:9x2:4") == PartErrors(Segments(9, 2, 4))
    for spec, message in (
        ("part-errors", r"one of \['segments', 'trees', 'spans', 'alignments'\]"),
        ("part-errors:chain:3", "not 'chain'"),
        ("part-errors:trees:9999999999999", "at most 120"),
    ):
        with pytest.raises(LossSpecError, match=message):
            parse_loss(spec)
    with pytest.raises(TypeError, match=r"must be made of derivations.*got Chain"):
        PartErrors(Chain(3, 2))
