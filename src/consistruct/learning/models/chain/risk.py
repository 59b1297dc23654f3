"""The penalized risk of chains as a function of all weights: what L-BFGS minimizes."""

from __future__ import annotations

import numpy as np

from consistruct.learning.models.chain.chain_weights import ChainWeights
from consistruct.learning.models.chain.training_set import TrainingSet
from consistruct.learning.models.solvers.lbfgs import LBFGS
from consistruct.protocols import FloatArray
from consistruct.structures import Ragged
from consistruct.surrogates.chains import ChainSurrogate

__all__ = ["ChainRisk", "minimize"]


class ChainRisk:
    """(1/N) Σ_i w_i Φ_i + (α/2)‖(W, V)‖², N = Σ w_i, at a flat array of all weights.

    Parameters
    ----------
    surrogate : ChainSurrogate
    data : TrainingSet
    mask : ChainWeights
        0 where a score is learned, −inf where it is forbidden.
    alpha : float
    boundaries, per_edge : bool
    """

    def __init__(
        self,
        surrogate: ChainSurrogate,
        data: TrainingSet,
        mask: ChainWeights,
        *,
        alpha: float,
        boundaries: bool = True,
        per_edge: bool = False,
    ) -> None:
        self.surrogate = surrogate
        self.data = data
        self.mask = mask
        self.alpha = alpha
        self.boundaries = boundaries
        self.per_edge = per_edge
        self.shapes = [array.shape for array in self._zeros().arrays()]
        self.ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])

    def _zeros(self) -> ChainWeights:
        s = self.mask.n_states
        return ChainWeights.zeros(self.data.n_features, s, per_edge=self.per_edge, dtype=np.float64)

    def unpack(self, flat: FloatArray) -> ChainWeights:
        """The weights, with −inf where the mask has it."""
        parts = np.split(flat, self.ends[:-1])
        weights = ChainWeights(
            *(part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True))
        )
        return weights.forbid(self.mask.edges, self.mask.start, self.mask.end)

    def __call__(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient."""
        data, s = self.data, self.mask.n_states
        model, gradient = self.unpack(flat), self._zeros()
        shares = data.weights / data.weights.sum()
        total = 0.5 * self.alpha * model.square_norm
        for first, last in data.tokens.runs(model.tokens_at_once):
            begin, stop = data.tokens.offsets[first], data.tokens.offsets[last]
            offsets = data.tokens.offsets[first : last + 1] - begin
            phi = data.features(data.tokens.features[begin:stop], offsets)
            share = shares[first:last]
            result = self.surrogate.value_and_gradient(
                model.scores(phi, offsets), Ragged(data.states[begin:stop], offsets), share
            )
            total += float(share @ result.values)
            gradient.weights += phi.T @ result.unary
            gradient.bias += result.unary.sum(axis=0)
            if self.per_edge:
                gradient.edges += result.edges.sum(axis=0)
                gradient.edge_weights += phi[1:].T @ result.edges[:-1].reshape(-1, s * s)
            else:
                gradient.edges += result.edges
            if self.boundaries:
                gradient.start += result.start
                gradient.end += result.end
        gradient.weights += self.alpha * model.weights
        gradient.edge_weights += self.alpha * model.edge_weights
        return total, np.concatenate([part.ravel() for part in gradient.arrays()])


def minimize(risk: ChainRisk, solver: LBFGS) -> tuple[ChainWeights, int, float]:
    """Weights of least risk, iterations, value; the hinge has no gradient that L-BFGS could use."""
    if risk.surrogate.name == "hinge":
        raise ValueError(
            "solver='lbfgs' needs a differentiable surrogate, and the hinge is not; "
            "use solver='sgd' or surrogate='softmax_margin'"
        )
    found = solver.minimize(risk, np.zeros(int(risk.ends[-1])))
    return risk.unpack(found.point), found.n_iter, found.value
