"""Bases of the scores in which the descent runs: the paper's, and the orthonormal centred one.

Score parameters transform as θ' = θA and back as θ = θ'B for rows θ, with Fθ = F'θ' for all labels
(up to a constant if centred). The descent commutes with rotations of θ', so every basis is
turned until its Gram matrix is diagonal; a step then costs O(m·rank).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consistruct.protocols import FloatArray
from consistruct.scores.base import BaseScoreSpace

__all__ = ["Coordinates", "orthonormal_coordinates", "paper_coordinates"]

ZERO = 1e-12  # eigenvalues below this share of the largest


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A basis with Gram matrix diag(spectrum)."""

    forward: FloatArray  # A, (width, rank)
    back: FloatArray  # B, (rank, width)
    spectrum: FloatArray  # (rank,)


def paper_coordinates(space: BaseScoreSpace) -> Coordinates:
    """[½, bits] for binary parts, as in the paper; otherwise the basis of the score space."""
    basis = np.eye(space.width)
    if space.separate_states == 2:
        T = space.rank - 1
        basis = np.zeros((2 * T, T + 1))
        basis[:2, 0] = 0.5  # ½ = ½(first bit is 0) + ½(first bit is 1)
        basis[np.arange(T) * 2 + 1, np.arange(T) + 1] = 1.0
    return _rotated(space, basis)


def orthonormal_coordinates(space: BaseScoreSpace) -> Coordinates:
    """Gram matrix I, and no component along the constant where the scores contain it."""
    found = _rotated(space, np.eye(space.width))
    root = np.sqrt(found.spectrum)
    forward, back = found.forward * root, found.back / root[:, None]
    if space.contains_constant:
        # the constant is F'c with c = E F', a unit vector
        constant = back @ space.mean_embedding()
        forward = forward - np.outer(forward @ constant, constant)
    return Coordinates(forward, back, np.ones(len(root)))


def _rotated(space: BaseScoreSpace, basis: FloatArray) -> Coordinates:
    """F' = F·basis·V with VᵀG'V diagonal, over non-zero eigenvalues."""
    gram = space.gram().dense()
    within = basis.T @ gram @ basis
    if np.count_nonzero(within - np.diag(np.diag(within))):
        values, vectors = np.linalg.eigh(within)
    else:
        values, vectors = np.diag(within).copy(), np.eye(len(within))
    kept = values > ZERO * values.max()
    turned = basis @ vectors[:, kept]
    # θ' is the least-squares solution of F'θ' = Fθ under the measure
    return Coordinates(gram @ turned / values[kept], turned.T.copy(), values[kept])
