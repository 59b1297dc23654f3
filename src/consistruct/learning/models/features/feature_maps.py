"""Feature maps φ, the only code that knows what an input x is, and the kernels behind them.

A fitted map holds arrays, numbers, strings and kernels only, so that it can be written to a file;
a score map puts weights on its features. Maps on some landmarks or random frequencies are in
`approximations.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone

from consistruct._members import Member
from consistruct._threads import at_most
from consistruct._validation import (
    check_count,
    check_number,
    check_unused_params,
    is_sparse,
    to_dense,
)
from consistruct.learning.encoding.kinds import column_units
from consistruct.protocols import FloatArray

__all__ = [
    "DEFAULT_COMPONENTS",
    "FEATURES",
    "KERNELS",
    "FeatureMap",
    "FeatureOptions",
    "Kernel",
    "KernelFeatures",
    "KernelName",
    "LinearFeatures",
    "Scaling",
    "ScoreMap",
    "TransformerFeatures",
    "check_unused_feature_params",
    "dense_rows",
    "distances",
    "median_bandwidth",
    "squared_norms",
    "symmetric_eigen",
    "transformer_features",
]

KernelName = Literal["rbf", "laplace", "poly"]
KERNELS: tuple[str, ...] = ("rbf", "laplace", "poly")
FEATURES = ("auto", "linear", "rbf", "laplace", "poly", "nystroem", "random")
WIDE = 4096  # more columns than this count as very wide: they are rich enough for linear scores
WIDE_SPARSE = 1024  # sparse inputs with fewer columns are narrow enough for kernels
DEFAULT_COMPONENTS = 3072
DENSE_LANDMARK_LIMIT = 2**27  # entries; landmarks of sparse inputs are kept as an array
SINGLE_THREAD_SIZES = range(128, 2049)  # of matrices that one thread decomposes
CHUNK_BYTES = 32 * 2**20  # features that are made at a time


# --- kernels ---


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(Member):
    """A positive definite function of two inputs, with a bandwidth h in the units of the inputs.

    ``rbf``: exp(−‖x−z‖²/2h²). ``laplace``: exp(−‖x−z‖₁/h). ``poly``: (⟨x,z⟩/h² + coef0)^degree.

    Examples
    --------
    >>> import numpy as np
    >>> Kernel("rbf", 1.0)(np.array([[0.0], [1.0]]), np.array([[0.0]])).round(4).ravel()
    array([1.    , 0.6065])
    """

    name: KernelName = "rbf"
    bandwidth: float = 1.0
    degree: int = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {self.name!r}")
        self._set(
            bandwidth=check_number(self.bandwidth, "bandwidth", low=0.0, open_low=True),
            degree=check_count(self.degree, "degree"),
            coef0=check_number(self.coef0, "coef0", low=0.0),
        )

    def __call__(self, X: Any, Z: FloatArray) -> FloatArray:
        """(n, d) array or CSR and (m, d) array -> (n, m)."""
        return self.from_distances(distances(self.name, X, Z))

    def single(self, X: NDArray[np.float32], Z: FloatArray) -> NDArray[np.float32]:
        """RBF in float32, (n, m): one product, whose last column brings −‖z‖²/2h², and one pass."""
        scale = 1.0 / self.bandwidth**2
        last = -0.5 * scale * squared_norms(Z)
        right = np.column_stack([scale * Z, last]).astype(np.float32)
        values = np.column_stack([X, np.ones(len(X), np.float32)]) @ right.T
        values += (-0.5 * scale * squared_norms(X)).astype(np.float32)[:, None]
        return np.exp(values, out=values)

    def from_distances(self, values: FloatArray) -> FloatArray:
        """The kernel from what `distances` gives, in place."""
        if self.name == "poly":
            values /= self.bandwidth**2
            values += self.coef0
            values **= self.degree
            return values
        values /= -self.bandwidth if self.name == "laplace" else -2.0 * self.bandwidth**2
        return np.asarray(np.exp(values, out=values))

    def diagonal(self, X: Any) -> FloatArray:
        """k(x, x) of each row, (n,)."""
        if self.name == "poly":
            return np.asarray((squared_norms(X) / self.bandwidth**2 + self.coef0) ** self.degree)
        return np.ones(X.shape[0])


def distances(name: str, X: Any, Z: FloatArray) -> FloatArray:
    """What a kernel is a function of, (n, m): ‖x−z‖² for RBF, ‖x−z‖₁ for Laplace, else ⟨x,z⟩."""
    if name == "laplace":
        return np.asarray(cdist(to_dense(X), Z, "cityblock"))
    values = np.asarray(X @ Z.T, dtype=np.float64)
    if name == "poly":
        return values
    # ‖x−z‖² = ‖x‖² + ‖z‖² − 2⟨x,z⟩, one product and passes in place
    values *= -2.0
    values += squared_norms(X)[:, None]
    values += squared_norms(Z)
    return np.maximum(values, 0.0, out=values)


def squared_norms(X: Any) -> FloatArray:
    """‖x‖² of each row of an array or CSR, in float64."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("nd,nd->n", X, X, dtype=np.float64))


def median_bandwidth(X: FloatArray, name: str) -> float:
    """Median distance between the given distinct rows; 1 if there are no two different ones.

    For ``poly`` it is the root mean square norm, so that ⟨x,z⟩/h² is of order one.
    """
    if name == "poly":
        return float(np.sqrt(squared_norms(X).mean())) or 1.0
    upper = np.triu_indices(len(X), 1)
    if name == "laplace":
        distances = cdist(X, X, "cityblock")[upper]
    else:
        norms = squared_norms(X)
        distances = np.sqrt(np.maximum(norms[:, None] + norms - 2.0 * X @ X.T, 0.0))[upper]
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0


def symmetric_eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, ascending, and eigenvectors; `matrix` is overwritten.

    Half of the work is bound by memory and split into thousands of short parallel pieces. At
    moderate sizes threads gain little, and on a busy machine waiting for each other costs them a
    multiple of the work itself.
    """
    with at_most(1 if len(matrix) in SINGLE_THREAD_SIZES else None):
        values, vectors = scipy.linalg.eigh(matrix, driver="evd", overwrite_a=True)
    return values, vectors


# --- maps ---


class Scaling:
    """x -> (x − shift)/scale, the identity if nothing was given; sparse inputs learn no shift."""

    def __init__(self, shift: FloatArray | None = None, scale: FloatArray | None = None) -> None:
        self.shift = shift
        self.scale = scale

    @classmethod
    def standard(cls, X: Any, weight: FloatArray) -> Scaling:
        """Weighted mean and standard deviation of each column; constant columns keep scale 1.

        Columns whose squares no float holds are divided by a power of two first. What is constant
        is relative to the mean: the units of a column do not matter.
        """
        units = column_units(X)
        if units is not None:
            part = cls(None, units)(X)
            found = cls.standard(part, weight)
            shift = None if found.shift is None else found.shift * units
            return cls(shift, units if found.scale is None else found.scale * units)
        share = weight / weight.sum()
        mean = np.asarray(X.T @ share, dtype=np.float64)
        squares = X.multiply(X) if is_sparse(X) else np.square(X, dtype=np.float64)
        variance = np.asarray(squares.T @ share, dtype=np.float64) - mean**2
        if not is_sparse(X):  # two passes: the difference above cancels for large means
            variance = np.asarray(share @ np.square(X - mean), dtype=np.float64)
        scale = np.sqrt(np.maximum(variance, 0.0))
        scale[scale <= 1e-10 * np.abs(mean)] = 1.0
        return cls(None if is_sparse(X) else mean, scale)

    def __call__(self, X: Any) -> Any:
        if self.scale is None:
            return X
        if self.shift is None:  # learned from sparse inputs: zeros stay zeros
            return sp.csr_array(X.multiply(1.0 / self.scale)) if is_sparse(X) else X / self.scale
        # learned from dense inputs: a shift makes sparse ones dense
        return (dense_rows(X) - self.shift) / self.scale


class FeatureMap(ABC):
    """Required: `n_outputs` and `transform`."""

    n_outputs: int
    # features are the inputs, at most scaled: sparse rows stay sparse, float32 stays float32
    keeps_inputs: ClassVar[bool] = False
    # features are kernel values of all examples: weights on them are coefficients of an expansion
    expands: ClassVar[bool] = False

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """Inputs (n, d) -> features (n, n_outputs), array or CSR."""

    # --- for sums over rows: features = summed(X) @ mixing, mixed once instead of for each row ---

    @property
    def mixing(self) -> FloatArray | None:
        """(n_sums, n_outputs), None for the identity."""
        return None

    @property
    def n_sums(self) -> int:
        """Columns of `summed`."""
        return self.n_outputs

    def summed(self, X: Any, *, single: bool = False) -> Any:
        """What moments are taken of, (n, n_sums); in float32 if requested and `single` allows it.

        Sums of float64 are the same in any order to 1e-8 and better, those of float32 are not.
        """
        return self.transform(X)

    def single(self, dtype: Any) -> bool:
        """Whether `summed` of such inputs is float32, whose products have digits enough."""
        return False


class LinearFeatures(FeatureMap):
    """φ(x) = x, or standardized x: for sparse, very wide, or already rich inputs."""

    keeps_inputs = True

    def __init__(self, n_features: int, scaling: Scaling | None = None) -> None:
        self.n_outputs = check_count(n_features, "n_features")
        self.scaling = scaling or Scaling()

    def transform(self, X: Any) -> Any:
        return self.scaling(X)


class KernelFeatures(FeatureMap):
    """φ(x) = (k(x, z_1), …, k(x, z_n)) over all training inputs z: exact kernel methods, small n.

    Weights on these features are expansion coefficients; solvers that penalize them use the RKHS
    norm.
    """

    expands = True

    def __init__(self, kernel: Kernel, support: Any, scaling: Scaling | None = None) -> None:
        self.kernel = kernel
        self.scaling = scaling or Scaling()
        self.support = dense_rows(self.scaling(support))  # (n, d), already scaled
        self.n_outputs = len(self.support)

    def transform(self, X: Any) -> FloatArray:
        return self.kernel(self.scaling(X), self.support)


class TransformerFeatures(FeatureMap):
    """φ(x) = transformer.transform(x) for a fitted scikit-learn transformer."""

    def __init__(self, transformer: Any, n_outputs: int) -> None:
        self.transformer = transformer
        self.n_outputs = n_outputs

    def transform(self, X: Any) -> Any:
        features: Any = self.transformer.transform(X)
        if is_sparse(features):
            return sp.csr_array(features)
        return np.asarray(features, dtype=np.float64)


def dense_rows(X: Any) -> FloatArray:
    """Rows that a kernel is evaluated against, as float64; refuses to fill memory."""
    if X.shape[0] * X.shape[1] > DENSE_LANDMARK_LIMIT:
        raise ValueError(
            f"kernel features would store {X.shape[0]} rows of {X.shape[1]} columns as an array; "
            "use features='linear' for wide data, or lower n_components"
        )
    rows = to_dense(X)
    return np.array(rows, dtype=np.float64, order="C")


class ScoreMap:
    """θ = W φ(x) + b: the linear map from weights on the features of a feature map to scores.

    Weights have shape (n_weights, width): one row per feature and, with an intercept, a last one
    for the constant feature 1.

    Parameters
    ----------
    features : FeatureMap
    fit_intercept : bool
        Whether to add the constant feature; it is never penalized.
    """

    def __init__(self, features: FeatureMap, *, fit_intercept: bool = True) -> None:
        self.features = features
        self.fit_intercept = fit_intercept

    @property
    def n_weights(self) -> int:
        return self.features.n_outputs + int(self.fit_intercept)

    def apply(self, weights: FloatArray, inputs: Any) -> FloatArray:
        """-> θ, (n, width), in chunks of inputs."""
        theta = np.empty((inputs.shape[0], weights.shape[1]))
        coef, intercept = self.split(weights)
        for part in self.chunks(inputs):
            theta[part] = self.features.transform(inputs[part]) @ coef
        theta += intercept
        return theta

    def adjoint(self, grad_theta: FloatArray, inputs: Any) -> FloatArray:
        """Σ_i φ(x_i) g_iᵀ, of the shape of the weights."""
        total = np.zeros((self.n_weights, grad_theta.shape[1]))
        size = self.features.n_outputs
        for part in self.chunks(inputs):
            total[:size] += self.features.transform(inputs[part]).T @ grad_theta[part]
        if self.fit_intercept:
            total[size] = grad_theta.sum(axis=0)
        return total

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of the features (m, width) and the intercept (width,)."""
        if self.fit_intercept:
            return weights[:-1], weights[-1]
        return weights, np.zeros(weights.shape[1])

    def chunks(self, inputs: Any, itemsize: int = 8) -> Iterator[slice]:
        """Slices of inputs whose features, of `itemsize` bytes each, take about `CHUNK_BYTES`.

        Sparse inputs stay sparse under linear features: what counts are their entries.
        """
        width = float(self.features.n_outputs)
        if is_sparse(inputs) and self.features.keeps_inputs:
            width = min(width, 2.0 * inputs.nnz / max(inputs.shape[0], 1))
        rows = max(1, int(CHUNK_BYTES / (itemsize * max(1.0, width))))
        for start in range(0, inputs.shape[0], rows):
            yield slice(start, min(start + rows, inputs.shape[0]))


# --- what an estimator states about features ---


@dataclass(frozen=True)
class FeatureOptions:
    """The estimator's arguments about features, unchecked."""

    features: Any = "auto"
    kernel: str = "auto"
    bandwidth: Any = "auto"
    degree: int = 3
    coef0: float = 1.0
    n_components: int | None = None
    standardize: Any = "auto"
    fit_intercept: bool = True
    n_jobs: int | None = None

    def name(self, X: Any) -> str:
        """`features` where it is a name: "auto" is "linear" for very wide inputs."""
        self._check_names()
        if self.features != "auto":
            return str(self.features)
        return "linear" if X.shape[1] > (WIDE_SPARSE if is_sparse(X) else WIDE) else "nystroem"

    def linear(self, X: Any, weight: FloatArray) -> LinearFeatures:
        """The inputs themselves, standardized only if that was requested."""
        scaled = self.standardize != "auto" and bool(self.standardize)
        return LinearFeatures(X.shape[1], Scaling.standard(X, weight) if scaled else None)

    def _check_names(self) -> None:
        """Raise if `features` (a name) or `standardize` is none of the allowed values."""
        if self.features not in FEATURES:
            raise ValueError(
                f"features must be one of {', '.join(FEATURES)} or a scikit-learn transformer, "
                f"got {self.features!r}"
            )
        if self.standardize not in ("auto", True, False):
            raise ValueError(f"standardize must be 'auto', True or False, got {self.standardize!r}")

    def kernels(self, features: str, X: Any) -> tuple[str, ...]:
        """Names of the kernels to choose from; `features` may be one itself.

        Smooth functions (RBF) or rough ones (Laplace, a product over the columns): neither is
        better in general, and rows left out tell. Laplace would make sparse inputs dense, and a
        bandwidth that is given as a number is one of RBF: the distances are not the same.
        """
        if features in KERNELS:
            return (features,)
        if self.kernel == "auto":
            both = isinstance(self.bandwidth, str) and not is_sparse(X)
            return ("rbf", "laplace") if both else ("rbf",)
        if self.kernel not in KERNELS:
            raise ValueError(
                f"kernel must be one of auto, {', '.join(KERNELS)}, got {self.kernel!r}"
            )
        return (self.kernel,)

    def components(self) -> int:
        """Number of landmarks or random features."""
        if self.n_components is None:
            return DEFAULT_COMPONENTS
        return check_count(self.n_components, "n_components")


def transformer_features(transformer: Any, X: Any, y: Any = None) -> FeatureMap:
    """Features that a transformer of one's own makes, fitted on a clone of it."""
    if not hasattr(transformer, "fit") or not hasattr(transformer, "transform"):
        raise TypeError(
            f"features must be one of {', '.join(FEATURES)} or a scikit-learn transformer, "
            f"got {type(transformer).__name__}"
        )
    fitted = clone(transformer).fit(X, y)
    return TransformerFeatures(fitted, fitted.transform(X[:1]).shape[1])


def check_unused_feature_params(model: BaseEstimator) -> None:
    """Refuse settings of kernels where there is none; the model has those of `FeatureOptions`."""
    name = model.features if isinstance(model.features, str) else "transformer"
    chosen = name in ("auto", "nystroem", "random")
    poly = name == "poly" or (chosen and model.kernel == "poly")
    approximated = "features 'auto', 'nystroem' or 'random'"
    check_unused_params(model, approximated, chosen, ("kernel", "n_components"))
    check_unused_params(model, "a kernel", chosen or name in KERNELS, ("bandwidth",))
    check_unused_params(model, "the polynomial kernel", poly, ("degree", "coef0"))
    check_unused_params(model, "built-in features", name != "transformer", ("standardize",))
