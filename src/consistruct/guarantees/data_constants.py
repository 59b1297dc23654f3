"""What data say about the constants: features, true labels and fitted weights as a few numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_number
from consistruct.guarantees.constants import DataConstants, squared_target_norms
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Structure

__all__ = ["optimum_norm", "read_data_constants"]


def read_data_constants(
    loss: Loss,
    space: Structure,
    *,
    features: ArrayLike | None,
    true: ArrayLike | None,
    optimum_norm: float | None,
    gradient_second_moment: float | None,
) -> DataConstants:
    """Check what was given and reduce features (n, d) and true labels to a few numbers."""
    if optimum_norm is not None:
        optimum_norm = check_number(optimum_norm, "optimum_norm", low=0.0)
    if gradient_second_moment is not None:
        gradient_second_moment = check_number(
            gradient_second_moment, "gradient_second_moment", low=0.0
        )
    if features is None:
        if true is not None:
            raise ValueError("true was given without features; pass features=(n, d) as well")
        return DataConstants(None, optimum_norm, gradient_second_moment)
    phi = _check_matrix(features, "features")
    square = (phi**2).sum(axis=1)
    if not square.any():
        raise ValueError("features must not all be zero: their largest norm is the radius R")
    sample = None
    if true is not None:
        norms = squared_target_norms(loss, space, true)
        if len(norms) != len(phi):
            raise ValueError(
                f"features and true must have the same length, got {len(phi)} and {len(norms)}"
            )
        weighted = phi * np.sqrt(square / len(phi))[:, None]
        curvature = float(np.linalg.svd(weighted, compute_uv=False)[0])
        sample = (curvature, math.sqrt(float(np.mean(norms * square))))
    return DataConstants(math.sqrt(square.max()), optimum_norm, gradient_second_moment, sample)


def optimum_norm(space: Structure, weights: ArrayLike) -> float:
    """‖W‖_HS in the orthonormal centered basis of the scores: D of a fitted model.

    Parameters
    ----------
    space : ScoreSpace
        The scores that were learned.
    weights : (d, width) array
        θ = φ(x) @ weights, a constant feature included in φ if there is an intercept.

    Examples
    --------
    >>> from consistruct.structures import Full
    >>> float(optimum_norm(Full(2), [[3.0, 1.0]]))   # constants count for nothing: ±1 is left
    1.0
    """
    W = _check_matrix(weights, "weights")
    if W.shape[1] != space.width:
        raise ValueError(
            f"weights must have one column per score parameter, {space.width}, got {W.shape[1]}"
        )
    square = float((W * space.gram().apply(W)).sum())
    if space.contains_constant:
        square -= float(((W @ space.mean_embedding()) ** 2).sum())
    return math.sqrt(max(square, 0.0))


def _check_matrix(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be a non-empty matrix of finite numbers, got shape {array.shape}"
        )
    return array
