from __future__ import annotations

import numpy as np
import pytest

from consistruct.structures import Ragged


def test_pack_and_read_back():
    rows = [[1, 2], [], [3], [4, 5, 6]]
    packed = Ragged.pack(rows)
    assert [row.tolist() for row in packed] == rows
    assert packed.values.dtype == np.int64
    assert packed.rows.tolist() == [0, 0, 2, 3, 3, 3]
    assert packed[-1].tolist() == [4, 5, 6]
    assert packed == Ragged(np.arange(1, 7), np.array([0, 2, 2, 3, 6]))
    assert packed != packed.with_values(np.zeros(6))
    assert packed != rows
    assert packed.same_lengths(packed.with_values(np.zeros(6)))


def test_empty_batch():
    packed = Ragged.pack([])
    assert len(packed) == 0
    assert list(packed) == []


def test_rows_of_vectors():
    packed = Ragged.pack([np.ones((2, 3)), np.zeros((1, 3))])
    assert packed.values.shape == (3, 3)
    assert packed[1].shape == (1, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ragged(np.arange(3), [0.0, 3.0]), "offsets must be a one-dimensional integer"),
        (lambda: Ragged(np.arange(3), np.zeros(0, int)), "one more entry than"),
        (lambda: Ragged(np.array(3), [0]), "values must have at least one dimension"),
        (lambda: Ragged(np.arange(3), [0, 2]), "end at the number of parts 3, got 0 … 2"),
        (lambda: Ragged(np.arange(3), [1, 3]), "offsets must start at 0"),
        (lambda: Ragged(np.arange(3), [0, 3, 2, 3]), "never decrease"),
        (lambda: Ragged.pack([1, 2]), "pack takes a list of arrays, one per sequence"),
        (lambda: Ragged.pack([np.ones((1, 2)), np.ones((1, 3))]), "parts have equal shapes"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_row_out_of_range():
    with pytest.raises(IndexError, match="sequence 2 of a batch of 1"):
        Ragged.pack([[0]])[2]


def test_not_hashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Ragged.pack([[0]]))
