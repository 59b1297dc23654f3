"""The engine of derivations against listed labels, and structures that are recursions."""

from __future__ import annotations

import pickle
import threading
from functools import partial
from math import comb

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from consistruct.exceptions import CapabilityError, FamilyError, LossSpecError, TooManyLabelsError
from consistruct.losses import ZeroOne
from consistruct.structures import (
    Alignments,
    Chain,
    DependencyTrees,
    Derivations,
    Ragged,
    Segments,
    Spans,
)
from consistruct.structures.registry import parse_scores
from tests.structures.derivation_reference import (
    ChainRecursion,
    SiblingTrees,
    alignment_parts,
    chain_parts,
    listed,
    segment_parts,
    sibling_parts,
    span_parts,
    tree_arcs,
)

# family, the labels of one size by definition, sizes
FAMILIES = [
    (DependencyTrees(None), tree_arcs, (1, 2, 4, 5)),
    (DependencyTrees(None, 2), partial(tree_arcs, n_types=2), (1, 3)),
    (DependencyTrees(None, single_root=False), partial(tree_arcs, single_root=False), (1, 3, 4)),
    (
        DependencyTrees(None, projective=False),
        partial(tree_arcs, arcs_cross=True),
        (1, 2, 4, 5),
    ),
    (
        DependencyTrees(None, 2, projective=False),
        partial(tree_arcs, n_types=2, arcs_cross=True),
        (1, 2, 3),
    ),
    (
        DependencyTrees(None, 3, single_root=False, projective=False),
        partial(tree_arcs, n_types=3, single_root=False, arcs_cross=True),
        (1, 2),
    ),
    (Segments(None), segment_parts, (1, 5)),
    (Segments(None, 2, 3), partial(segment_parts, n_types=2, max_length=3), (1, 2, 5)),
    (
        Segments(None, 2, 3, transitions=True),
        partial(segment_parts, n_types=2, max_length=3, transitions=True),
        (1, 2, 5),
    ),
    (Spans(None), span_parts, (1, 2, 6)),
    (Spans(None, 2), partial(span_parts, n_types=2), (1, 3, 4)),
    (Alignments(None, 3), partial(alignment_parts, n_targets=3), (1, 2, 5)),
    (ChainRecursion(None), chain_parts, (1, 2, 5)),
    (SiblingTrees(None), sibling_parts, (1, 2, 5)),
]
families = pytest.mark.parametrize(
    ("family", "labels", "sizes"), FAMILIES, ids=[repr(family) for family, _, _ in FAMILIES]
)


def ragged_scores(family, labels, sizes, rng, forbid):
    """Sizes mixed up, scores, and the listed labels of each example."""
    sizes = rng.permutation(np.repeat(sizes, 3))
    listings = [listed(family.at(int(size)), labels(int(size))) for size in sizes]
    rows = []
    for listing in listings:
        theta = 2 * rng.standard_normal(listing.shape[1])
        if forbid:  # at least one label stays legal
            kept = listing[rng.integers(len(listing))] == 1
            theta[~kept & (rng.random(len(theta)) < 0.3)] = -np.inf
        rows.append(theta)
    return sizes, rows, listings


def listed_scores(listing, theta):
    finite = np.where(np.isneginf(theta), 0.0, theta)
    scores = listing @ finite
    scores[(listing[:, np.isneginf(theta)] > 0).any(axis=1)] = -np.inf
    return scores


@families
@pytest.mark.parametrize("forbid", [False, True])
def test_ragged_batches_against_listed_labels(family, labels, sizes, forbid):
    rng = np.random.default_rng(len(repr(family)))
    sizes, rows, listings = ragged_scores(family, labels, sizes, rng, forbid)
    batch = family.batch(sizes)
    flat = np.concatenate(rows)
    log_partition, marginals = batch.marginals(flat)
    best, used = batch.best(flat)
    for i, (theta, listing) in enumerate(zip(rows, listings, strict=True)):
        part = slice(batch.offsets[i], batch.offsets[i + 1])
        scores = listed_scores(listing, theta)
        p = softmax(scores)
        assert family.at(int(sizes[i])).n_labels == len(np.unique(listing, axis=0)) == len(listing)
        np.testing.assert_allclose(log_partition[i], logsumexp(scores), rtol=1e-12)
        np.testing.assert_allclose(marginals[part], p @ listing, atol=1e-12)
        np.testing.assert_allclose(best[i], scores.max(), rtol=1e-12)
        assert np.array_equal(listing[scores.argmax()], used[part])
    if not getattr(family, "projective", True):
        return  # without a recursion there is no `k_best`
    k_scores, k_used = batch.k_best(flat, 7)
    for i, (theta, listing) in enumerate(zip(rows, listings, strict=True)):
        part = slice(batch.offsets[i], batch.offsets[i + 1])
        scores = listed_scores(listing, theta)
        order = np.argsort(-scores)[: min(7, int((scores > -np.inf).sum()))]
        np.testing.assert_allclose(k_scores[i, : len(order)], scores[order], rtol=1e-10)
        assert np.array_equal(k_used[: len(order), part], listing[order])
        assert np.isneginf(k_scores[i, len(order) :]).all()


@families
def test_decisions_of_least_expected_errors_are_legal_and_best(family, labels, sizes):
    rng = np.random.default_rng(1)
    sizes, rows, listings = ragged_scores(family, labels, sizes, rng, True)
    for size, theta, listing in zip(sizes, rows, listings, strict=True):
        structure = family.at(int(size))
        scores = listed_scores(listing, theta)
        counted = listing * structure.counted
        errors = 0.5 * np.abs(counted[:, None] - counted).sum(axis=2) @ softmax(scores)
        errors[np.isneginf(scores)] = np.inf
        (decided,) = structure.parts_of(structure.minimum_risk([theta]))
        chosen = np.flatnonzero((listing == decided).all(axis=1))
        np.testing.assert_allclose(errors[chosen], errors.min(), atol=1e-12)


@families
def test_samples_follow_the_distribution(family, labels, sizes):
    rng = np.random.default_rng(2)
    size = sizes[-1]
    listing = listed(family.at(size), labels(size))
    theta = rng.standard_normal(listing.shape[1])
    used = family.batch([size]).sample(theta, 4000, rng)
    # listed rows are distinct, so that a weight per part tells them apart
    key = rng.standard_normal(listing.shape[1])
    seen = np.abs((used @ key)[:, None] - listing @ key).argmin(axis=1)
    assert np.array_equal(listing[seen], used)
    p = softmax(listing @ theta)
    share = np.bincount(seen, minlength=len(p)) / len(used)
    assert (np.abs(share - p) <= 6 * np.sqrt(p / len(used)) + 6 / len(used)).all()


@families
def test_scores_far_apart_overflow_nowhere(family, labels, sizes):
    size = sizes[-1]
    listing = listed(family.at(size), labels(size))
    theta = 1e4 * np.random.default_rng(3).standard_normal(listing.shape[1])
    scores = listing @ theta
    structure = family.at(size)
    assert structure.log_partition([theta])[0] == pytest.approx(scores.max(), rel=1e-12)
    np.testing.assert_allclose(
        structure.marginals([theta])[0], listing[scores.argmax()], atol=1e-12
    )


# --- counts, against closed forms ---


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_exact_counts(n):
    # non-crossing trees with one child of the root, and forests: Fuss–Catalan numbers
    assert DependencyTrees(n).n_labels == comb(3 * n - 2, n - 1) // n
    assert DependencyTrees(n, single_root=False).n_labels == comb(3 * n, n) // (2 * n + 1)
    assert Spans(n, 3).n_labels == comb(2 * n - 2, n - 1) // n * 3 ** (2 * n - 1)
    assert Segments(n).n_labels == 2 ** (n - 1)
    assert Segments(n, 5).n_labels == 5 * 6 ** (n - 1)
    assert Alignments(n, 9).n_labels == comb(n + 9, n)


def test_labels_beyond_64_bits_have_exact_numbers():
    trees = DependencyTrees(40).predictions
    assert trees.size > 2**64
    labels = trees.sample(5, np.random.default_rng(0))
    numbers = trees.index(labels)
    assert all(0 <= number < trees.size for number in numbers)
    assert np.array_equal(trees.unindex(numbers), labels)
    assert trees.index(trees.unindex([trees.size - 1])).tolist() == [trees.size - 1]


# --- against the chain kernels, which share no code with the engine ---


def test_the_chain_kernels_agree():
    T, s = 40, 3
    rng = np.random.default_rng(4)
    structure, chain = ChainRecursion(T), Chain(T, s)
    theta = rng.standard_normal((3, chain.width))
    position, state, following = structure.parts.T
    unary = position * s + state
    edge = T * s + position * s * s + state * s + following
    column = np.where(following < 0, unary, edge)
    np.testing.assert_allclose(
        structure.log_partition(theta[:, column]), chain.log_partition(theta), rtol=1e-12
    )
    np.testing.assert_allclose(
        structure.marginals(theta[:, column]), chain.marginals(theta)[:, column], atol=1e-12
    )
    used = structure.decode(theta[:, column])
    assert np.array_equal(used, chain.embed(chain.decode(theta))[:, column])


# --- packed batches, families, threads ---


def test_packed_scores_decode_like_each_member():
    rng = np.random.default_rng(5)
    crossing = DependencyTrees(None, 2, projective=False)
    for family in (DependencyTrees(None), crossing, Segments(None, 2, 3), Spans(None, 2)):
        members = [family.at(n) for n in (3, 1, 6, 3)]
        rows = [rng.standard_normal(member.width) for member in members]
        packed = family.decode_packed(Ragged.pack(rows))
        for member, row, label in zip(members, rows, packed, strict=True):
            assert np.array_equal(member.decode([row])[0], label)
        with pytest.raises(ValueError, match=r"example 1 has 7 scores.*row of .at\(size\).parts"):
            DependencyTrees(None).decode_packed(Ragged.pack([np.zeros(4), np.zeros(7)]))


class OnePart(Derivations):
    """A part at the first size, and no more later."""

    columns = ("start",)

    def nodes(self, end):
        yield end, [(((end - 1,), (0,)) if end == 1 else ((end - 1,), None))] if end else self.AXIOM


def test_widths_that_no_size_has_end_the_search():
    with pytest.raises(ValueError, match="example 0 has 3 scores, which no size of"):
        OnePart(None).decode_packed(Ragged.pack([np.zeros(3)]))


def test_an_empty_batch_is_a_batch():
    trees = DependencyTrees(3)
    assert trees.decode(np.zeros((0, 9))).shape == (0, 3)
    assert trees.marginals(np.zeros((0, 9))).shape == (0, 9)
    assert trees.k_best(np.zeros((0, 9)), 2) == ([], [])
    assert len(DependencyTrees(None).batch([]).offsets) == 1


def test_families_refuse_what_needs_a_size():
    for action in (
        lambda: DependencyTrees(None).width,
        lambda: DependencyTrees(None).decode([[0.0]]),
        lambda: DependencyTrees(None).predictions.check([[0]]),
    ):
        with pytest.raises(FamilyError):
            action()
    assert DependencyTrees(None).n_labels is None
    assert DependencyTrees(None).predictions.at(3).size == 7


def test_lists_grow_under_threads():
    class Fresh(ChainRecursion):
        n_states = 4

    results: dict[int, int] = {}

    def count(n):
        results[n] = Fresh(n).n_labels or 0

    threads = [threading.Thread(target=count, args=(n,)) for n in range(1, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: 4**n for n in range(1, 30)}


def test_members_pickle():
    trees = DependencyTrees(4)
    trees.decode(np.zeros((1, 16)))
    assert pickle.loads(pickle.dumps(trees)) == trees


# --- the k best, where a recursive search would overflow its stack ---


def test_k_best_of_a_long_sequence():
    n = 3000
    space = Segments(n, max_length=2)
    theta = np.where(space.parts[:, 1] - space.parts[:, 0] == 1, 1.0, 0.0)
    (labels,), (scores,) = space.k_best([theta], 4)
    assert scores.tolist() == [n, n - 2, n - 2, n - 2]
    assert len(np.unique(labels, axis=0)) == 4
    assert np.array_equal(labels[0], space.decode([theta])[0])


def test_fewer_labels_than_k():
    labels, scores = DependencyTrees(2).k_best([[0.0, 1.0, 2.0, 3.0]], 10)
    assert len(labels[0]) == len(scores[0]) == 2
    assert scores[0].tolist() == sorted(scores[0].tolist(), reverse=True)


# --- recursions that are wrong ---


class Pieces(Derivations):
    """A rope cut into pieces of length 1 or 2."""

    columns = ("start", "end")

    def nodes(self, end):
        cuts = range(max(0, end - 2), end)
        yield end, [((cut,), (cut, end)) for cut in cuts] if end else self.AXIOM


class Unsorted(Pieces):
    def nodes(self, end):
        yield end, [((end + 1,), (end, end))]


class Twice(Pieces):
    def nodes(self, end):
        yield from [(end, self.AXIOM), (end, self.AXIOM)]


class ThreeTails(Pieces):
    def nodes(self, end):
        yield end, [((0, 0, 0), None)] if end else self.AXIOM


class WrongPart(Pieces):
    def nodes(self, end):
        yield end, [((), (1, 2, 3))]


class CutsInAnyOrder(Pieces):
    """Join any two pieces: three pieces are joined in two orders."""

    def nodes(self, end):
        for start in reversed(range(end)):
            joined = [(((start, cut), (cut, end)), None) for cut in range(start + 1, end)]
            yield (start, end), [((), (start, end)), *joined]


class SamePart(Pieces):
    def nodes(self, end):
        yield end, [((end - 1,), (0, 0))] if end else self.AXIOM


class NeverBuilt(Pieces):
    def nodes(self, end):
        yield end, []


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (
            Unsorted,
            r"node 0 is built from 1, which no node before it is called; yield tails before",
        ),
        (Twice, r"yields node 0 again at size 0; yield every node once"),
        (ThreeTails, r"at most two nodes, got \(0, 0, 0\); build three from two"),
        (WrongPart, r"tuple of integers \('start', 'end'\), got \(1, 2, 3\) at node 0"),
        (
            CutsInAnyOrder,
            r"5 derivations at size 3 have only 4 sets of parts.*more than once",
        ),
        (SamePart, r"uses a part twice in one derivation at size 2"),
        (NeverBuilt, r"has no label: no derivation reaches its goal"),
    ],
    ids=lambda value: getattr(value, "__name__", "")[:20],
)
def test_wrong_recursions_are_refused_in_one_line(cls, message):
    for _ in range(2):  # lists that could not grow are not half there the next time
        with pytest.raises(ValueError, match=message) as raised:
            cls(4).width  # noqa: B018
        assert "\n" not in str(raised.value)


def test_scores_that_forbid_every_label():
    theta = np.zeros((2, 9))
    theta[1, DependencyTrees(3).parts[:, 1] == 2] = -np.inf  # no head for word 2
    trees = DependencyTrees(3)
    for action in (
        trees.decode,
        trees.marginals,
        trees.log_partition,
        trees.minimum_risk,
        lambda theta: trees.k_best(theta, 2),
        lambda theta: trees.sample(theta, np.random.default_rng(0)),
    ):
        with pytest.raises(ValueError, match=r"every label is forbidden .* for example 1; leave"):
            action(theta)


@pytest.mark.parametrize(
    ("structure", "label", "message"),
    [
        (DependencyTrees(3), [2, 1, 0], "heads must form one tree"),
        (DependencyTrees(3), [0, 0, 1], "heads must form one tree"),
        (DependencyTrees(4), [3, 4, 0, 3], "without crossing arcs"),
        (DependencyTrees(2), [4, 0], "heads must form"),
        (DependencyTrees(3, projective=False), [2, 1, 0], "heads must form one tree$"),
        (DependencyTrees(3, projective=False), [0, 0, 1], "heads must form one tree$"),
        (DependencyTrees(2, 2, projective=False), [[0, 0], [1, 2]], "heads must form one tree$"),
        (Segments(3), [1, 0, 0], "must start at the first token"),
        (Segments(3, max_length=2), [0, 1, 1], "none may be too long"),
        (Alignments(2, 2), [1, 0], "partners must increase"),
        (Alignments(2, 2), [0, 3], "partners must increase"),
        (Spans(2), [[0, 2, 0], [0, 1, 0], [0, 1, 0]], "one binary tree"),
        (Spans(2), [[0, 2, 0], [1, 2, 0], [0, 1, 0]], "left before right"),
    ],
)
def test_labels_without_a_derivation_are_named(structure, label, message):
    with pytest.raises(ValueError, match=rf"labels\[0\] = .* is no label of .*{message}"):
        structure.embed([label])


def test_the_gram_operator_has_a_limit():
    with pytest.raises(TooManyLabelsError, match="limit of 4096"):
        DependencyTrees(65).gram()


def test_a_gram_operator_beyond_listed_labels():
    space = DependencyTrees(8)  # 21,318 labels
    assert space.n_labels > 4096
    F = space.embed(space.predictions.unindex(range(space.n_labels)))
    np.testing.assert_allclose(space.gram().dense(), F.T @ F / len(F), atol=1e-13)
    assert space.rank == np.linalg.matrix_rank(F)


# --- strings and pictures ---


def test_strings_name_them():
    loss = ZeroOne(DependencyTrees(5).n_labels)
    assert parse_scores("trees:5", loss) == DependencyTrees(5)
    crossing = DependencyTrees(4, 2, projective=False)
    assert parse_scores("trees:4x2:nonprojective", ZeroOne(1024)) == crossing
    assert parse_scores("segments:4x2:3", ZeroOne(52)) == Segments(4, 2, 3)
    assert parse_scores("spans:3x2", ZeroOne(64)) == Spans(3, 2)
    assert parse_scores("alignments:3x2", ZeroOne(10)) == Alignments(3, 2)
    for spec, message in (
        ("trees:4", "30 labels, the loss 143; give both the same size"),
        ("trees:500", "at most 120"),
        ("trees:x", "DependencyTrees is written as trees:12 or, .*, not 'x'"),
        ("trees", "is written as trees:12"),
    ):
        with pytest.raises(LossSpecError, match=message):
            parse_scores(spec, loss)


@pytest.mark.parametrize(
    ("structure", "label", "shapes"),
    [
        (DependencyTrees(3), [2, 0, 2], {"<path": 3, "<text": 3}),
        (DependencyTrees(2, 2), [[2, 1], [0, 0]], {"<path": 2, "<text": 4}),
        (DependencyTrees(4, projective=False), [3, 4, 0, 3], {"<path": 4, "<text": 4}),
        (Segments(4, 2), [1, 2, 0, 0], {"<rect": 3, "<text": 7}),
        (Spans(3), [[0, 3, 0], [0, 1, 0], [1, 3, 0], [1, 2, 0], [2, 3, 0]], {"<line": 4}),
        (Alignments(3, 2), [2, 0, 1], {"<line": 2, "<text": 5}),
    ],
)
def test_a_drawing_has_a_shape_for_each_part(structure, label, shapes):
    picture = structure.draw(label)
    assert picture.startswith("<svg ")
    assert {shape: picture.count(shape) for shape in shapes} == shapes


def test_words_in_drawings_are_escaped():
    assert "&lt;b&gt;" in DependencyTrees(1).draw([0], ["<b>"])


# --- trees whose arcs may cross ---


def test_trees_may_cross_only_from_three_words_on():
    rng = np.random.default_rng(6)
    for n, cross in ((1, 0), (2, 0), (3, 2), (4, 34)):
        flat, crossing = DependencyTrees(n), DependencyTrees(n, projective=False)
        assert crossing.n_labels - flat.n_labels == cross
        # the same parts in the same order: scores of one are scores of the other
        np.testing.assert_array_equal(crossing.parts, flat.parts)
        assert set(map(tuple, flat.embed(flat.predictions.enumerate()))) <= set(
            map(tuple, crossing.embed(crossing.predictions.enumerate()))
        )
        theta = rng.standard_normal((5, flat.width))
        same = np.isclose(crossing.log_partition(theta), flat.log_partition(theta), rtol=1e-12)
        assert same.all() == (cross == 0)


def test_numbers_of_large_trees_are_exact():
    for structure in (
        DependencyTrees(40, 3, projective=False),
        DependencyTrees(40, single_root=False, projective=False),
    ):
        trees = structure.predictions
        assert trees.size == (40**39 * 3**40 if structure.single_root else 41**39)
        drawn = trees.sample(4, np.random.default_rng(7))
        index = trees.index(drawn)
        assert all(0 <= number < trees.size for number in index)
        np.testing.assert_array_equal(trees.unindex(index), drawn)
        first, last = trees.check(trees.unindex(np.array([0, trees.size - 1], dtype=object)))
        assert not np.array_equal(first, last)


def test_what_trees_that_cross_cannot_do_is_one_line():
    trees = DependencyTrees(3, projective=False)
    for action in (lambda: trees.k_best(np.zeros((1, 9)), 2), lambda: trees.program):
        with pytest.raises(CapabilityError, match=r"'projective', which DependencyTrees") as raised:
            action()
        assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match="n of trees that are not projective must be"):
        DependencyTrees(0, projective=False)
    with pytest.raises(ValueError, match="no label of size 0; leave out empty sentences"):
        trees.batch([2, 0])
    for method in (trees.marginals, trees.decode):
        with pytest.raises(ValueError, match="forbid"):
            method(np.full((1, 9), -np.inf))
    with pytest.raises(ValueError, match=r"example 1 has 7 scores.*row of .at\(size\).parts"):
        trees.at(None).decode_packed(Ragged.pack([np.zeros(4), np.zeros(7)]))
