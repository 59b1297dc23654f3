"""Structures and label sets for the conformance checks, awkward ones included."""

from __future__ import annotations

import numpy as np

from consistruct.protocols import FloatArray, LabelSet
from consistruct.structures import (
    Blocks,
    Centered,
    Chain,
    Classes,
    Dense,
    DependencyTrees,
    DerivedLabels,
    Full,
    Graph,
    Matchings,
    Orthonormalized,
    PairDiscount,
    PairOrder,
    Permutations,
    Positions,
    Product,
    Separable,
    SetSizes,
    Structure,
    Subsets,
)
from consistruct.structures.decisions import CostVectorSet
from consistruct.structures.registry import STRUCTURES

LABEL_SETS: tuple[LabelSet, ...] = (
    Classes(1),
    Classes(7),
    Classes(3, ("a", "b", "c")),
    Classes(3, reference=(1, 2, 5)),
    Product(1),
    Product(4),
    Product(2, 5),
    Permutations(1),
    Permutations(4),
    Subsets(1),
    Subsets(4),
    Subsets(4, (0, 3)),
    Subsets(3, (1, 2, 3)),
    Subsets(5, (3,)),
    DerivedLabels(DependencyTrees(3)),
    DerivedLabels(DependencyTrees(3, 2, projective=False)),
    CostVectorSet(1),
    CostVectorSet(3),
)

_INTEGER_F = np.random.default_rng(7).integers(-2, 3, size=(9, 4))
_SQUARES = np.column_stack([np.ones(6), np.arange(6), np.arange(6) ** 2])

# what the registry does not list: random rows, and other awkward ones
BASE_SPACES: tuple[Structure, ...] = (
    *(example for entry in STRUCTURES.values() for example in entry.examples),
    Dense(_INTEGER_F),
    Dense(_INTEGER_F[[0, 1, 1, 0, 2]]),  # merged labels
    Dense(_SQUARES),
    Dense(_SQUARES[:, 1:]),  # without the constant
    Dense(np.random.default_rng(3).random((6, 3)), over=Permutations(3)),
    Dense(np.ones((4, 2))),
    Dense(_INTEGER_F, reference=np.arange(1, 10)),
    Dense(np.eye(2)[[0, 0, 1, 1, 1]]),
    Dense(abs(_INTEGER_F)),
    Full(Product(2)),
    Blocks(assignment=(1, 2, 0, 1)),
    Separable(3, 3),
    Chain(1, 4),
    Chain(5, 2),
    Matchings(3),
    PairOrder(5),
    PairDiscount(5),
    SetSizes(5, 2.0, sizes=(0, 1, 4)),
    SetSizes(4, 0.5, sizes=(2,)),
    SetSizes(4, 1.0, sizes=(0, 1, 4)),
    Positions([2, 2, 1, 0]),
    Positions([1, 0, 0, 0]),
)

SPACES: tuple[Structure, ...] = (
    *BASE_SPACES,
    *(Orthonormalized(space) for space in BASE_SPACES),
    *(Centered(space) for space in BASE_SPACES),
    *(Orthonormalized(Centered(space)) for space in BASE_SPACES[::3]),
    *(Centered(Orthonormalized(space)) for space in BASE_SPACES[1::3]),
    Centered(Centered(Separable(3))),
)

# spaces over the same labels, to map between: (space, others)
RELATED: tuple[tuple[Structure, tuple[Structure, ...]], ...] = (
    (Chain(3, 2), (Separable(3), Orthonormalized(Separable(3)), Full(Classes(8)))),
    (Graph([[0, 2], [1, 2]], 2), (Separable(3), Chain(3, 2))),
    (Separable(3), (Chain(3, 2), Blocks((4, 4)), Blocks((3, 5)))),
    (Blocks((1, 2, 3)), (Blocks((3, 3)), Blocks((2, 4)), Blocks(assignment=(0, 1, 1, 0, 0, 0)))),
    (Blocks(assignment=(1, 0, 1, 2)), (Blocks(assignment=(0, 1, 0, 1)), Blocks((2, 2)))),
    (Full(6), (Blocks((3, 3)), Dense(_SQUARES))),
    (PairOrder(3), (Positions([3, 2, 1]), Positions([1, 0, 0]), Matchings(3))),
    (Matchings(3), (Positions([5, 2, 1]), PairOrder(3))),
    (PairDiscount(3), (Positions([6, 3, 2]), Positions([3, 2, 1]))),
    (SetSizes(3), (SetSizes(3, sizes=(1, 2)), SetSizes(3, 2.0, sizes=(3,)))),
    (Dense(_SQUARES), (Dense(_SQUARES[:, 1:]), Blocks((6,)), Full(6))),
)


# --- F written out from its definition, to compare embeddings with ---


def permutation_rows(n_items: int, discount: FloatArray) -> FloatArray:
    """F of sorting: the entry of item i is the discount of its position."""
    orders = Permutations(n_items).enumerate()
    rows = np.zeros(orders.shape)
    for row, order in zip(rows, orders, strict=True):
        for position, item in enumerate(order):
            row[item] = discount[position]
    return rows


def matching_rows(n_items: int) -> FloatArray:
    """F of matchings: flattened permutation matrices."""
    return np.array([np.eye(n_items)[order].ravel() for order in Permutations(n_items).enumerate()])


def pair_rows(n_items: int) -> FloatArray:
    """F of the linear ordering problem: the constant, then [i before j] − ½."""
    rows = []
    for order in Permutations(n_items).enumerate().tolist():
        pairs = [(i, j) for i in range(n_items) for j in range(i + 1, n_items)]
        rows.append([1.0] + [0.5 if order.index(i) < order.index(j) else -0.5 for i, j in pairs])
    return np.array(rows)


def pair_discount_rows(n_items: int) -> FloatArray:
    """F of average precision: one over the later position of two items."""
    rows = []
    for order in Permutations(n_items).enumerate().tolist():
        pairs = [(i, j) for i in range(n_items) for j in range(i, n_items)]
        rows.append([1 / (1 + max(order.index(i), order.index(j))) for i, j in pairs])
    return np.array(rows)


def set_rows(n_items: int, beta: float, sizes: tuple[int, ...]) -> FloatArray:
    """F of the F-measure over all sets."""
    rows = []
    for members in Product(n_items).enumerate().tolist():
        row = []
        for s in sizes:
            if s > 0:
                weight = (1 + beta**2) / (beta**2 * s + sum(members))
                scored = [weight * member for member in members]
                row += scored if s < n_items else [sum(scored)]
        row += [float(sum(members) == 0)] if 0 in sizes else []
        rows.append([*row, 1.0])
    return np.array(rows)


# structure, F by definition
DEFINED: tuple[tuple[Structure, FloatArray], ...] = (
    (Matchings(3), matching_rows(3)),
    (Matchings(1), matching_rows(1)),
    (PairOrder(1), pair_rows(1)),
    (PairOrder(5), pair_rows(5)),
    (PairDiscount(1), pair_discount_rows(1)),
    (PairDiscount(5), pair_discount_rows(5)),
    (SetSizes(1), set_rows(1, 1.0, (0, 1))),
    (SetSizes(5, 2.0, (0, 1, 4)), set_rows(5, 2.0, (0, 1, 4))),
    (SetSizes(4, 0.5, (2,)), set_rows(4, 0.5, (2,))),
    (SetSizes(4, 1.0, (0, 1, 4)), set_rows(4, 1.0, (0, 1, 4))),
    (SetSizes(3, 1.0, (3,)), set_rows(3, 1.0, (3,))),
    (Positions([3, 2, 1]), permutation_rows(3, np.array([3, 2, 1]))),
    (Positions([2, 2, 1, 0]), permutation_rows(4, np.array([2, 2, 1, 0]))),
    (Positions([1, 0, 0, 0]), permutation_rows(4, np.array([1, 0, 0, 0]))),
)
