"""L-BFGS on chains: the reference that stochastic training is compared with."""

from __future__ import annotations

import logging

import numpy as np
import scipy.optimize

from consistruct.labels import Ragged
from consistruct.learning.models.chain.chain_weights import ChainModel
from consistruct.learning.models.chain.training_set import TrainingSet
from consistruct.protocols import FloatArray
from consistruct.surrogates.chain import ChainSurrogate

__all__ = ["minimise_lbfgs"]

logger = logging.getLogger(__name__)


def minimise_lbfgs(
    surrogate: ChainSurrogate,
    data: TrainingSet,
    mask: ChainModel,  # 0 where a score is learnt, −inf where it is forbidden
    *,
    alpha: float,
    boundaries: bool,
    max_iter: int,
    per_edge: bool = False,
    tol: float = 1e-5,
) -> tuple[ChainModel, int, float]:
    """Minimise Σ_i weight_i Φ_i + (alpha/2)‖(W, V)‖² over all weights: model, iterations, value."""
    if surrogate.name == "hinge":
        raise ValueError(
            "solver='lbfgs' needs a differentiable surrogate, and the hinge is not; "
            "use solver='sgd' or surrogate='softmax_margin'"
        )
    s = len(mask.bias)
    shapes = [array.shape for array in _zeros(data, s, per_edge).arrays()]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def unpack(flat: FloatArray) -> ChainModel:
        parts = np.split(flat, ends[:-1])
        model = ChainModel(
            *(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
        )
        return model.forbid(mask.edges, mask.start, mask.end)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        model = unpack(flat)
        total = 0.0
        gradient = _zeros(data, s, per_edge)
        for first, last in data.tokens.runs(model.tokens_at_once):
            begin, stop = data.tokens.offsets[first], data.tokens.offsets[last]
            offsets = data.tokens.offsets[first : last + 1] - begin
            phi = data.features(data.tokens.features[begin:stop], offsets)
            weights = data.weights[first:last]
            result = surrogate.value_and_gradient(
                model.scores(phi, offsets), Ragged(data.states[begin:stop], offsets), weights
            )
            total += float(weights @ result.values)
            gradient.weights += phi.T @ result.unary
            gradient.bias += result.unary.sum(axis=0)
            if per_edge:
                gradient.edges += result.edges.sum(axis=0)
                gradient.edge_weights += phi[1:].T @ result.edges[:-1].reshape(-1, s * s)
            else:
                gradient.edges += result.edges
            if boundaries:
                gradient.start += result.start
                gradient.end += result.end
        for penalised, slope in (
            (model.weights, gradient.weights),
            (model.edge_weights, gradient.edge_weights),
        ):
            total += 0.5 * alpha * float((penalised**2).sum())
            slope += alpha * penalised
        return total, np.concatenate([part.ravel() for part in gradient.arrays()])

    result = scipy.optimize.minimize(
        objective,
        np.zeros(int(ends[-1])),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "ftol": tol * 1e-3, "gtol": tol},
    )
    if not result.success:
        logger.warning("L-BFGS stopped after %d iterations: %s", result.nit, result.message)
    return unpack(result.x), int(result.nit), float(result.fun)


def _zeros(data: TrainingSet, n_states: int, per_edge: bool) -> ChainModel:
    return ChainModel.zeros(data.n_features, n_states, per_edge=per_edge, dtype=np.float64)
