"""Label sets beyond the conformance checks: big integers, names, errors by message."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest

from consistruct.exceptions import FamilyError, TooManyLabelsError
from consistruct.structures import Classes, Permutations, Product
from consistruct.structures.classes import Partition
from consistruct.structures.decisions import CostVectorSet


def test_product_order_is_lexicographic():
    expected = list(product(range(3), repeat=3))
    assert [tuple(label) for label in Product(3, 3).enumerate()] == expected


def test_permutation_order_is_lexicographic():
    expected = list(permutations(range(4)))
    assert [tuple(label) for label in Permutations(4).enumerate()] == expected


@pytest.mark.parametrize(
    ("labels", "size"),
    [
        (Classes(2**200), 2**200),
        (Product(1000), 2**1000),
        (Product(90, 26), 26**90),
        (Permutations(60), math.factorial(60)),
    ],
    ids=repr,
)
def test_sizes_and_indices_are_exact_beyond_int64(labels, size):
    assert labels.size == size
    assert type(labels.size) is int
    indices = [0, 1, 2**63, 2**64 + 1, size - 1]
    found = labels.index(labels.unindex(indices))
    assert [int(index) for index in found] == indices
    drawn = labels.sample(3, np.random.default_rng(0))
    assert np.array_equal(labels.unindex(labels.index(drawn)), drawn)
    with pytest.raises(ValueError, match=r"indices must be in 0\.\."):
        labels.unindex([size])
    with pytest.raises(TooManyLabelsError, match=r"more than the limit of 4096; use embed"):
        labels.enumerate()


def test_indices_at_the_int64_edge():
    labels = Product(63)
    assert labels.index(np.ones((1, 63), dtype=int))[0] == 2**63 - 1
    assert labels.index(np.ones((1, 63), dtype=int)).dtype == np.int64
    assert Product(64).index(np.ones((1, 64), dtype=int))[0] == 2**64 - 1


def test_big_integers_in_a_list_stay_exact():
    # NumPy reads [0, 2**63] as floats
    assert Classes(2**70).check([0, 2**63, 2**63 + 1]).tolist() == [0, 2**63, 2**63 + 1]
    with pytest.raises(TypeError, match="must contain integer labels, got dtype float64"):
        Classes(2**70).check([0, 1.5])
    with pytest.raises(TypeError, match="must contain integers, got other Python objects"):
        Classes(3).check(np.array([0, None], dtype=object))


def test_huge_samples_are_spread_evenly():
    size = 3 * 2**100
    drawn = Classes(size).sample(3000, np.random.default_rng(0))
    thirds = np.bincount([int(value // 2**100) for value in drawn], minlength=3)
    # binomial(3000, 1/3) has standard deviation 26
    assert abs(thirds - 1000).max() < 130


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Classes(0), ValueError, "n_classes must be at least 1, got 0"),
        (lambda: Classes(2.0), TypeError, "n_classes must be an integer of at least 1, got 2.0"),
        (lambda: Classes(True), TypeError, "must be an integer of at least 1, got True"),
        (lambda: Classes(2, ("a",)), ValueError, "names must have 2 entries, one per class, got 1"),
        (lambda: Classes(2, "ab"), TypeError, "names must be a sequence of names, got the string"),
        (lambda: Classes(2, reference=[1, 0]), ValueError, "consistency needs full support"),
        (lambda: Classes(2, reference=[1, np.nan]), ValueError, "finite and positive"),
        (lambda: Classes(2, reference=[1]), ValueError, r"one weight per prediction, shape \(2,\)"),
        (lambda: Classes(2, reference=["a", "b"]), TypeError, "measure must contain numbers"),
        (lambda: Product(2, 1), ValueError, "n_states must be at least 2, got 1"),
        (lambda: Product(-1), ValueError, "n_parts must be at least 1"),
        (lambda: Classes(3).check([3]), ValueError, r"labels must be in 0\.\.2, got 3 at row 0"),
        (lambda: Classes(3).check([-1]), ValueError, r"labels must be in 0\.\.2, got -1 at row 0"),
        (lambda: Classes(3).check(["a"]), TypeError, "map class names to 0..k-1 first"),
        (lambda: Classes(3).check([[0]]), ValueError, r"must have shape \(n,\)"),
        (lambda: Classes(3).check(1), ValueError, r"must have shape \(n,\), one row per example"),
        (lambda: Product(2).check([[0, 2]]), ValueError, r"states in 0\.\.1, got 2 at position"),
        (lambda: Product(2).check([[0, 1, 1]]), ValueError, r"shape \(n, 2\), one row per"),
        (lambda: Product(2).check([[0], [0, 1]]), ValueError, "use Ragged"),
        (lambda: Permutations(3).check([[0, 0, 1]]), ValueError, "permutations of 0..2, got"),
        (lambda: CostVectorSet(2).check([[1, -1]]), ValueError, "got a negative cost at row 0"),
        (lambda: CostVectorSet(2).check([[1, 1, 1]]), ValueError, r"shape \(n, 2\), one cost per"),
        (lambda: Partition(), ValueError, "pass either the block sizes or the assignment"),
        (lambda: Partition((1,), (0,)), ValueError, "pass either the block sizes or the"),
        (lambda: Partition(()), ValueError, "sizes must not be empty"),
        (lambda: Partition((2, 0)), ValueError, r"sizes\[1\] must be at least 1, got 0"),
        (lambda: Partition(3), TypeError, "sizes must be a sequence of integers, got 3"),
        (lambda: Partition(assignment=(0, 2)), ValueError, "block 1 has no label"),
    ],
)
def test_bad_input_gets_one_clear_line(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_family():
    family = Product(None, 3)
    assert family.size is None
    assert family.at(4) == Product(4, 3)
    assert family.check_parts([0, 2, 1]).tolist() == [0, 2, 1]
    for action in (
        lambda: family.shape,
        lambda: family.check([[0]]),
        lambda: family.index([[0]]),
        family.enumerate,
        family.weights,
        lambda: family.sample(2, np.random.default_rng(0)),
    ):
        with pytest.raises(FamilyError, match=r"choose a member with \.at\(size\)"):
            action()


def test_measure_survives_a_rebuild_bit_for_bit():
    once = Classes(3, reference=[1, 4, 1])
    again = Classes(3, reference=once.reference)
    assert np.array_equal(once.reference, again.reference)
    assert once.weights().sum() == pytest.approx(1)


def test_partition_of_huge_consecutive_blocks():
    partition = Partition((2**100, 1, 2**99))
    labels = np.array([0, 2**100 - 1, 2**100, 2**100 + 1, partition.n_labels - 1], dtype=object)
    assert partition.block_of(labels).tolist() == [0, 0, 1, 2, 2]
    coarse = Partition((2**100 + 1, 2**99))
    holder = partition.coarser_blocks(coarse)
    assert holder is not None
    assert holder.tolist() == [0, 0, 1]
    assert coarse.coarser_blocks(partition) is None
    assert partition.coarser_blocks(Partition((3,))) is None
