"""Losses beyond the conformance checks: must-show sizes, bad input by message, families, trees."""

from __future__ import annotations

import math
import pickle
import time

import numpy as np
import pytest

from consistruct.exceptions import (
    CapabilityError,
    FamilyError,
    NotInSpanError,
    TooManyLabelsError,
)
from consistruct.losses import (
    Abstain,
    Block,
    CostMatrix,
    CostVectors,
    Hamming,
    Mixed,
    Ordinal,
    Tree,
    ZeroOne,
)
from consistruct.losses.base import dense_target
from consistruct.structures import Ragged


def test_hamming_1000_runs_every_product():
    loss = Hamming(1000)
    space = loss.score_space
    assert loss.n_labels == 2**1000
    assert (space.width, space.rank) == (2000, 1001)
    assert space.effective_classes() == 2000
    rng = np.random.default_rng(0)
    true = loss.true_labels.sample(20, rng)
    start = time.perf_counter()
    target, embedded = dense_target(loss.target(true)), space.embed(true)
    gram = space.gram()
    products = [target, embedded, gram.apply(target), gram.solve(target), loss.offset(true)]
    decoded = space.decode(-target)
    spectrum, counts = gram.eigenvalues()
    seconds = time.perf_counter() - start
    assert all(np.isfinite(product).all() for product in products)
    assert np.array_equal(decoded, true)  # the Bayes decision under a certain true label
    assert sum(counts) == 1001
    assert spectrum == pytest.approx([500, 0.5])  # T/s for the constant, 1/s for the contrasts
    assert (loss(decoded, true) == 0).all()
    assert seconds < 2  # milliseconds; the limit only catches an enumeration


BAD_MATRICES = [
    ([[0, -1], [1, 0]], ValueError, r"got a negative cost at row 0, column 1; add a constant"),
    ([[0, np.nan], [1, 0]], ValueError, r"got NaN at row 0, column 1; fill or drop"),
    ([[0, 1], [np.inf, 0]], ValueError, r"got an infinite cost at row 1, column 0; forbid"),
    ([], ValueError, r"must be two-dimensional \(predictions x true labels\), got shape \(0,\)"),
    ([[]], ValueError, r"at least one row and one column, got shape \(1, 0\)"),
    (np.zeros((0, 3)), ValueError, r"at least one row and one column, got shape \(0, 3\)"),
    ([[0, 1], [1]], ValueError, "must be a rectangular matrix; its rows have different lengths"),
    (
        [0, 1, 2],
        ValueError,
        r"must be two-dimensional \(predictions x true labels\), got shape \(3,\)",
    ),
    (np.zeros((2, 2, 2)), ValueError, r"must be two-dimensional .* got shape \(2, 2, 2\)"),
    (3.0, ValueError, r"must be two-dimensional .* got shape \(\)"),
    ([["a", "b"], ["c", "d"]], TypeError, r"must contain real numbers, got dtype <U1; convert"),
    ([["0", "1"], ["1", "0"]], TypeError, r"must contain real numbers, got dtype <U1"),
    (np.array([["0", "1"]], dtype=object), TypeError, "got an entry that is not a number"),
    ([[0, None], [1, 0]], ValueError, r"got NaN at row 0, column 1"),
    ([[0, {}], [1, 0]], TypeError, "must contain only numbers, got an entry that is not a number"),
    ([[0, 1j], [1, 0]], TypeError, "must contain real numbers, got dtype complex128"),
    (
        np.zeros((2, 2), "datetime64[s]"),
        TypeError,
        "must contain real numbers, got dtype datetime64",
    ),
]


@pytest.mark.parametrize(("matrix", "error", "message"), BAD_MATRICES)
def test_bad_cost_matrices(matrix, error, message):
    with pytest.raises(error, match=message):
        CostMatrix(matrix, rows="pred")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ZeroOne(3)([3], [0]), ValueError, r"pred must be in 0\.\.2, got 3 at row 0"),
        (lambda: ZeroOne(3)([0], [-1]), ValueError, r"true must be in 0\.\.2, got -1 at row 0"),
        (
            lambda: ZeroOne(3)([0.0], [0]),
            TypeError,
            "pred must contain integer labels, got dtype float",
        ),
        (lambda: ZeroOne(3)(["a"], [0]), TypeError, "map class names to 0..k-1 first"),
        (lambda: ZeroOne(3)([0, 1], [0]), ValueError, "the same length, got 2 and 1"),
        (lambda: ZeroOne(3).target([7]), ValueError, r"true must be in 0\.\.2, got 7"),
        (lambda: ZeroOne(3).offset([7]), ValueError, r"true must be in 0\.\.2, got 7"),
        (
            lambda: CostMatrix([[0, 1]], rows="pred").target([2]),
            ValueError,
            r"true must be in 0\.\.1, got 2",
        ),
        (
            lambda: Hamming(2)([[0, 2]], [[0, 1]]),
            ValueError,
            r"states in 0\.\.1, got 2 at position",
        ),
        (lambda: Hamming(2)([[0]], [[0]]), ValueError, r"pred must have shape \(n, 2\)"),
        (lambda: ZeroOne(0), ValueError, "k must be at least 1, got 0"),
        (
            lambda: ZeroOne("3"),
            TypeError,
            "k must be an integer of at least 1, got '3' of type str",
        ),
        (lambda: Mixed((2, 2), 1.5), ValueError, r"eta must be a finite number in \[0\.0, 1\.0\]"),
        (lambda: Mixed((2, 2), "x"), TypeError, "eta must be a number, got 'x' of type str"),
        (lambda: Abstain(3, -0.1), ValueError, "cost must be a finite number in"),
        (lambda: Abstain(3, math.inf), ValueError, "cost must be a finite number in .* got inf"),
        (lambda: Ordinal(3, 0.0), ValueError, r"power must be a finite number in \(0\.0"),
        (lambda: Ordinal(100, 500.0), ValueError, "99 to the power 500.0, is not a finite number"),
        (lambda: CostVectors(2)([0], [[1.0]]), ValueError, r"shape \(n, 2\), one cost per"),
        (lambda: CostVectors(2)([0], [[1.0, np.nan]]), ValueError, "got NaN at row 0, column 1"),
        (lambda: CostVectors(2, 0.0), ValueError, "max_cost must be a finite number in"),
        (
            lambda: CostMatrix([[0, 1]], ("a", "b"), rows="pred"),
            ValueError,
            "pred_names must have 1 entries",
        ),
        (
            lambda: CostMatrix([[0], [1]], ("a", "a"), rows="pred"),
            ValueError,
            "distinct, got 'a' twice",
        ),
        (lambda: ZeroOne(3)(Ragged.pack([[0]]), [0]), TypeError, "takes plain arrays of labels"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_losses_outside_the_limits_name_the_alternative():
    with pytest.raises(
        TooManyLabelsError, match=r"the matrix of an ordinal loss .* such as Block or Hamming"
    ):
        _ = Ordinal(5000).score_space
    with pytest.raises(TooManyLabelsError, match="the matrix of a loss with abstention"):
        Abstain(5000, 0.3).target([0])
    with pytest.raises(
        TooManyLabelsError, match=r"target of full scores .*loss.score_space"
    ) as raised:
        ZeroOne(2**300).target([0])
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    assert pickle.loads(pickle.dumps(raised.value)).size == 2**300


def test_errors_pickle():
    for error in (
        FamilyError(Hamming(None), "be x"),
        CapabilityError(ZeroOne(2), "a", "b", "c"),
        NotInSpanError("no"),
    ):
        twin = pickle.loads(pickle.dumps(error))
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert twin.__dict__ == error.__dict__


def test_hamming_family_on_packed_sequences():
    family = Hamming(None, 3)
    true = Ragged.pack([[0, 1, 2], [2], [1, 1]])
    pred = Ragged.pack([[0, 2, 2], [2], [0, 0]])
    expected = [family.at(len(t))([p], [t])[0] for p, t in zip(pred, true, strict=True)]
    assert family(pred, true) == pytest.approx(expected)
    assert expected == pytest.approx([1 / 3, 0, 1])
    empty = Ragged.pack([])
    assert family(empty, empty).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Hamming(None)([[0]], [[0]]), FamilyError, "pack sequences with Ragged"),
        (lambda: Hamming(None).target([[0]]), FamilyError, "targets of a plain array"),
        (
            lambda: Hamming(None).worst_true_label(np.zeros((1, 2))),
            FamilyError,
            "optimize over true labels",
        ),
        (lambda: Hamming(None)(Ragged.pack([[0]]), [[0]]), TypeError, "must both be packed"),
        (
            lambda: Hamming(None)(Ragged.pack([[0]]), Ragged.pack([[0, 1]])),
            ValueError,
            "sequences of the same lengths",
        ),
        (
            lambda: Hamming(None)(Ragged.pack([[0], []]), Ragged.pack([[0], []])),
            ValueError,
            "sequence 1 is empty",
        ),
        (
            lambda: Hamming(2)(Ragged.pack([[0]]), Ragged.pack([[0]])),
            ValueError,
            r"takes sequences of 2 parts, sequence 0 has 1; use the family, with None",
        ),
        (
            lambda: Hamming(None)(Ragged.pack([[5]]), Ragged.pack([[0]])),
            ValueError,
            r"pred must contain states in 0\.\.1, got 5",
        ),
    ],
)
def test_bad_families(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_rank_tolerance_is_reported():
    noise = np.random.default_rng(0).standard_normal((6, 6))
    blocks = Block((3, 3)).matrix()
    assert CostMatrix(blocks, rows="pred").score_space.rank == 2
    assert 0 < CostMatrix(blocks, rows="pred").rank_tolerance < 1e-13
    # noise above the tolerance is a different loss: MATH section 1
    assert CostMatrix(blocks + 1e-6 * abs(noise), rows="pred").score_space.rank == 6


def test_own_span_contains_the_constant_even_if_the_loss_does_not():
    L = np.outer([0.0, 1.0, 2.0], [1.0, 2.0])
    assert np.linalg.matrix_rank(L) == 1
    assert CostMatrix(L, rows="pred").score_space.rank == 2


def test_true_label_as_prediction():
    assert ZeroOne(3).true_label_as_prediction([2]).tolist() == [2]
    assert Abstain(3, 0.3).true_label_as_prediction([2]).tolist() == [2]
    named = CostMatrix([[0, 1], [1, 0], [1, 1]], ("b", "a", "none"), ("a", "b"), rows="pred")
    assert named.true_label_as_prediction([0, 1]).tolist() == [1, 0]
    with pytest.raises(CapabilityError, match="true label 'z' is not a prediction"):
        CostMatrix([[0, 1]], ("a",), ("a", "z"), rows="pred").true_label_as_prediction([0])
    for loss in (CostMatrix([[0, 1]], rows="pred"), CostVectors(2)):
        with pytest.raises(
            CapabilityError, match="needs the capability 'true_label_as_prediction'"
        ):
            loss.true_label_as_prediction([0])


FOREST = (-1, -1, 0, 0, 1, 2, 2)  # roots 0 and 1; leaves 3, 4, 5, 6


def test_tree_distances_by_hand():
    path = Tree(FOREST)
    assert path.leaves.tolist() == [3, 4, 5, 6]
    # 3—0—2—5: three edges; 3—0—(root)—1—4: four edges; 5—2—6: two
    assert path([0, 0, 2], [2, 1, 3]).tolist() == [3, 4, 2]
    level = Tree(FOREST, (4.0, 2.0, 1.0), kind="level")
    # depths 0, 1, 2: leaves 5 and 6 differ at depth 2 only; 3 and 5 at 1 and 2; 3 and 4 at all
    assert level([2, 0, 0], [3, 2, 1]).tolist() == [1, 3, 7]
    nodes = Tree(FOREST, predict="nodes")
    assert nodes([2, 0, 5], [2, 2, 2]).tolist() == [1, 2, 0]  # stopping early at node 2, 0
    assert nodes.true_label_as_prediction([0, 3]).tolist() == [3, 6]


def test_single_root_weight_never_counts():
    assert Tree((-1, 0, 0), (9, 1, 2))([0], [1]).tolist() == [3]
    assert Tree((-1, -1), (9, 1))([0], [1]).tolist() == [10]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Tree((1, 0)), ValueError, "some nodes form a cycle"),
        (lambda: Tree((0,)), ValueError, r"parents\[0\] must be another node in 0\.\.0"),
        (lambda: Tree((-1, 5)), ValueError, r"parents\[1\] must be another node in 0\.\.1.*got 5"),
        (lambda: Tree((-2,)), ValueError, r"parents\[0\] must be at least -1"),
        (lambda: Tree(()), ValueError, "parents must not be empty"),
        (lambda: Tree((-1, 0), (1,)), ValueError, r"one entry per node, shape \(2,\), got shape"),
        (lambda: Tree((-1, 0), (1, -1)), ValueError, "weights must be finite and non-negative"),
        (lambda: Tree((-1, 0), ("a", "b")), TypeError, "weights must contain real numbers"),
        (
            lambda: Tree((-1, 0), (1, 1), kind="level"),
            ValueError,
            "per depth below the common root",
        ),
        (lambda: Tree((-1,), kind="x"), ValueError, "kind must be 'path' or 'level', got 'x'"),
        (lambda: Tree((-1,), predict="x"), ValueError, "predict must be 'leaves' or 'nodes'"),
        (lambda: Tree((-1, 0), names=("a", "a")), ValueError, "names must be 2 distinct names"),
    ],
)
def test_bad_trees(make, error, message):
    with pytest.raises(error, match=message):
        make()
