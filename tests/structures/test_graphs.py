"""Graphs: against all labels, against chains, cuts against SciPy, and bounds that hold."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree

import numpy as np
import pytest
import scipy

import consistruct as cs
from consistruct.structures import Chain, Graph, Separable, decode_graphs, graphs
from consistruct.structures.registry import parse_scores


@pytest.fixture
def _unlisted(monkeypatch):
    """Small graphs are decoded by what large ones use, so that both can be compared."""
    monkeypatch.setattr(graphs, "ENUMERATION_LIMIT", 0)


def scores_of_all(graph, theta):
    """Return all labels and their scores by the definition, slowly."""
    s, n = graph.n_states, graph.n_nodes
    labels = np.column_stack(np.unravel_index(np.arange(s**n), (s,) * n))
    nodes, tables = theta[: n * s].reshape(n, s), theta[n * s :].reshape(-1, s, s)
    values = np.zeros(len(labels))
    for i in range(n):
        values = values + nodes[i, labels[:, i]]
    for (i, j), table in zip(graph.edges.tolist(), tables, strict=True):
        values = values + table[labels[:, i], labels[:, j]]
    return labels, values


def random_tree(n, s, rng):
    edges = [[i, int(rng.integers(i))][:: int(rng.choice([1, -1]))] for i in range(1, n)]
    return Graph(edges, s, n_nodes=n + 1)  # and a node of its own


def random_graph(n, s, rng):
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    return Graph(pairs[rng.random(len(pairs)) < rng.uniform(0.3, 0.9)].tolist() or [[0, 1]], s)


def random_theta(graph, rng, kind):
    """Return scores: any tables, tables that reward agreement, or disagreement; some forbidden."""
    s = graph.n_states
    nodes = rng.normal(size=(graph.n_nodes, s))
    tables = rng.normal(size=(graph.n_edges, s, s))
    if kind != "any":
        reward = 2 * np.abs(tables[:, :1, :1]) * (1 if kind == "attractive" else -1)
        tables = reward * np.eye(s) + tables[:, :, :1] - tables[:, :, :1].mean()
    if kind == "any" and rng.random() < 0.3:
        tables[rng.random(tables.shape) < 0.15] = -np.inf
        nodes[rng.random(nodes.shape) < 0.1] = -np.inf
    return graph.theta(nodes, tables)


GRAPHS = {
    "tree": lambda rng: random_tree(5, 3, rng),
    "cycles": lambda rng: random_graph(6, int(rng.integers(2, 4)), rng),
    "grid 3 × 3": lambda rng: Graph.grid(3, 3, 2),
    "grid 2 × 3": lambda rng: Graph.grid(2, 3, 4),
    "grid 4 × 4": lambda rng: Graph.grid(4, 4, 2),
    "diagonals": lambda rng: Graph.grid(3, 3, 2, diagonal=True),
}


@pytest.mark.usefixtures("_unlisted")
@pytest.mark.parametrize("kind", ["any", "attractive", "repulsive"])
@pytest.mark.parametrize("name", GRAPHS)
def test_scores_are_true_and_bounds_hold(name, kind):
    rng = np.random.default_rng(len(name))
    n_best = 0
    for _ in range(25):
        graph = GRAPHS[name](rng)
        theta = random_theta(graph, rng, kind)
        labels, values = scores_of_all(graph, theta[0])
        if np.isneginf(values.max()):
            with pytest.raises(ValueError, match=r"every label is forbidden|no allowed label"):
                graph.decode(theta)
            continue
        found = graph.decode_with_gap(theta)
        attained = values[(labels == found.labels[0]).all(axis=1)][0]
        assert found.scores[0] == pytest.approx(attained, abs=1e-9)
        assert found.bounds[0] >= values.max() - 1e-9
        assert found.gaps[0] >= 0
        assert np.array_equal(graph.decode(theta), found.labels)
        if found.gaps[0] < 1e-9:
            assert attained == pytest.approx(values.max(), abs=1e-9)
        n_best += attained > values.max() - 1e-9
        exact = graph.is_forest or (graph.n_states == 2 and kind == "attractive")
        exact |= kind == "repulsive" and name in ("grid 3 × 3", "grid 4 × 4")  # all cycles even
        if exact:
            assert found.gaps[0] < 1e-9
    assert n_best >= 15  # not only bounds that hold, also labels worth having


@pytest.mark.usefixtures("_unlisted")
def test_message_passing_reports_a_gap_where_the_relaxation_is_loose():
    """Three nodes that all shall differ in two states: the relaxation satisfies all, no label."""
    triangle = Graph([[0, 1], [1, 2], [0, 2]], 2)
    found = triangle.decode_with_gap(triangle.theta(np.zeros((3, 2)), 1 - np.eye(2)))
    assert found.scores.tolist() == [2.0]
    # at half and half everywhere each edge has all of its reward
    assert found.bounds[0] == pytest.approx(3.0, abs=0.02)
    assert not triangle.decoding_is_exact


def test_small_graphs_are_listed_and_large_ones_say_that_they_are_not_exact():
    assert Graph.grid(3, 4, 2).decoding_is_exact
    assert Graph.grid(3, 4, 2).tie_rule == "smallest index"
    assert not Graph.grid(4, 4, 2).decoding_is_exact
    path = Graph([[t, t + 1] for t in range(50)], 3)
    assert path.decoding_is_exact
    assert path.is_forest


def test_forests_against_chains():
    """A path is a chain: the compiled recursions of chains are another implementation."""
    rng = np.random.default_rng(0)
    path, chain = Graph([[t, t + 1] for t in range(29)], 4), Chain(30, 4)
    assert path.width == chain.width
    theta = 3 * rng.normal(size=(20, path.width))
    theta[rng.random(theta.shape) < 0.02] = -np.inf
    assert np.array_equal(path.decode(theta), chain.decode(theta))
    np.testing.assert_allclose(path.log_partition(theta), chain.log_partition(theta), rtol=1e-12)
    np.testing.assert_allclose(path.marginals(theta), chain.marginals(theta), atol=1e-12)
    with pytest.raises(ValueError, match="every label is forbidden"):
        path.log_partition(np.full((1, path.width), -np.inf))


@pytest.mark.parametrize("name", ["tree", "grid 2 × 3"])
def test_the_distribution_against_all_labels(name):
    rng = np.random.default_rng(1)
    graph = GRAPHS[name](rng)
    theta = random_theta(graph, rng, "attractive")
    theta[0, 0] = -np.inf
    labels, values = scores_of_all(graph, theta[0])
    log_z = np.logaddexp.reduce(values)
    p = np.exp(values - log_z)
    assert graph.log_partition(theta)[0] == pytest.approx(log_z)
    np.testing.assert_allclose(graph.marginals(theta)[0], p @ graph.embed(labels), atol=1e-12)
    draws = graph.sample(np.repeat(theta, 20_000, axis=0), rng)
    shares = np.bincount(graph.predictions.index(draws), minlength=len(p)) / len(draws)
    allowed = 6 * np.sqrt(p * (1 - p) / len(draws)) + 6 / len(draws)
    assert (np.abs(shares - p) <= allowed).all()


def test_cuts_against_scipy_on_large_images():
    """Integer capacities, for which SciPy's maximum flow is exact."""
    rng = np.random.default_rng(2)
    graph = Graph.grid(25, 30, 2)
    for _ in range(3):
        nodes = rng.integers(-20, 21, size=(750, 2)).astype(float)
        weights = rng.integers(0, 15, size=graph.n_edges)
        theta = graph.theta(nodes, weights[:, None, None] * np.eye(2))
        found = graph.decode_with_gap(theta)
        # Σ max − what the cut pays: pixels on their worse side, edges whose ends differ
        i, j = graph.edges.T
        gain = nodes[:, 1] - nodes[:, 0]
        rows = np.concatenate([i, j, np.full(750, 750), np.arange(750)])
        columns = np.concatenate([j, i, np.arange(750), np.full(750, 751)])
        room = np.concatenate([weights, weights, np.maximum(gain, 0), np.maximum(-gain, 0)])
        network = scipy.sparse.csr_array((room.astype(np.int32), (rows, columns)), (752, 752))
        cut = scipy.sparse.csgraph.maximum_flow(network, 750, 751).flow_value
        assert found.scores[0] == nodes.max(axis=1).sum() + weights.sum() - cut
        assert found.gaps[0] == 0.0


def test_forbidden_pairs_are_never_decoded():
    rng = np.random.default_rng(3)
    graph = Graph.grid(8, 8, 5)
    tables = rng.normal(size=(graph.n_edges, 5, 5))
    tables[:, np.arange(5), np.arange(5)] = -np.inf  # a coloring: neighbors differ
    found = graph.decode_with_gap(graph.theta(rng.normal(size=(64, 5)), tables))
    ends = found.labels[0][graph.edges]
    assert (ends[:, 0] != ends[:, 1]).all()
    assert np.isfinite(found.bounds[0])


def test_impossible_scores_are_told_apart():
    graph = Graph.grid(5, 5, 3)
    theta = np.zeros((1, graph.width))
    theta[0, :3] = -np.inf
    with pytest.raises(ValueError, match="every label is forbidden"):
        graph.decode(theta)
    # nine nodes that all differ pairwise cannot have three states, but no message shows it
    pairs = list(itertools.combinations(range(9), 2))
    clique = Graph(pairs, 3)
    differ = np.where(np.eye(3) == 1, -np.inf, 0.0)
    with pytest.raises(ValueError, match="does not show that there is none"):
        clique.decode(clique.theta(np.zeros((9, 3)), differ))


def test_the_distribution_over_large_cyclic_graphs_is_refused():
    graph = Graph.grid(10, 10, 2)
    theta = np.zeros((1, graph.width))
    for action in (graph.log_partition, graph.marginals):
        with pytest.raises(cs.exceptions.TooManyLabelsError, match="decode_with_gap"):
            action(theta)
    with pytest.raises(cs.exceptions.TooManyLabelsError, match="decode_with_gap"):
        graph.sample(theta, np.random.default_rng(0))


def test_hardness_of_graphs():
    """Paths agree with chains; grids know the farthest pair, odd cycles a bound on it."""
    path = Graph([[t, t + 1] for t in range(19)], 3)
    assert path.effective_classes() == Chain(20, 3).effective_classes()
    assert Graph.grid(20, 20, 4).effective_classes().exact
    rng = np.random.default_rng(4)
    for graph in (random_graph(5, 2, rng), Graph.grid(2, 3, 2, diagonal=True)):
        kernel = graph.matrix() @ graph.gram().solve(graph.matrix()).T
        diagonal = np.diag(kernel)
        farthest = (diagonal[:, None] + diagonal[None] - 2 * kernel).max()
        assert graph.diameter_is_exact
        assert float(graph.diameter_squared()) == pytest.approx(farthest)


def test_hamming_is_expressed_by_huge_graphs():
    """Scores of single nodes are scores without tables, and a loss finds its targets in them."""
    grid, alone = Graph.grid(15, 20, 3), Separable(300, 3)
    theta = np.random.default_rng(6).normal(size=(2, alone.width))
    moved = grid.coordinates(alone)(theta)
    labels = grid.predictions.sample(5, np.random.default_rng(7))
    np.testing.assert_allclose(moved @ grid.embed(labels).T, theta @ alone.embed(labels).T)
    bound = cs.calibration_function(cs.losses.Hamming(300, 3), grid)(0.5)
    # Theorem 7 holds for the span of the graph, which is larger and so at least as hard to learn
    assert bound >= 0.5**2 / (4 * grid.effective_classes()) * (1 - 1e-9)


def test_grids_and_shared_tables():
    grid = Graph.grid(2, 3, 2)
    assert grid.edges.tolist() == [[0, 1], [1, 2], [3, 4], [4, 5], [0, 3], [1, 4], [2, 5]]
    assert len(Graph.grid(2, 3, 2, diagonal=True).edges) == 7 + 4
    shared = grid.theta(np.zeros((6, 2)), [[1.0, 2.0], [3.0, 4.0]])
    apart = grid.theta(np.zeros((1, 6, 2)), np.tile([[1.0, 2.0], [3.0, 4.0]], (7, 1, 1)))
    assert np.array_equal(shared, apart)
    assert shared @ grid.embed([[0, 1, 1, 0, 0, 1]])[0] == [2 + 4 + 1 + 2 + 1 + 3 + 4]
    assert grid.embed([[0, 1, 1, 0, 0, 1]]).sum() == 6 + 7


def test_graphs_of_different_sizes():
    rng = np.random.default_rng(5)
    members = [Graph.grid(3, 4, 3), Graph([[0, 1]], 3), Graph.grid(6, 5, 3)]
    thetas = [random_theta(graph, rng, "any")[0] for graph in members]
    for graph, theta, found in zip(members, thetas, decode_graphs(members, thetas), strict=True):
        assert np.array_equal(found.labels, graph.decode(theta[None]))
    with pytest.raises(ValueError, match="one row per graph, got 2 for 3"):
        decode_graphs(members, thetas[:2])


def test_strings_name_graphs():
    loss = cs.losses.Hamming(6, 3)
    assert parse_scores("graph:2x3", loss) == Graph.grid(2, 3, 3)
    assert parse_scores("graph:0-1,1-2,0-5", loss) == Graph([[0, 1], [1, 2], [0, 5]], 3, n_nodes=6)
    for text, message in (
        ("graph:2x2", "4 nodes, the labels 6 parts"),
        ("graph:a-b", "graph:4x5 or graph:0-1,1-2"),
        ("graph", "unknown scores"),
    ):
        with pytest.raises(cs.exceptions.LossSpecError, match=message):
            parse_scores(text, loss)
    with pytest.raises(cs.exceptions.LossSpecError, match="labels made of parts"):
        parse_scores("graph:2x3", cs.losses.ZeroOne(6))


def test_drawings_show_every_node_and_edge():
    for graph in (Graph.grid(2, 3, 4), random_graph(6, 4, np.random.default_rng(0))):
        picture = xml.etree.ElementTree.fromstring(graph.draw([3] * graph.n_nodes))
        kinds = [element.tag.rpartition("}")[2] for element in picture]
        assert kinds.count("line") == graph.n_edges
        assert kinds.count("circle") == kinds.count("text") == graph.n_nodes
        assert {element.text for element in picture if element.text} == {"3"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1], [1, 0]], 2), "at most once"),
        (([[0, 0]], 2), "two different nodes"),
        (([[0, 5]], 2, 3), "n_nodes must be at least 6"),
        (([[0, 1]], 1), "n_states"),
        (([[0, 1]], 2, 2, (2, 2)), "shape must have 2 places"),
    ],
)
def test_bad_graphs_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Graph(*arguments)


def test_bad_tables_are_refused():
    with pytest.raises(ValueError, match="tables must have shape"):
        Graph([[0, 1]], 2).theta(np.zeros((2, 2)), np.zeros((3, 3)))
