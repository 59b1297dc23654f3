"""Graphs: nodes scored by their state, and joined nodes by their pair of states.

A label y of V nodes scores Σ_i θ_i(y_i) + Σ_{ij} θ_ij(y_i, y_j). What can be computed depends on
the graph and on the scores, and `decode_with_gap` states how far its label may be from the best:

* forests: everything exactly, by dynamic programming from the leaves to the roots;
* up to 4,096 labels: everything exactly, by listing them;
* two states, and tables that reward agreement (or disagreement, where no cycle contradicts it):
  the best label exactly, as a minimum cut;
* otherwise the best label found and an upper bound on all labels, by tree-reweighted message
  passing (TRW-S) on the dual of the linear relaxation. Where the two meet the label is best, too.

Maximization over general graphs is NP-hard and log Z is #P-hard: what is not listed here raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_count, check_rows, check_theta, refuse_all_forbidden
from consistruct.exceptions import LossSpecError, TooManyLabelsError
from consistruct.protocols import FloatArray, IntArray, LabelArray, LinearMap, ScoreSpace, TaskLoss
from consistruct.structures._graph_kernels import (
    best_of_trees,
    dual_rows,
    graph_score,
    minimum_cut,
    trees_of,
)
from consistruct.structures.base import ENUMERATION_LIMIT, Predictable, Structure
from consistruct.structures.operators import BaseGram, group_equal, helmert_contrasts
from consistruct.structures.parts import Product, Separable, padding_map
from consistruct.structures.paths import check_edges

__all__ = ["Graph", "GraphDecision", "decode_graphs"]

# Sweeps of message passing, forwards and backwards, before a bound is returned as it is. Grids of
# 11 states converge in fewer than a hundred; each costs about what one decoding of a chain does.
SWEEPS = 300
NODE, STEP = 14, 44  # radius of a drawn node, distance of two of them; pixels


@dataclass(frozen=True, eq=False)
class GraphDecision:
    """Hold decoded labels, and what they may miss.

    Attributes
    ----------
    labels : (n, V) array
    scores : (n,) array
        Scores of these labels.
    bounds : (n,) array
        No label has a larger score than this, up to rounding.
    """

    labels: LabelArray
    scores: FloatArray
    bounds: FloatArray

    @property
    def gaps(self) -> FloatArray:
        """Return bound − score, (n,): zero if the label is proven to be best."""
        return self.bounds - self.scores


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Structure):
    """Score nodes and edges of a graph: f(y) = Σ_i θ_i(y_i) + Σ_{ij} θ_ij(y_i, y_j).

    θ holds the node scores (V, s), then one table per edge (E, s, s), rows by the state of the
    edge's first node: width V·s + E·s². `theta` lays it out, from shared tables too. A path graph
    is a `Chain`. See the top of the file for what is exact; `decode_with_gap` reports the rest.

    Parameters
    ----------
    edges : (E, 2) array of int
        Pairs of nodes, numbered from 0; each pair once.
    n_states : int
        s, at least 2, the same for all nodes.
    n_nodes : int, optional
        V, where some nodes have no edge.
    shape : (height, width), optional
        For grids, row after row: only `draw` uses it.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures import Graph
    >>> triangle = Graph([[0, 1], [1, 2], [0, 2]], 2)
    >>> theta = triangle.theta([[2.0, 0.0], [0.0, 1.0], [0.0, 0.5]], [[0.0, 3.0], [3.0, 0.0]])
    >>> triangle.decode(theta), triangle.log_partition(theta).round(4)  # neighbors shall differ
    (array([[0, 1, 1]]), array([10.2596]))
    >>> image = Graph.grid(30, 40, 2)
    >>> alike = image.theta(np.random.default_rng(0).normal(size=(1200, 2)), np.eye(2))
    >>> image.decode_with_gap(alike).gaps.round(9)  # 2^1200 labels, one minimum cut
    array([0.])

    References
    ----------
    Greig, Porteous and Seheult, *Exact maximum a posteriori estimation for binary images*, 1989;
    Kolmogorov, *Convergent tree-reweighted message passing for energy minimization*, 2006.
    """

    edges: ArrayField
    n_states: int
    n_nodes: int | None = None
    shape: tuple[int, int] | None = None

    contains_constant = True

    def __post_init__(self) -> None:
        edges = frozen_array(check_edges(self.edges), np.int64)
        least = int(edges.max()) + 1
        n_nodes = least if self.n_nodes is None else check_count(self.n_nodes, "n_nodes")
        if n_nodes < least:
            raise ValueError(f"n_nodes must be at least {least}, as edges name node {least - 1}")
        ordered = np.sort(edges, axis=1)
        if len(np.unique(ordered, axis=0)) < len(edges):
            raise ValueError("edges must join every pair of nodes at most once; add the tables")
        shape = None if self.shape is None else (int(self.shape[0]), int(self.shape[1]))
        if shape is not None and shape[0] * shape[1] != n_nodes:
            raise ValueError(f"shape must have {n_nodes} places, one per node, got {shape}")
        s = check_count(self.n_states, "n_states", minimum=2)
        self._set(edges=edges, n_states=s, n_nodes=n_nodes, shape=shape)

    @classmethod
    def grid(cls, height: int, width: int, n_states: int, diagonal: bool = False) -> Self:
        """Join each pixel to its right and lower neighbors, and to both lower diagonal ones.

        Nodes are numbered row after row. Edges are the horizontal ones, then the vertical ones,
        then ↘ and ↙ if `diagonal`, each kind row after row: (h(w−1), (h−1)w, (h−1)(w−1) twice).
        """
        size = check_count(height, "height") * check_count(width, "width")
        at = np.arange(size).reshape(height, width)
        pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
        if diagonal:
            pairs += [(at[:-1, :-1], at[1:, 1:]), (at[:-1, 1:], at[1:, :-1])]
        edges = [np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs]
        return cls(np.concatenate(edges), n_states, n_nodes=size, shape=(height, width))

    @classmethod
    def from_spec(cls, argument: str, loss: TaskLoss) -> Self | None:
        """Read ``4x5`` (a grid) or ``0-1,1-2,0-2`` (edges) over a loss whose labels have parts."""
        labels = loss.score_space.predictions
        if not argument:
            return None
        if not isinstance(labels, Product) or labels.n_parts is None:
            raise LossSpecError("graph scores need labels made of parts, such as hamming:20x3")
        try:
            if "x" in argument:
                height, width = (int(size) for size in argument.split("x"))
                graph = cls.grid(height, width, labels.n_states)
            else:
                pairs = [[int(node) for node in pair.split("-")] for pair in argument.split(",")]
                graph = cls(pairs, labels.n_states, n_nodes=labels.n_parts)
        except ValueError as error:
            raise LossSpecError(f"graph scores are graph:4x5 or graph:0-1,1-2 ({error})") from None
        if graph.n_nodes != labels.n_parts:
            raise LossSpecError(
                f"graph:{argument} has {graph.n_nodes} nodes, the labels {labels.n_parts} parts"
            )
        return graph

    # --- labels and scores ---

    @cached_property
    def predictions(self) -> Product:
        return Product(self.n_nodes, self.n_states)

    @property
    def n_edges(self) -> int:
        return len(self.edges)

    @property
    def width(self) -> int:
        """Count V·s node scores and E·s² edge scores."""
        return (self._n_nodes + self.n_edges * self.n_states) * self.n_states

    @property
    def rank(self) -> int:
        """Count constant, contrasts of nodes, products of contrasts on edges."""
        free = self.n_states - 1
        return 1 + self._n_nodes * free + self.n_edges * free**2

    @property
    def _n_nodes(self) -> int:
        assert self.n_nodes is not None  # set by the constructor
        return self.n_nodes

    def theta(self, nodes: ArrayLike, tables: ArrayLike) -> FloatArray:
        """Lay out scores of n examples as θ, (n, width).

        Parameters
        ----------
        nodes : (V, s) or (n, V, s) array
        tables : (s, s), (E, s, s) or (n, E, s, s) array
            One table for all edges, one for each, or one for each edge of each example.
        """
        s = self.n_states
        states = np.asarray(nodes, dtype=np.float64).reshape(-1, self._n_nodes * s)
        pairs = np.asarray(tables, dtype=np.float64)
        shape = (len(states), self.n_edges, s, s)
        if pairs.shape not in (shape, shape[1:], shape[2:]):
            raise ValueError(
                f"tables must have shape {shape[2:]}, {shape[1:]} or {shape}, got {pairs.shape}"
            )
        flat = np.broadcast_to(pairs, shape).reshape(len(states), self.n_edges * s * s)
        return np.concatenate([states, flat], axis=1)

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return one-hot states and one-hot pairs of states, (n, V) -> (n, width)."""
        states = self.predictions.check(labels)
        rows, s = np.zeros((len(states), self.width)), self.n_states
        example = np.arange(len(states))[:, None]
        rows[example, np.arange(self._n_nodes) * s + states] = 1.0
        pair = states[:, self.edges[:, 0]] * s + states[:, self.edges[:, 1]]
        rows[example, self._n_nodes * s + np.arange(self.n_edges) * s * s + pair] = 1.0
        return rows

    def gram(self) -> GraphGram:
        """Return the operator on contrasts of nodes and edges; about V·s² + E·s⁴ numbers."""
        return self._gram

    @cached_property
    def _gram(self) -> GraphGram:
        return GraphGram(self.edges, self._n_nodes, self.n_states)

    # --- the graph ---

    @cached_property
    def _links(self) -> tuple[IntArray, IntArray]:
        """Return the incident edges of each node, as `_graph_kernels` reads them."""
        n = self.n_edges
        ends = np.concatenate([self.edges[:, 0], self.edges[:, 1]])
        others = np.concatenate([self.edges[:, 1], self.edges[:, 0]])
        second = np.repeat([0, 1], n)
        link = np.column_stack([others, np.tile(np.arange(n), 2), second])
        order = np.argsort(ends, kind="stable")
        start = np.searchsorted(ends[order], np.arange(self._n_nodes + 1))
        return start.astype(np.int64), np.ascontiguousarray(link[order], dtype=np.int64)

    @cached_property
    def _rooted(self) -> tuple[IntArray, IntArray]:
        """Return the nodes of a forest, parents first, and (parent, edge, is second end) of each.

        The smallest node of every tree is its root; roots have parent −1.
        """
        start, link = self._links
        order: list[int] = []
        up = np.full((self._n_nodes, 3), -1, dtype=np.int64)
        seen = np.zeros(self._n_nodes, dtype=np.bool_)
        for root in range(self._n_nodes):
            queue = [] if seen[root] else [root]
            seen[root] = True
            while queue:
                i = queue.pop()
                order.append(i)
                for j, edge, second in link[start[i] : start[i + 1]].tolist():
                    if not seen[j]:
                        seen[j] = True
                        up[j] = i, edge, 1 - second
                        queue.append(j)
        return np.array(order, dtype=np.int64), up

    @cached_property
    def is_forest(self) -> bool:
        """Say whether the graph has no cycle: one edge for each node that is no root."""
        return int((self._rooted[1][:, 0] >= 0).sum()) == self.n_edges

    @property
    def _is_small(self) -> bool:
        return self.predictions.size <= ENUMERATION_LIMIT  # type: ignore[operator]

    # --- decoding ---

    @property
    def decoding_is_exact(self) -> bool:
        """Say whether every θ is decoded exactly: forests, and graphs with few labels."""
        return self.is_forest or self._is_small

    @property
    def tie_rule(self) -> str:
        if self._is_small and not self.is_forest:
            return super().tie_rule
        return "smallest state, from the roots on" if self.is_forest else "as the method meets them"

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the best label found for each row of θ; `decode_with_gap` says how good it is."""
        return self.decode_with_gap(theta).labels

    def decode_with_gap(self, theta: ArrayLike, *, sweeps: int = SWEEPS) -> GraphDecision:
        """Return labels with their scores, and bounds that no label exceeds.

        Parameters
        ----------
        theta : (n, width) array
            −inf forbids states and pairs of states.
        sweeps : int
            Most sweeps of message passing, where the graph and the scores need it.

        Returns
        -------
        GraphDecision
            With ``labels``, ``scores``, ``bounds`` and ``gaps``.
        """
        rows = np.ascontiguousarray(check_theta(theta, self.width))
        check_count(sweeps, "sweeps")
        labels = np.zeros((len(rows), self._n_nodes), dtype=np.int64)
        scores, bounds = np.empty(len(rows)), np.empty(len(rows))
        if self.is_forest:
            best_of_trees(rows, self.n_states, *self._rooted, labels, scores)
            refuse_all_forbidden(scores)
            return GraphDecision(labels, scores, scores)
        if self._is_small:
            labels = super().decode(rows)
            for row, label in enumerate(labels):
                scores[row] = graph_score(rows[row], self.edges, self.n_states, label)
            return GraphDecision(labels, scores, scores)
        for row in range(len(rows)):
            scores[row], bounds[row] = self._solve(rows[row], sweeps, labels[row])
        refuse_all_forbidden(bounds)
        missed = np.isneginf(scores)
        if missed.any():
            raise ValueError(
                f"no allowed label was found for example {int(np.argmax(missed))}, which does not "
                "show that there is none; forbid fewer pairs, or use a large negative score"
            )
        return GraphDecision(labels, scores, bounds)

    def _solve(self, theta: FloatArray, sweeps: int, label: IntArray) -> tuple[float, float]:
        """Write the label of one example; return its score and a bound."""
        start, link = self._links
        if self.n_states == 2:
            bound = minimum_cut(theta, self.edges, start, link, label)
            if not np.isnan(bound):
                score = graph_score(theta, self.edges, 2, label)
                # the cut is best, so that a forbidden one leaves no allowed label
                return score, score if np.isneginf(score) else max(bound, score)
        return dual_rows(theta, self.n_states, self.edges, start, link, sweeps, label)

    # --- the distribution p(y) ∝ exp f(y): forests, and what can be listed ---

    def _by_trees(
        self, theta: ArrayLike, uniform: FloatArray
    ) -> tuple[FloatArray, FloatArray, LabelArray]:
        """Return log Z, and marginals or drawn labels, of forests."""
        if not self.is_forest:
            raise TooManyLabelsError(
                self.predictions.size,
                ENUMERATION_LIMIT,
                "the distribution over labels of a graph with cycles",
                "leave out edges until it is a forest, or decode_with_gap for the best label",
            )
        rows = np.ascontiguousarray(check_theta(theta, self.width))
        log_z, shares = np.empty(len(rows)), np.zeros((len(rows), self.width))
        labels = np.zeros((len(rows), self._n_nodes), dtype=np.int64)
        uniform = uniform.reshape(-1, self._n_nodes)
        trees_of(rows, self.n_states, *self._rooted, uniform, log_z, shares, labels)
        refuse_all_forbidden(log_z)
        return log_z, shares, labels

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        """Return log Σ_y exp f(y) for each row of θ, (n,)."""
        if self._is_small and not self.is_forest:
            return super().log_partition(theta)
        return self._by_trees(theta, np.zeros(0))[0]

    def marginals(self, theta: ArrayLike) -> FloatArray:
        """Return P(y_i = a), then P(y_i = a, y_j = b), laid out as θ, (n, width)."""
        if self._is_small and not self.is_forest:
            return super().marginals(theta)
        return self._by_trees(theta, np.zeros(0))[1]

    def sample(self, theta: ArrayLike, rng: np.random.Generator) -> LabelArray:
        """Draw one label per row of θ, exactly, (n, V)."""
        if self._is_small and not self.is_forest:
            return super().sample(theta, rng)
        return self._by_trees(theta, rng.random((len(np.asarray(theta)), self._n_nodes)))[2]

    # --- how hard it is ---

    def mean_embedding(self) -> FloatArray:
        """Return 1/s for every state of a node and 1/s² for every pair."""
        s = self.n_states
        shares = [np.full(self._n_nodes * s, 1 / s), np.full(self.n_edges * s * s, 1 / s**2)]
        return np.concatenate(shares)

    def predictable(self) -> Predictable:
        """Return every label: its own one-hot θ makes it the only winner."""
        return Predictable(self.n_states**self._n_nodes)

    @cached_property
    def _agreement(self) -> GraphDecision:
        """Return where the farthest pair of labels agrees (1), as a binary problem on the graph."""
        # F_iᵀḠ⁺F_j = 1 + Σ_t x_t + Σ_tu x_t x_u with x = s − 1 where i and j agree, −1 elsewhere;
        # at i = j it is the rank. The farthest pair minimizes it, a cut where all cycles are even.
        x = np.array([-1.0, self.n_states - 1.0])
        binary = Graph(self.edges, 2, n_nodes=self.n_nodes)
        return binary.decode_with_gap(
            binary.theta(np.tile(-x, (self._n_nodes, 1)), -np.outer(x, x))
        )

    def diameter_squared(self) -> Fraction:
        """Return 2(rank − min F_iᵀḠ⁺F_j): exact for forests, grids and few nodes, or a bound."""
        # all values are integers: the bound is above the best one by rounding or by a true gap
        best = np.floor(self._agreement.bounds[0] + 1e-6)
        return Fraction(2 * (self.rank - 1 + int(best)))

    @property
    def diameter_is_exact(self) -> bool:
        return bool(self._agreement.gaps[0] < 1 - 1e-6)

    def coordinates(self, other: ScoreSpace) -> LinearMap:
        """Pad separable scores by zero tables; list labels otherwise."""
        self._check_same_predictions(other)
        if isinstance(other, Separable) and other.n_states == self.n_states:
            return padding_map(other.width, self.width)
        return super().coordinates(other)

    # --- pictures ---

    def draw(self, label: ArrayLike) -> str:
        """Draw one label as SVG: nodes with their states on a grid, or on a circle, and edges."""
        states = self.predictions.check(np.asarray(label)[None])[0]
        n = self._n_nodes
        if self.shape is not None:
            place = np.column_stack(np.unravel_index(np.arange(n), self.shape))[:, ::-1] + 0.5
        else:
            angle = 2 * np.pi * np.arange(n) / n
            radius = n / (2 * np.pi) + 0.5
            place = radius * np.column_stack([np.sin(angle), -np.cos(angle)]) + radius + 0.5
        place = STEP * place
        across, down = place.max(axis=0) + STEP / 2
        shapes = [
            f'<line x1="{x:.0f}" y1="{y:.0f}" x2="{u:.0f}" y2="{v:.0f}" stroke="#999"/>'
            for (x, y), (u, v) in place[self.edges].tolist()
        ]
        for (x, y), state in zip(place.tolist(), states.tolist(), strict=True):
            # states around the color circle; the number says what the color cannot
            hue = 360 * state // self.n_states
            shapes.append(
                f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{NODE}" fill="hsl({hue},70%,75%)"/>'
                f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" fill="#000">{state}</text>'
            )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across:.0f} {down:.0f}" '
            f'width="{across:.0f}" height="{down:.0f}" font-family="system-ui,sans-serif" '
            f'font-size="13">{"".join(shapes)}</svg>'
        )


def decode_graphs(
    graphs: Sequence[Graph], thetas: Sequence[ArrayLike], *, sweeps: int = SWEEPS
) -> list[GraphDecision]:
    """Decode graphs of different sizes, one row of scores each.

    Parameters
    ----------
    graphs : list of Graph
    thetas : list of (width_i,) arrays
    sweeps : int

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures import Graph, decode_graphs
    >>> images = [Graph.grid(2, 2, 3), Graph.grid(1, 4, 3)]
    >>> found = decode_graphs(images, [np.zeros(image.width) for image in images])
    >>> [decision.labels[0].tolist() for decision in found]
    [[0, 0, 0, 0], [0, 0, 0, 0]]
    """
    if len(graphs) != len(thetas):
        raise ValueError(f"thetas must hold one row per graph, got {len(thetas)} for {len(graphs)}")
    return [
        graph.decode_with_gap(np.atleast_2d(np.asarray(theta)), sweeps=sweeps)
        for graph, theta in zip(graphs, thetas, strict=True)
    ]


class GraphGram(BaseGram):
    """Multiply by Ḡ = CᵀC, where C (rank, width) writes one-hot columns in orthonormal functions.

    With √s H the contrasts of one node, 1[y = a] = 1/s + Σ_j H_aj/√s · √s H_{y j}; the indicator of
    a pair of states is the product of two of these. The rows of C are orthogonal: CCᵀ = diag(λ)
    with λ = V/s + E/s² (constant), 1/s + degree/s² (nodes), 1/s² (edges).

    Parameters
    ----------
    edges : (E, 2) array
    n_nodes, n_states : int
    """

    def __init__(self, edges: IntArray, n_nodes: int, n_states: int) -> None:
        s, free = n_states, n_states - 1
        A = np.column_stack([np.full(s, 1 / s), helmert_contrasts(s) / np.sqrt(s)])  # (state, term)
        # rows of C: the constant, contrasts of nodes, products of contrasts on edges
        node = np.zeros((n_nodes, s), dtype=np.int64)
        node[:, 1:] = 1 + np.arange(n_nodes * free).reshape(n_nodes, free)
        edge = np.zeros((len(edges), s, s), dtype=np.int64)
        edge[:, :, 0], edge[:, 0, :] = node[edges[:, 0]], node[edges[:, 1]]
        pairs = np.arange(len(edges) * free**2).reshape(len(edges), free, free)
        edge[:, 1:, 1:] = 1 + n_nodes * free + pairs
        blocks = [(node, A), (edge.reshape(len(edges), s * s), np.kron(A, A))]
        rows, columns, values, width = [], [], [], 0
        for term, block in blocks:
            n, m = term.shape
            rows.append(np.broadcast_to(term[:, None, :], (n, m, m)).ravel())
            column = width + np.arange(n * m).reshape(n, m, 1)
            columns.append(np.broadcast_to(column, (n, m, m)).ravel())
            values.append(np.broadcast_to(block, (n, m, m)).ravel())
            width += n * m
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        self._terms = scipy.sparse.csr_array(entries)
        self._values: FloatArray = np.asarray((self._terms**2).sum(axis=1), np.float64).ravel()

    @property
    def width(self) -> int:
        return int(self._terms.shape[1])

    def apply(self, theta: FloatArray) -> FloatArray:
        C, rows = self._terms, check_rows(theta, self.width)
        return np.asarray((C.T @ (C @ rows.T)).T)

    def solve(self, theta: FloatArray) -> FloatArray:
        """Return Ḡ⁺θ = Cᵀ diag(λ)⁻² C θ."""
        C, rows = self._terms, check_rows(theta, self.width)
        return np.asarray((C.T @ ((C @ rows.T) / self._values[:, None] ** 2)).T)

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        return group_equal(self._values)

    def expand(self, z: FloatArray) -> FloatArray:
        """Map orthonormal coordinates (n, rank) to θ (n, width): Cᵀ diag(λ)⁻¹ z."""
        return np.asarray((self._terms.T @ (z / self._values).T).T)

    def contract(self, theta: FloatArray) -> FloatArray:
        """Apply the transpose of `expand`, (n, width) -> (n, rank)."""
        return np.asarray((self._terms @ theta.T).T / self._values)
