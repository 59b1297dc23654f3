"""Every oracle against brute force over all feasible 0/1 vectors, and its error paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from consistruct.exceptions import CapabilityError, ConsistructError, TooManyLabelsError
from consistruct.structures import (
    Arborescence,
    Assignments,
    GraphPath,
    GridPath,
    Intervals,
    Knapsack,
    MixedInteger,
    Path,
    SpanningTree,
    TopK,
    Tour,
)
from consistruct.structures.registry import ORACLES
from consistruct.testing.members import check_member

DAG = [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [3, 4], [2, 4], [0, 4], [1, 4]]
GRAPH = [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2], [1, 3], [3, 4], [4, 1], [2, 4]]
RNG = np.random.default_rng(3)
STARTS = RNG.integers(0, 9, 9)
LENGTHS = RNG.integers(1, 5, 9)

SMALL = [
    GridPath(3, 3),
    GridPath(1, 4),
    GridPath(2, 4),
    Path(DAG, 0, 4),
    Path(DAG, 1, 4),
    GraphPath(GRAPH, 0, 4),
    GraphPath(GRAPH, 4, 0, directed=False),
    Assignments(1),
    Assignments(3),
    SpanningTree(GRAPH),
    SpanningTree([[i, j] for i in range(5) for j in range(i)]),
    Arborescence.from_spec(("4",)),
    Arborescence(GRAPH, 0),
    Knapsack([3, 2, 5, 4, 1, 7, 2, 2], 9),
    Knapsack([0.25, 1.5, 0.75, 2.0, 0.0, 9.0], 2.25),
    Knapsack([0.1234567, 1.5, 0.75, 2.0], 2.25),
    Knapsack([[3, 2, 5, 4, 1], [1, 4, 2, 2, 3]], [8, 6]),
    TopK(6, 2),
    TopK(5, 5),
    TopK(6, 3, at_most=True),
    Intervals(STARTS, STARTS + LENGTHS),
    MixedInteger([[1.0, 1.0, 1.0, 1.0], [2.0, -1.0, 0.0, 3.0]], lower=[1.0, 0.0], upper=[3.0, 4.0]),
    Tour(3),
    Tour(4),
    Tour(5),
    Tour(6),
]


def by_definition(oracle):
    """Feasible vectors by trying all of them."""
    d = oracle.n_costs
    every = np.array(list(itertools.product((0.0, 1.0), repeat=d)))
    return every[oracle.feasible(every)]


@pytest.mark.parametrize("oracle", SMALL, ids=lambda oracle: repr(oracle)[:50])
def test_no_feasible_decision_is_cheaper(oracle):
    rng = np.random.default_rng(0)
    feasible = by_definition(oracle)
    costs = rng.standard_normal((40, oracle.n_costs))
    costs[20:] = rng.integers(-2, 3, costs[20:].shape)  # ties
    if oracle.non_negative:
        costs = np.abs(costs)
    found = oracle(costs)
    assert oracle.feasible(found).all()
    np.testing.assert_allclose((found * costs).sum(axis=1), (costs @ feasible.T).min(axis=1))
    np.testing.assert_array_equal(found, oracle(costs))
    value, attained = oracle.diameter_squared()
    gaps = ((feasible[:, None] - feasible[None]) ** 2).sum(axis=2)
    assert gaps.max() == value if attained else gaps.max() <= value
    check_member(oracle)


def test_every_registered_oracle_is_tried():
    assert {type(oracle) for oracle in SMALL} == set(ORACLES.values())


def test_feasibility_of_structures_is_what_it_states():
    """Counts of feasible sets that are known in closed form: the check is no echo of the solver."""
    assert len(by_definition(GridPath(3, 3))) == 6  # (4 choose 2)
    assert len(by_definition(Assignments(3))) == 6
    assert (
        len(by_definition(SpanningTree([[i, j] for i in range(5) for j in range(i)]))) == 125
    )  # Cayley
    assert len(by_definition(Arborescence.from_spec(("4",)))) == 16  # rooted, 4^(4-2)
    assert len(by_definition(Tour(6))) == 60  # 5!/2
    assert len(by_definition(TopK(6, 2))) == 15


@pytest.mark.parametrize(
    "oracle",
    [GridPath(3, 4), GridPath(5, 5), Path(DAG, 0, 4), Knapsack([3, 2, 5, 4, 0, 7, 2, 2, 12], 9)],
    ids=lambda oracle: repr(oracle)[:40],
)
def test_counts_equal_those_of_a_list(oracle):
    rows = oracle.listed()
    counts = oracle.counts()
    assert counts.size == len(rows)
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert oracle.feasible(rows).all()
    np.testing.assert_allclose(counts.mean, rows.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(counts.second, rows.T @ rows / len(rows), atol=1e-15)


def test_counts_of_large_structures_are_exact():
    import math

    assert GridPath(15, 15).counts().size == math.comb(28, 14)
    assert Knapsack(np.ones(200), 200).counts().size == 2**200
    assert GridPath(5, 5).diameter_squared() == (16.0, True)


def test_a_larger_arborescence_agrees_with_the_integer_program():
    """Many nested cycles: 9 nodes, all arcs, against the flow-free program with cuts by listing."""
    rng = np.random.default_rng(5)
    oracle = Arborescence.from_spec(("7",))
    costs = rng.integers(0, 6, size=(30, oracle.n_costs)).astype(float)
    found = oracle(costs)
    heads = oracle.edges[:, 1]
    rows, lower, upper = [], [], []
    for node in range(1, 7):  # one arc enters every node
        rows.append((heads == node).astype(float))
        lower.append(1.0)
        upper.append(1.0)
    for size in range(2, 7):  # and one enters every set of nodes
        for part in itertools.combinations(range(1, 7), size):
            inside = np.isin(heads, part) & ~np.isin(oracle.edges[:, 0], part)
            rows.append(inside.astype(float))
            lower.append(1.0)
            upper.append(np.inf)
    program = MixedInteger(np.array(rows), lower, upper)
    best = (program(costs) * costs).sum(axis=1)
    np.testing.assert_allclose((found * costs).sum(axis=1), best)
    assert oracle.feasible(found).all()


def test_tours_beyond_the_table_are_cut_until_they_are_whole():
    rng = np.random.default_rng(1)
    places = rng.random((13, 2))
    oracle = Tour(13)
    first, second = oracle._pairs.T
    costs = np.linalg.norm(places[first] - places[second], axis=1)[None]
    tour = oracle(costs)
    assert oracle.feasible(tour).all()
    # an independent certificate on a size that both solve
    small = Tour(9)
    nine = rng.random((3, small.n_costs))
    cuts = np.array([small._by_cuts(row) for row in nine])
    np.testing.assert_allclose((cuts * nine).sum(axis=1), (small(nine) * nine).sum(axis=1))


def test_continuous_variables_and_general_integers():
    oracle = MixedInteger([[1.0, 1.0]], upper=2.5, high=[3.0, np.inf], integer=[True, False])
    np.testing.assert_allclose(oracle([[-2.0, -1.0]]), [[2.0, 0.5]])
    with pytest.raises(ConsistructError, match="no best decision for row 0"):
        MixedInteger([[1.0]], lower=2.0)([[1.0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Path([[0, 1], [1, 0]], 0, 1), "must not form a cycle"),
        (lambda: Path([[0, 1], [2, 3]], 0, 3), "no path leads"),
        (lambda: GraphPath([[0, 1], [2, 3]], 0, 3), "no path leads"),
        (lambda: GraphPath([[0, 1]], 0, 0), "two different nodes"),
        (lambda: Path([[0.0, 1.0]], 0, 1), "integer array"),
        (lambda: GridPath(1, 1), "at least two nodes"),
        (lambda: SpanningTree([[0, 1], [2, 3]]), "not reached"),
        (lambda: Arborescence([[0, 1], [2, 1]]), "cannot be reached"),
        (lambda: Knapsack([1, -2], 3), "at least 0"),
        (lambda: Knapsack([[1, 2], [3, 4]], 3), "one capacity each"),
        (lambda: TopK(3, 4), "at most n"),
        (lambda: Intervals([0, 3], [1, 3]), "start before"),
        (lambda: MixedInteger([[1.0]], lower=2, upper=1), "must not exceed"),
        (lambda: MixedInteger([[1.0]], lower=[1, 2]), "one value or 1"),
        (lambda: Tour(2), "at least 3"),
        (lambda: GridPath(2, 2)([[1.0, 2.0]]), r"shape \(n, 4\)"),
        (lambda: GridPath(2, 2)([[1.0, 2.0, np.inf, 0.0]]), "finite"),
        (lambda: GraphPath([[0, 1]], 0, 1)([[-1.0]]), "at least 0"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as raised:
        make()
    assert "\n" not in str(raised.value)


def test_what_cannot_be_counted_or_listed_states_so():
    with pytest.raises(CapabilityError, match="identity Gram"):
        Assignments(3).counts()
    with pytest.raises(CapabilityError, match="integer weights"):
        Knapsack([[1, 2], [3, 4]], [3, 3]).counts()
    with pytest.raises(TooManyLabelsError):
        GridPath(15, 15).listed()
    with pytest.raises(TooManyLabelsError):
        Tour(10).listed()


@pytest.mark.parametrize("oracle", SMALL, ids=lambda oracle: repr(oracle)[:50])
def test_no_rows_give_no_decisions(oracle):
    assert oracle(np.zeros((0, oracle.n_costs))).shape == (0, oracle.n_costs)
