"""Stochastic gradient steps where transitions look at the features too.

The edge into token t scores A + V·x_t, an (s, s) matrix per token: V has d·s² entries, of which a
batch with sparse features touches the rows of its own features only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from consistruct._validation import is_sparse
from consistruct.learning.models.chain.chain_weights import ChainWeights
from consistruct.learning.models.chain.training_set import TrainingSet
from consistruct.protocols import IntArray
from consistruct.structures.chains import boundary_scores
from consistruct.surrogates._chain_kernels import gradients_packed
from consistruct.surrogates.chains import ChainGradient, ChainSurrogate

__all__ = ["per_edge_steps"]


def per_edge_steps(
    surrogate: ChainSurrogate,
    model: ChainWeights,  # in and out
    data: TrainingSet,
    part: IntArray,  # (m,) sequences to visit
    *,
    step: float,
    transition_step: float,
    batch_size: int,
    boundaries: bool,
) -> float:
    """One pass over `part`; Σ weight · value, each before its own step."""
    total = 0.0
    s = model.n_states
    for first in range(0, len(part), batch_size):
        rows = part[first : first + batch_size]
        batch = data.tokens.take(rows)
        positions = np.concatenate([np.arange(*data.tokens.offsets[row : row + 2]) for row in rows])
        phi, columns = _own_columns(data.features(batch.features, batch.offsets))
        local = ChainWeights(
            model.weights[columns],
            model.bias,
            model.edges,
            model.start,
            model.end,
            model.edge_weights[columns],
        )
        unary = np.asarray(phi @ local.weights, dtype=np.float64)
        unary += model.bias
        if boundaries:
            unary = boundary_scores(unary, batch.offsets, model.start, model.end)
        gradient = np.empty_like(unary)
        pairwise = np.zeros((len(unary), s, s))
        values = np.empty(len(rows))
        weights = data.weights[rows]
        gradients_packed(
            surrogate.kind,
            surrogate.part_cost,
            unary,
            local.edge_scores(phi),
            False,
            batch.offsets,
            data.states[positions],
            weights,
            values,
            gradient,
            pairwise,
        )
        result = ChainGradient(values, gradient, pairwise, batch.offsets)
        total += float(weights @ values)
        model.weights[columns] -= phi.T @ (step * gradient).astype(np.float32)
        # an edge moves by A and by V: half the step for V
        change = (0.5 * step * pairwise[:-1]).astype(np.float32)
        model.edge_weights[columns] -= phi[1:].T @ change.reshape(-1, s * s)
        model.bias -= transition_step * gradient.sum(axis=0)
        model.edges -= transition_step * pairwise.sum(axis=0)
        if boundaries:
            model.start -= transition_step * result.start
            model.end -= transition_step * result.end
    return total


def _own_columns(features: Any) -> tuple[Any, Any]:
    """Features without the columns that are zero throughout (sparse), and which were kept."""
    if not is_sparse(features):
        return features, slice(None)
    columns, place = np.unique(features.indices, return_inverse=True)
    shape = (features.shape[0], len(columns))
    return sp.csr_array((features.data, place, features.indptr), shape=shape), columns
