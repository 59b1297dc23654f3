"""What is tried: features, and weights that depend on the level of the costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from consistruct.learning.models.costs.weighted_ridge import fit_weighted
from consistruct.learning.models.features.approximations import NystroemFeatures
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    Kernel,
    LinearFeatures,
    Scaling,
    distances,
    median_bandwidth,
)
from consistruct.protocols import FloatArray, IntArray

__all__ = ["FIRST_KERNEL", "Trial", "cost_level", "level_weight", "search_kernels"]

LEAST_LEVEL = 0.05  # of the median level: weights stay within reason
SELECTION_POWER = 2.0  # squared errors of rows count in units of their level
SEARCH_ROWS = 192, 512  # on which kernels are compared: a fifth of all, within these
# name, bandwidth in median distances (for "poly": scale of the inputs), degree
KERNELS: tuple[tuple[str, float, int], ...] = (
    ("rbf", 0.7, 3),
    ("rbf", 1.4, 3),
    ("rbf", 2.8, 3),
    ("laplace", 2.0, 3),
    ("poly", 1.0, 2),
    ("poly", 1.0, 3),
    ("poly", 1.0, 6),
)
FIRST_KERNEL = ("rbf", 2.0, 3)
LOG_KERNELS = (("rbf", 1.4, 3), ("rbf", 2.8, 3), ("poly", 1.0, 2), ("poly", 1.0, 3))


@dataclass(eq=False)
class Trial:
    """One way to estimate the costs, and how well it does on rows left out."""

    name: str
    power: float
    squares: float = np.nan  # weighted out-of-fold squares
    regret: float = np.nan  # mean out-of-fold regret, where it is a finalist
    costs: FloatArray | None = None  # (compared rows,), of what would be decided
    alpha: float = np.nan
    calls: int = 0
    seconds: float = 0.0
    shape: tuple[str, float, int] | None = None  # of its kernel


def cost_level(estimates: FloatArray) -> FloatArray:
    """m̂(x): mean size of the estimated costs of each row, (n,), bounded away from zero."""
    level = np.abs(estimates).mean(axis=1)
    middle = float(np.median(level))
    return np.maximum(level, LEAST_LEVEL * middle) if middle > 0 else np.ones(len(level))


def level_weight(level: FloatArray, power: float) -> FloatArray:
    """1/m̂(x)^power, with mean one; a function of x alone keeps least squares consistent."""
    if power == 0:
        return np.ones(len(level))
    weight = level ** (-float(power))
    return np.asarray(weight / weight.mean())


def make_kernel(shape: tuple[str, float, int], median: dict[str, float]) -> Kernel:
    """The kernel of a (name, relative bandwidth, degree)."""
    name, factor, degree = shape
    return Kernel(name, factor * median[name], degree)  # type: ignore[arg-type]


def medians(inputs: FloatArray) -> dict[str, float]:
    """The unit of each kernel's bandwidth, from some (scaled) rows."""
    return {name: median_bandwidth(inputs, name) for name in ("rbf", "laplace", "poly")}


def search_kernels(
    inputs: FloatArray,  # (n, p), scaled
    targets: FloatArray,  # (n, d) or a sketch of them
    weight: FloatArray,
    criterion: FloatArray,
    sample: IntArray,
    median: dict[str, float],
    kernels: Sequence[tuple[str, float, int]] = KERNELS,
) -> list[tuple[str, float, int]]:
    """The best radial and the best polynomial kernel on some rows, the better one first."""
    rows = inputs[sample]
    known: dict[str, FloatArray] = {}
    best: dict[bool, tuple[float, tuple[str, float, int]]] = {}
    for shape in kernels:
        name = shape[0]
        if name not in known:
            known[name] = distances(name, rows, rows)
        kernel = make_kernel(shape, median).from_distances(known[name].copy())
        error = _kernel_squares(kernel, targets[sample], weight[sample], criterion[sample])
        polynomial = name == "poly"
        if polynomial not in best or error < best[polynomial][0]:
            best[polynomial] = error, shape
    return [shape for _, shape in sorted(best.values())]


def _kernel_squares(
    kernel: FloatArray, targets: FloatArray, weight: FloatArray, criterion: FloatArray
) -> float:
    """Weighted out-of-fold squares of exact kernel ridge at its best penalty."""
    # any root will do as features; a trace of the diagonal makes the cheapest one exist
    kernel[np.diag_indices_from(kernel)] += 1e-9 * float(np.trace(kernel)) / len(kernel)
    try:
        root = np.asarray(np.linalg.cholesky(kernel), dtype=np.float64)
    except np.linalg.LinAlgError:  # indefinite by rounding
        values, vectors = np.linalg.eigh(kernel)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    return fit_weighted(root, targets, weight, criterion).squares


def feature_map(
    shape: tuple[str, float, int] | None,
    X: FloatArray,
    scaling: Scaling,
    landmarks: IntArray,
    median: dict[str, float],
) -> FeatureMap:
    """Inputs as they are for None, else a kernel through its landmarks."""
    if shape is None:
        return LinearFeatures(X.shape[1], scaling)
    return NystroemFeatures(make_kernel(shape, median), X[landmarks], scaling)


def shape_name(shape: tuple[str, float, int] | None) -> str:
    """As reports call it.

    >>> shape_name(None), shape_name(("rbf", 2.0, 3)), shape_name(("poly", 1.0, 6))
    ('linear', 'kernel rbf 2', 'kernel poly 6')
    """
    if shape is None:
        return "linear"
    return f"kernel {shape[0]} {shape[2] if shape[0] == 'poly' else format(shape[1], 'g')}"
