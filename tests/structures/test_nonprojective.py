"""Non-projective trees: against all trees, against determinants, and where those fail."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from consistruct.structures import DependencyTrees
from consistruct.structures.nonprojective import (
    arc_table,
    are_trees,
    best_trees,
    count_trees,
    sample_trees,
    tree_at,
    tree_marginals,
    tree_number,
)

BOTH = pytest.mark.parametrize("single_root", [True, False])


def reaches_root(heads):
    """Follow the heads of each word by the definition of a tree."""
    for word in range(1, len(heads) + 1):
        seen = set()
        while word:
            if word in seen:
                return False
            seen.add(word)
            word = heads[word - 1]
    return True


def all_trees(n, single_root):
    """List the head vectors of all trees, slowly."""
    return np.array(
        [
            heads
            for heads in itertools.product(range(n + 1), repeat=n)
            if (not single_root or heads.count(0) == 1) and reaches_root(heads)
        ]
    )


def table(scores, n):
    """Return scores by head and modifier, (n + 1, n + 1)."""
    matrix = np.full((n + 1, n + 1), -np.inf)
    matrix[tuple(arc_table(n).T)] = scores
    return matrix


def listed(scores, n, trees):
    """Return log Z, marginals in the order of arcs, and the score of each tree."""
    values = table(scores, n)[trees, np.arange(1, n + 1)].sum(axis=1)
    log_z = np.logaddexp.reduce(values)
    p = np.exp(values - (log_z if log_z > -np.inf else 0.0))
    marginals = [p[trees[:, m - 1] == h].sum() for h, m in arc_table(n)]
    return log_z, np.array(marginals), values


@BOTH
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_labels_are_counted_and_recognized(n, single_root):
    trees = all_trees(n, single_root)
    assert count_trees(n, single_root=single_root) == len(trees)
    heads = np.array(list(itertools.product(range(n + 1), repeat=n)))
    if n < 6:
        found = heads[are_trees(heads, single_root=single_root)]
        assert np.array_equal(found, trees)
    assert not are_trees([[*range(1, n + 1)]], single_root=single_root)[
        0
    ]  # every word its own head


@BOTH
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_every_tree_has_a_number(n, single_root):
    trees = all_trees(n, single_root).tolist()
    numbers = [tree_number(tree, single_root=single_root) for tree in trees]
    assert sorted(numbers) == list(range(len(trees)))
    assert [tree_at(number, n, single_root=single_root) for number in numbers] == trees


def test_counts_are_exact_beyond_floats():
    assert count_trees(60, single_root=False) == 61**59
    assert not are_trees([[-1], [2]]).any()


@BOTH
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_against_all_trees(n, single_root, scale):
    rng = np.random.default_rng(n)
    trees = all_trees(n, single_root)
    arcs = arc_table(n)
    for round_ in range(12):
        scores = scale * rng.normal(size=n * n)
        if round_ % 2:
            scores[rng.random(n * n) < 0.35] = -np.inf
        log_z, marginals, values = listed(scores, n, trees)
        if np.isneginf(log_z):
            for function in (tree_marginals, best_trees):
                with pytest.raises(ValueError, match="no tree for sentence 0"):
                    function(scores, [0, n * n], arcs, single_root=single_root)
            with pytest.raises(ValueError, match="no tree for sentence 0"):
                sample_trees(scores, [0, n * n], arcs, rng, single_root=single_root)
            continue
        found_z, found = tree_marginals(scores, [0, n * n], arcs, single_root=single_root)
        np.testing.assert_allclose(found_z[0], log_z, rtol=1e-12, atol=1e-12)
        # relative accuracy, as nothing is subtracted; the sums over listed trees lose a little
        np.testing.assert_allclose(found, marginals, rtol=1e-9, atol=1e-300)
        best = best_trees(scores, [0, n * n], arcs, single_root=single_root)
        assert are_trees(best[None], single_root=single_root)[0]
        attained = table(scores, n)[best, np.arange(1, n + 1)].sum()
        np.testing.assert_allclose(attained, values.max(), rtol=1e-12, atol=1e-12)


@BOTH
@pytest.mark.parametrize("n", [1, 3, 4])
def test_samples_are_drawn_from_p(n, single_root):
    rng = np.random.default_rng(0)
    trees = all_trees(n, single_root)
    scores = 2 * rng.normal(size=n * n)
    scores[rng.random(n * n) < 0.2] = -np.inf
    scores[0] = 0.0
    log_z, _, values = listed(scores, n, trees)
    p = np.exp(values - log_z)
    draws = 20_000
    offsets = np.arange(draws + 1) * n * n
    drawn = sample_trees(
        np.tile(scores, draws), offsets, arc_table(n), rng, single_root=single_root
    )
    shares = (drawn.reshape(draws, 1, n) == trees).all(axis=2).mean(axis=0)
    assert shares.sum() == pytest.approx(1.0)
    assert (np.abs(shares - p) <= 5 * np.sqrt(p * (1 - p) / draws) + 1e-12).all()


def determinants(matrix, single_root):
    """Return log Z and marginals by the matrix-tree theorem (Koo et al. 2007)."""
    weights = np.exp(matrix[:, 1:])  # (head, modifier − 1), zero for a word and itself
    inner = weights[1:]
    laplacian = np.diag(weights[1:].sum(axis=0) + (0 if single_root else weights[0])) - inner
    if single_root:
        laplacian[0] = weights[0]
    inverse = np.linalg.inv(laplacian)
    marginals = np.zeros_like(weights)
    if single_root:
        marginals[0] = weights[0] * inverse[:, 0]
        rows = np.arange(len(inner)) > 0
        difference = np.diag(inverse) * rows - (inverse * rows).T
    else:
        marginals[0] = weights[0] * np.diag(inverse)
        difference = np.diag(inverse) - inverse.T
    marginals[1:] = inner * difference
    return np.linalg.slogdet(laplacian)[1], marginals


@BOTH
def test_against_determinants_in_a_batch_of_different_sizes(single_root):
    rng = np.random.default_rng(3)
    sizes = [1, 25, 2, 40, 7]
    scores = [rng.normal(size=n * n) for n in sizes]
    offsets = np.concatenate([[0], np.cumsum([n * n for n in sizes])])
    flat, arcs = np.concatenate(scores), arc_table(40)
    log_z, marginals = tree_marginals(flat, offsets, arcs, single_root=single_root)
    heads = best_trees(flat, offsets, arcs, single_root=single_root)
    drawn = sample_trees(flat, offsets, arcs, rng, single_root=single_root)
    first = np.concatenate([[0], np.cumsum(sizes)])
    for i, n in enumerate(sizes):
        expected_z, expected = determinants(table(scores[i], n), single_root)
        assert log_z[i] == pytest.approx(expected_z, rel=1e-12)
        h, m = arc_table(n).T
        np.testing.assert_allclose(
            marginals[offsets[i] : offsets[i + 1]], expected[h, m - 1], atol=1e-10
        )
        part = slice(first[i], first[i + 1])
        for found in (heads, drawn):
            assert are_trees(found[None, part], single_root=single_root)[0]
        alone = best_trees(scores[i], [0, n * n], arc_table(n), single_root=single_root)
        assert np.array_equal(heads[part], alone)


def test_a_cycle_of_weight_e_1000_costs_no_digit():
    """Two words that want each other: determinants cancel, random walks never leave."""
    arcs = arc_table(3)
    scores = np.zeros(9)
    scores[((arcs == [1, 2]) | (arcs == [2, 1])).all(axis=1)] = 1000.0
    # by hand: one of the two arcs fits into a tree. The pair hangs from the root, with word 3 below
    # either of its words, or from word 3: three trees for each of the arcs
    expected_z = 1000 + np.log(6)
    log_z, p = tree_marginals(scores, [0, 9], arcs)
    assert log_z[0] == pytest.approx(expected_z, rel=1e-14)
    by_arc = {tuple(arc): share for arc, share in zip(arcs.tolist(), p, strict=True)}
    assert by_arc[1, 2] == pytest.approx(1 / 2)
    assert by_arc[0, 3] == pytest.approx(1 / 3)
    drawn = sample_trees(scores, [0, 9], arcs, np.random.default_rng(0))
    assert are_trees(drawn[None])[0]


def test_minimum_risk_trees_make_the_fewest_expected_head_errors():
    rng = np.random.default_rng(5)
    trees, arcs = all_trees(5, True), arc_table(5)
    space = DependencyTrees(5, projective=False)
    assert np.array_equal(space.parts, arcs)
    differs = 0
    for round_ in range(40):
        scores = 2 * rng.normal(size=25)
        if round_ % 2:
            scores[rng.random(25) < 0.3] = -np.inf
            scores[arcs[:, 0] + 1 == arcs[:, 1]] = 0.0  # a tree is left: each word's head before it
        log_z, _, values = listed(scores, 5, trees)
        p = np.exp(values - log_z)
        errors = (trees[:, None] != trees[None]).sum(axis=2) @ p
        decided = space.minimum_risk(scores[None])[0]
        legal = np.isfinite(values)
        assert errors[(trees == decided).all(axis=1)][0] == pytest.approx(errors[legal].min())
        assert legal[(trees == decided).all(axis=1)].all()
        differs += int(not np.array_equal(decided, trees[values.argmax()]))
    assert differs > 0  # it is not the best tree under another name


def test_bad_batches_are_refused_in_one_line():
    arcs = arc_table(3)
    for scores, offsets in (([0.0] * 5, [0, 5]), ([0.0] * 4, [0, 3]), ([0.0] * 16, [0, 16])):
        with pytest.raises(ValueError, match="sentences of n² arcs each"):
            best_trees(scores, offsets, arcs)
    with pytest.raises(ValueError, match="NaN"):
        tree_marginals([np.nan], [0, 1], arcs)
    with pytest.raises(ValueError, match="within 1e"):
        tree_marginals([0.0, 0.0, 0.0, -1e11], [0, 4], arcs)
