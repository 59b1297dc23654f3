"""Score spaces beyond the conformance checks: errors, families, maps, sizes."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct.exceptions import FamilyError, NotInSpanError, TooManyLabelsError
from consistruct.losses import Block, CostVectors, Hamming, Ordinal, ZeroOne
from consistruct.structures import (
    Blocks,
    Centered,
    Chain,
    Classes,
    Dense,
    Full,
    Orthonormalized,
    Permutations,
    Product,
    Separable,
)


@pytest.mark.parametrize("T", [1, 2, 5])
@pytest.mark.parametrize("s", [2, 3, 4])
def test_chain_rank_formula(T, s):
    if s**T > 4096:
        pytest.fail("choose sizes that can be listed")
    assert Chain(T, s).rank == np.linalg.matrix_rank(Chain(T, s).matrix())


def test_chain_200_10_products_stay_in_the_width():
    space = Chain(200, 10)
    assert (space.width, space.rank) == (21_900, 17_920)
    gram = space.gram()
    theta = np.random.default_rng(0).standard_normal((2, space.width))
    assert np.allclose(gram.apply(gram.solve(gram.apply(theta))), gram.apply(theta))
    values, counts = gram.eigenvalues()
    # trace of the Gram: every embedding has T + (T−1) ones
    assert values @ np.array(counts) == pytest.approx(399)
    with pytest.raises(TooManyLabelsError, match="a dense Gram matrix needs 21900 labels"):
        gram.dense()


def test_full_takes_a_loss_a_label_set_or_a_number():
    assert Full(4) == Full(Classes(4)) == Full(ZeroOne(4)) == Full(CostVectors(4))
    assert Full(Hamming(3)) == Full(Product(3))
    assert Full(Block((2, 3))).width == 5
    with pytest.raises(TypeError, match="labels must be an integer of at least 1, got 'abc'"):
        Full("abc")
    with pytest.raises(FamilyError, match="cannot have full scores"):
        Full(Hamming(None))
    with pytest.raises(TooManyLabelsError, match="the matrix of an ordinal loss needs"):
        Full(Ordinal(2**300))


def test_full_scores_above_the_limit_serve_analysis_only():
    space = Full(2**17)
    assert space.rank == space.effective_classes() == 2**17
    for action in (
        lambda: space.embed([0]),
        space.gram,
        lambda: space.decode([[0.0]]),
        space.mean_embedding,
    ):
        with pytest.raises(
            TooManyLabelsError, match=r"of full scores needs 131072 .*loss.score_space"
        ):
            action()
    into = space.coordinates(Blocks((2**16, 2**16)))
    with pytest.raises(TooManyLabelsError, match="coordinates of full scores"):
        into(np.zeros((1, 2)))


def test_loss_span():
    assert Hamming(3, 4).score_space == Separable(3, 4)
    assert Block((1, 2)).score_space == Blocks((1, 2))


@pytest.mark.parametrize("family", [Separable(None, 3), Chain(None, 3)], ids=repr)
def test_families(family):
    assert family.at(5) == type(family)(5, 3)
    assert family.predictions == Product(None, 3)
    for action in (
        lambda: family.width,
        lambda: family.rank,
        lambda: family.embed([[0]]),
        family.gram,
        family.predictable,
        family.effective_classes,
        lambda: family.decode(np.zeros((1, 3))),
    ):
        with pytest.raises(FamilyError, match=r"choose a member with \.at\(size\)"):
            action()


def test_maps_refuse_other_predictions_and_measures():
    with pytest.raises(ValueError, match="score spaces must share their predictions"):
        Full(3).coordinates(Full(4))
    with pytest.raises(ValueError, match="a cross-Gram needs one reference measure"):
        Full(Classes(3, reference=(1, 2, 3))).cross_gram(Full(3))
    with pytest.raises(ValueError, match="a cross-Gram needs one reference measure"):
        Full(Classes(2, reference=(1, 2))).cross_gram(Full(Classes(2, reference=(2, 1))))


def test_not_in_span_is_stated_with_the_reason():
    with pytest.raises(NotInSpanError, match=r"splits a block .* use the finer blocks"):
        Blocks((2, 2)).coordinates(Blocks((1, 3)))
    with pytest.raises(NotInSpanError, match=r"are not in the span of .* use a larger score space"):
        Separable(2).coordinates(Chain(2, 2))
    with pytest.raises(NotInSpanError, match=r"no structural map .* too many labels"):
        Separable(100).coordinates(Chain(100, 2))
    with pytest.raises(NotInSpanError, match="does not contain the constant score"):
        Centered(Separable(3)).constant_coordinates()


@pytest.mark.parametrize(
    "base", [Separable(300), Chain(250, 2), Blocks((2**200, 2**201))], ids=repr
)
def test_wrappers_map_structurally_at_any_size(base):
    rng = np.random.default_rng(0)
    labels = base.predictions.sample(5, rng)
    for wrapped in (Orthonormalized(base), Centered(base), Orthonormalized(Centered(base))):
        theta = rng.standard_normal((2, wrapped.width))
        moved = base.coordinates(wrapped)(theta)
        assert np.allclose(moved @ base.embed(labels).T, theta @ wrapped.embed(labels).T)
    theta = rng.standard_normal((2, base.width))
    z = Orthonormalized(base).coordinates(base)(theta)
    scores = z @ Orthonormalized(base).embed(labels).T
    assert np.allclose(scores, theta @ base.embed(labels).T)
    cross = base.cross_gram(Orthonormalized(base))(z)
    assert np.allclose(cross, base.gram().apply(theta))


def test_orthonormal_coordinates_cannot_forbid():
    with pytest.raises(ValueError, match="forbid them in the base space"):
        Orthonormalized(Full(3)).decode([[0.0, -np.inf, 0.0]])


def test_tiny_blocks_keep_their_eigenvalues_apart():
    space = Blocks((2**250, 3, 2**201))
    values, counts = space.gram().eigenvalues()
    assert counts == (1, 1, 1)
    assert values == pytest.approx([1.0, 2.0**-49, 3 * 2.0**-250], rel=1e-12)
    centered, counts = Centered(space).gram().eigenvalues()
    assert counts == (1, 1)
    # w₂ < λ₁ < w₁ and w₃ < λ₂ < w₂; to first order in the small weights 2·w₂ and 3w₃/2
    assert centered == pytest.approx([2 * 2.0**-49, 1.5 * 3 * 2.0**-250], rel=1e-9)
    with pytest.raises(ValueError, match="block 1 is too small a share of all labels for float64"):
        Blocks((2**2000, 1)).gram()


def test_dense_keeps_label_names_with_a_measure():
    named = Dense(np.eye(2), reference=(1, 3), over=Classes(2, ("a", "b")))
    assert named.predictions == Classes(2, ("a", "b"), (1, 3))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Dense([1, 2]), ValueError, r"F must be a matrix \(labels x width\), got shape"),
        (lambda: Dense([["a"]]), TypeError, "F must contain real numbers, got dtype <U1"),
        (lambda: Dense([[np.inf]]), ValueError, "F must be finite, got NaN or infinity"),
        (lambda: Dense([[1], [1, 2]]), ValueError, "got rows of different lengths"),
        (lambda: Dense(np.zeros((0, 2))), ValueError, "F must be a matrix"),
        (lambda: Dense(np.eye(2), over=Classes(3)), ValueError, "one row per label of Classes"),
        (
            lambda: Dense(np.eye(6), reference=np.ones(6), over=Permutations(3)),
            ValueError,
            "a reference measure can be given only for plain classes",
        ),
        (
            lambda: Dense(np.eye(2), reference=(1, 2), over=Classes(2, reference=(1, 2))),
            ValueError,
            "set the reference measure once",
        ),
        (lambda: Blocks((2, 2), reference=(1, 2)), ValueError, "one weight per prediction"),
        (lambda: Separable(0), ValueError, "T must be at least 1, got 0"),
        (lambda: Chain(3, 1), ValueError, "n_states must be at least 2, got 1"),
        (lambda: Separable(3).embed([[0, 1]]), ValueError, r"labels must have shape \(n, 3\)"),
        (lambda: Separable(3).gram().apply(np.ones((1, 5))), ValueError, r"shape \(n, 6\)"),
        (lambda: Full(3).gram().apply(np.ones((2, 1))), ValueError, r"shape \(n, 3\)"),
        (
            lambda: Full(3).gram().solve([["a", "b", "c"]]),
            TypeError,
            "theta must contain real numbers",
        ),
        (
            lambda: Separable(3).decode(np.ones((1, 5))),
            ValueError,
            r"theta must have shape \(n, 6\)",
        ),
        (lambda: Chain(2, 2).decode(np.ones(8)), ValueError, r"one row per example, got \(8,\)"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
