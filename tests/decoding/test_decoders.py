"""Decoders beyond the conformance checks."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct.decoding import Assignment, BlockArgmax, DenseArgmax, LabelArgmax, PerPart, Sort
from consistruct.exceptions import FamilyError
from consistruct.labels import Classes, Product, Ragged


def test_per_part_packed():
    scores = Ragged.pack([np.array([[0.0, 1.0], [2.0, 2.0]]), np.array([[3.0, 1.0]])])
    assert [row.tolist() for row in PerPart(None, 2).decode_packed(scores)] == [[1, 0], [0]]
    with pytest.raises(FamilyError, match="decode_packed takes Ragged scores"):
        PerPart(None, 2)(np.zeros((1, 4)))
    with pytest.raises(ValueError, match=r"theta must have shape \(n, 2\)"):
        PerPart(None, 2).decode_packed(Ragged.pack([np.zeros((1, 3))]))


def test_sort_puts_forbidden_items_last():
    assert Sort([3, 2, 1])([[-np.inf, 0.0, 1.0]]).tolist() == [[2, 1, 0]]


def test_blocks_of_huge_labels():
    decoder = BlockArgmax((0, 2**100, 2**101))
    assert decoder([[0.0, 1.0, 1.0], [0.0, -1.0, 2.0]]).tolist() == [2**100, 2**101]


def test_dense_ties_between_merged_labels_go_to_the_first():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((3, 4))[[1, 0, 1, 2, 0]]  # equal rows, inexact sums
    found = DenseArgmax(F, Classes(5))(rng.standard_normal((200, 4)))
    assert set(found.tolist()) == {0, 1, 3}


def test_dense_forbids_only_where_embeddings_are_non_negative():
    decoder = DenseArgmax([[1, 0], [0, 1], [-1, 0]], Classes(3))
    with pytest.raises(ValueError, match="−inf where an embedding is negative"):
        decoder([[-np.inf, 0.0]])
    assert decoder([[1.0, -np.inf]]).tolist() == [0]


def test_dense_chunks_agree():
    rng = np.random.default_rng(1)
    F, theta = rng.standard_normal((50, 6)), rng.standard_normal((30, 6))
    decoder = DenseArgmax(F, Classes(50))
    assert np.array_equal(decoder(theta), np.concatenate([decoder(row[None]) for row in theta]))


def test_assignment_forbidden():
    theta = np.array([[-np.inf, 1.0, 2.0, 5.0]])
    assert Assignment(2)(theta).tolist() == [[1, 0]]
    with pytest.raises(ValueError, match=r"every matching is forbidden .* for example 0"):
        Assignment(2)(np.full((1, 4), -np.inf))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LabelArgmax(Product(None)), FamilyError, "be decoded by one score per label"),
        (lambda: BlockArgmax((0, 0)), ValueError, "first_labels must differ"),
        (lambda: BlockArgmax(()), ValueError, "first_labels must not be empty"),
        (lambda: BlockArgmax((-1,)), ValueError, r"first_labels\[0\] must be at least 0"),
        (lambda: DenseArgmax(np.eye(2), Classes(3)), ValueError, "one row per label of Classes"),
        (lambda: DenseArgmax([[np.nan]], Classes(1)), ValueError, "F must be finite"),
        (lambda: DenseArgmax([[1], [1, 2]], Classes(2)), ValueError, "rows of different lengths"),
        (lambda: PerPart(0, 2), ValueError, "n_parts must be at least 1, got 0"),
        (lambda: PerPart(2, 1.5), TypeError, "n_states must be an integer"),
        (lambda: Sort([1.0, 2.0]), ValueError, "discount must not increase with the position"),
        (lambda: Sort([]), ValueError, "one finite weight per position"),
        (lambda: Sort([[1.0]]), ValueError, r"one finite weight per position, got shape \(1, 1\)"),
        (lambda: Assignment(0), ValueError, "n_items must be at least 1"),
        (lambda: LabelArgmax(Classes(2))([[0, 1], [0]]), ValueError, "rows of different lengths"),
        (
            lambda: LabelArgmax(Classes(2))([[0, 1, 2]]),
            ValueError,
            r"theta must have shape \(n, 2\)",
        ),
        (lambda: LabelArgmax(Classes(2))([[0, None]]), TypeError, "real numbers, got dtype object"),
        (
            lambda: LabelArgmax(Classes(2))([[0, np.nan]]),
            ValueError,
            r"got nan at position \(0, 1\)",
        ),
        (
            lambda: LabelArgmax(Classes(2))([[0, np.inf]]),
            ValueError,
            r"got inf at position \(0, 1\)",
        ),
        (lambda: LabelArgmax(Classes(2))([[1 + 1j, 0]]), TypeError, "got dtype complex128"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
