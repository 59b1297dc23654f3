"""Quadratic forms rᵀḠr = E_c⟨F_c, r⟩² of every score space, batched and differentiable."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import torch
from torch import Tensor

from consistruct.protocols import Gram
from consistruct.structures import Structure
from consistruct.structures.matchings import MatchingGram
from consistruct.structures.operators import DenseGram, DiagonalGram, ItemGram
from consistruct.structures.pair_orders import PairOrderGram
from consistruct.structures.parts import ProductGram
from consistruct.torch.constants import Constants

__all__ = ["Diagonal", "Form", "Parts", "form_of"]


class Form(Constants):
    """Residuals (B, width) -> rᵀḠr, (B,)."""

    common: float | None = None  # the form is this times ‖r‖²

    def forward(self, residual: Tensor) -> Tensor:
        raise NotImplementedError


class Diagonal(Form):
    """Σ_j w_j r_j²: one-hot embeddings; one number where all weights are equal."""

    def __init__(self, weights: np.ndarray) -> None:
        super().__init__()
        self.common = float(weights[0]) if np.ptp(weights) == 0 else None
        if self.common is None:
            self.hold("weights", weights)

    def forward(self, residual: Tensor) -> Tensor:
        if self.common is not None:
            return self.common * residual.square().sum(-1)
        return residual.square() @ self.held("weights", residual.dtype)


class Parts(Form):
    """E f² of f = Σ_t α_t(c_t) (+ Σ_t β_t(c_t, c_{t+1})), by its uncorrelated ANOVA terms."""

    def __init__(self, n_parts: int, n_states: int, *, edges: bool) -> None:
        super().__init__()
        self.n_parts, self.n_states, self.edges = n_parts, n_states, edges

    def forward(self, residual: Tensor) -> Tensor:
        T, s = self.n_parts, self.n_states
        unary = residual[:, : T * s].unflatten(1, (T, s))
        mean = unary.mean(2)
        main = unary - mean[:, :, None]
        constant = mean.sum(1)
        if not self.edges or T == 1:
            return constant.square() + main.square().sum((1, 2)) / s
        edge = residual[:, T * s :].unflatten(1, (T - 1, s, s))
        left, right, middle = edge.mean(3), edge.mean(2), edge.mean((2, 3))
        pair = edge - left[..., None] - right[:, :, None] + middle[..., None, None]
        none = torch.zeros_like(main[:, :1])
        main = main + torch.cat([left - middle[..., None], none], 1)
        main = main + torch.cat([none, right - middle[..., None]], 1)
        constant = constant + middle.sum(1)
        spread = main.square().sum((1, 2)) / s + pair.square().sum((1, 2, 3)) / s**2
        return constant.square() + spread


class Alike(Form):
    """Scores that treat all items alike: contrasts of items, and what they have in common."""

    def __init__(self, gram: ItemGram) -> None:
        super().__init__()
        self.n_items, self.n_blocks = gram.n_items, gram.n_blocks
        self.hold("contrast", _triangle(gram.contrast))
        self.hold("common", _triangle(gram.common))

    def forward(self, residual: Tensor) -> Tensor:
        n_own = self.n_blocks * self.n_items
        blocks = residual[:, :n_own].unflatten(1, (self.n_blocks, self.n_items))
        mean = blocks.mean(2)
        deviations = self.held("contrast", residual.dtype) @ (blocks - mean[:, :, None])
        common = torch.cat([self.n_items**0.5 * mean, residual[:, n_own:]], 1)
        shared = common @ self.held("common", residual.dtype).T
        return deviations.square().sum((1, 2)) + shared.square().sum(1)


class PairSigns(Form):
    """(‖p‖² + ‖Dp‖²)/12 on pairs, D e_ij = e_i − e_j, and the square of the constant."""

    def __init__(self, n_items: int) -> None:
        super().__init__()
        first, second = np.triu_indices(n_items, 1)
        incidence = np.zeros((len(first), n_items))
        incidence[np.arange(len(first)), first] = 1.0
        incidence[np.arange(len(first)), second] = -1.0
        self.hold("incidence", incidence)

    def forward(self, residual: Tensor) -> Tensor:
        pairs = residual[:, 1:]
        items = pairs @ self.held("incidence", residual.dtype)
        return residual[:, 0].square() + (pairs.square().sum(1) + items.square().sum(1)) / 12


class Matrices(Form):
    """Permutation matrices: constant ones, and doubly centered ones divided by n − 1."""

    def __init__(self, n_items: int) -> None:
        super().__init__()
        self.n_items = n_items

    def forward(self, residual: Tensor) -> Tensor:
        n = self.n_items
        matrices = residual.unflatten(1, (n, n))
        mean = matrices.mean((1, 2), keepdim=True)
        centered = matrices - matrices.mean(2, keepdim=True) - matrices.mean(1, keepdim=True) + mean
        return n**2 * mean[:, 0, 0].square() + centered.square().sum((1, 2)) / max(n - 1, 1)


class Rooted(Form):
    """‖Ar‖² with Ḡ = AᵀA."""

    def __init__(self, root: np.ndarray) -> None:
        super().__init__()
        self.hold("root", root)

    def forward(self, residual: Tensor) -> Tensor:
        return (residual @ self.held("root", residual.dtype).T).square().sum(1)


def form_of(space: Structure) -> Form:
    """The quadratic form of a score space; structured wherever its Gram operator is."""
    return _form(space.gram())


@singledispatch
def _form(gram: Gram) -> Form:
    values, vectors = np.linalg.eigh(gram.dense())
    return Rooted(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


_form.register(ItemGram, Alike)


@_form.register(DiagonalGram)
def _(gram: DiagonalGram) -> Form:
    return Diagonal(np.asarray(gram.weights))


@_form.register(ProductGram)
def _(gram: ProductGram) -> Form:
    return Parts(gram.n_parts, gram.n_states, edges=gram.edges)


@_form.register(PairOrderGram)
def _(gram: PairOrderGram) -> Form:
    return PairSigns(gram.n_items)


@_form.register(MatchingGram)
def _(gram: MatchingGram) -> Form:
    return Matrices(gram.n_items)


@_form.register(DenseGram)
def _(gram: DenseGram) -> Form:
    root = _triangle(gram.factor)
    product = root.T @ root
    if np.abs(product - np.eye(len(product))).max() < 1e-12:  # the span of a cost matrix
        return Diagonal(np.ones(len(product)))
    return Rooted(root)


def _triangle(factor: np.ndarray) -> np.ndarray:
    """A factor of AᵀA with no more rows than columns."""
    if len(factor) <= factor.shape[1]:
        return np.asarray(factor)
    return np.asarray(np.linalg.qr(factor, mode="r"))
