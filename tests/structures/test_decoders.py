"""Decoding beyond the conformance checks."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct.exceptions import CapabilityError, FamilyError
from consistruct.structures import (
    Blocks,
    Dense,
    Full,
    Matchings,
    Positions,
    Product,
    Ragged,
    Separable,
)


def test_parts_of_packed_labels():
    scores = Ragged.pack([np.array([[0.0, 1.0], [2.0, 2.0]]), np.array([[3.0, 1.0]])])
    family = Separable(None, 2)
    assert [row.tolist() for row in family.decode_packed(scores)] == [[1, 0], [0]]
    with pytest.raises(FamilyError, match="decode_packed takes Ragged scores"):
        family.decode(np.zeros((1, 4)))
    with pytest.raises(ValueError, match=r"theta must have shape \(n, 2\)"):
        family.decode_packed(Ragged.pack([np.zeros((1, 3))]))
    with pytest.raises(CapabilityError, match=r"decode_packed.*Full.*each length by itself"):
        Full(2).decode_packed(scores)


def test_sorting_puts_forbidden_items_last():
    assert Positions([3, 2, 1]).decode([[-np.inf, 0.0, 1.0]]).tolist() == [[2, 1, 0]]


def test_blocks_of_huge_labels():
    space = Blocks((2**100, 2**100, 2**100))
    assert space.decode([[0.0, 1.0, 1.0], [0.0, -1.0, 2.0]]).tolist() == [2**100, 2**101]


def test_dense_ties_between_merged_labels_go_to_the_first():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((3, 4))[[1, 0, 1, 2, 0]]  # equal rows, inexact sums
    found = Dense(F).decode(rng.standard_normal((200, 4)))
    assert set(found.tolist()) == {0, 1, 3}


def test_dense_forbids_only_where_embeddings_are_non_negative():
    space = Dense([[1, 0], [0, 1], [-1, 0]])
    with pytest.raises(ValueError, match="−inf where an embedding is negative"):
        space.decode([[-np.inf, 0.0]])
    assert space.decode([[1.0, -np.inf]]).tolist() == [0]


def test_dense_chunks_agree():
    rng = np.random.default_rng(1)
    F, theta = rng.standard_normal((50, 6)), rng.standard_normal((30, 6))
    decode = Dense(F).decode
    assert np.array_equal(decode(theta), np.concatenate([decode(row[None]) for row in theta]))


def test_forbidden_matchings():
    assert Matchings(2).decode([[-np.inf, 1.0, 2.0, 5.0]]).tolist() == [[1, 0]]
    with pytest.raises(ValueError, match=r"every matching is forbidden .* for example 0"):
        Matchings(2).decode(np.full((1, 4), -np.inf))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Full(Product(None)), FamilyError, "have full scores"),
        (lambda: Dense([[np.nan]]), ValueError, "F must be finite"),
        (lambda: Dense([[1], [1, 2]]), ValueError, "rows of different lengths"),
        (lambda: Separable(0, 2), ValueError, "T must be at least 1, got 0"),
        (lambda: Separable(2, 1.5), TypeError, "n_states must be an integer"),
        (lambda: Positions([1.0, 2.0]), ValueError, "must not increase with the position"),
        (lambda: Positions([]), ValueError, "one finite weight per position"),
        (lambda: Positions([[1.0]]), ValueError, r"weight per position, got shape \(1, 1\)"),
        (lambda: Matchings(0), ValueError, "n must be at least 1"),
        (lambda: Full(2).decode([[0, 1], [0]]), ValueError, "rows of different lengths"),
        (lambda: Full(2).decode([[0, 1, 2]]), ValueError, r"theta must have shape \(n, 2\)"),
        (lambda: Full(2).decode([[0, None]]), TypeError, "real numbers, got dtype object"),
        (lambda: Full(2).decode([[0, np.nan]]), ValueError, r"got nan at position \(0, 1\)"),
        (lambda: Full(2).decode([[0, np.inf]]), ValueError, r"got inf at position \(0, 1\)"),
        (lambda: Full(2).decode([[1 + 1j, 0]]), TypeError, "got dtype complex128"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
