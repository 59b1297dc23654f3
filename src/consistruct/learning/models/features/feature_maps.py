"""Feature maps φ: the only code that knows what an input x is; and what estimators say of them.

A fitted map holds arrays, numbers, strings and kernels only, so that it can be written to a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from consistruct._validation import check_count, is_sparse, refuse_idle, to_dense
from consistruct.learning.encoding.magnitudes import column_units
from consistruct.learning.models.features.kernels import KERNELS, Kernel, symmetric_eigen
from consistruct.protocols import FloatArray

__all__ = [
    "DEFAULT_COMPONENTS",
    "FEATURES",
    "FeatureMap",
    "FeatureOptions",
    "KernelCentres",
    "KernelFeatures",
    "LinearFeatures",
    "NystroemFeatures",
    "RandomFeatures",
    "Scaling",
    "TransformerFeatures",
    "refuse_idle_features",
    "transformer_features",
]

FEATURES = ("auto", "linear", "rbf", "laplace", "poly", "nystroem", "random")
WIDE = 4096  # more columns than this count as very wide: they are rich enough for linear scores
WIDE_SPARSE = 1024  # sparse inputs with fewer columns are narrow enough for kernels
DEFAULT_COMPONENTS = 3072
DENSE_LANDMARK_LIMIT = 2**27  # entries; landmarks of sparse inputs are kept as an array
# Smallest eigenvalue of K_mm, of the largest, down to which sums of kernel values are whitened
# instead of rows: rounding ε of the sums grows by its inverse, the sums fall with it.
MIXED_AFTERWARDS = {"float64": 1e-6, "float32": 1e-4}


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
        """What moments are taken of, (n, n_sums); in float32 if asked for and `single` allows it.

        Sums of float64 are the same in any order to 1e-8 and better, those of float32 are not.
        """
        return self.transform(X)

    def single(self, dtype: Any) -> bool:
        """Whether `summed` of such inputs is float32, whose products have digits enough."""
        return False


class LinearFeatures(FeatureMap):
    """φ(x) = x, or standardised x: for sparse, very wide, or already rich inputs."""

    def __init__(self, n_features: int, scaling: Scaling | None = None) -> None:
        self.n_outputs = check_count(n_features, "n_features")
        self.scaling = scaling or Scaling()

    def transform(self, X: Any) -> Any:
        return self.scaling(X)


class KernelFeatures(FeatureMap):
    """φ(x) = (k(x, z_1), …, k(x, z_n)) over all training inputs z: exact kernel methods, small n.

    Weights on these features are expansion coefficients; solvers that penalise them use the RKHS
    norm.
    """

    def __init__(self, kernel: Kernel, support: Any, scaling: Scaling | None = None) -> None:
        self.kernel = kernel
        self.scaling = scaling or Scaling()
        self.support = dense_rows(self.scaling(support))  # (n, d), already scaled
        self.n_outputs = len(self.support)

    def transform(self, X: Any) -> FloatArray:
        return self.kernel(self.scaling(X), self.support)


class KernelCentres(FeatureMap):
    """φ(x) = k(x, landmarks), not whitened: for solvers that penalise by the kernel of these."""

    def __init__(self, kernel: Kernel, landmarks: Any, scaling: Scaling | None = None) -> None:
        self.kernel = kernel
        self.scaling = scaling or Scaling()
        self.landmarks = dense_rows(self.scaling(landmarks))  # (m, d), already scaled
        self.n_outputs = len(self.landmarks)

    def transform(self, X: Any) -> FloatArray:
        return self.kernel(self.scaling(X), self.landmarks)


class NystroemFeatures(FeatureMap):
    """φ(x) = K_mm^{−1/2} k(x, landmarks): the kernel restricted to the span of m landmarks."""

    def __init__(self, kernel: Kernel, landmarks: Any, scaling: Scaling | None = None) -> None:
        self.kernel = kernel
        self.scaling = scaling or Scaling()
        self.landmarks = dense_rows(self.scaling(landmarks))  # (m, d), already scaled
        values, vectors = symmetric_eigen(kernel(self.landmarks, self.landmarks))
        # directions below rounding carry noise only; near-duplicate landmarks make them
        kept = values > len(values) * float(np.finfo(np.float64).eps) * max(values[-1], 1e-300)
        self.whitening = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
        self.n_outputs = int(kept.sum())
        self.condition = float(values[kept][0] / values[-1])  # of K_mm, at most 1

    def transform(self, X: Any) -> FloatArray:
        return self.kernel(self.scaling(X), self.landmarks) @ self.whitening

    # Whitening each row costs twice as much as its products: a well conditioned K_mm can wait.

    @property
    def mixing(self) -> FloatArray | None:
        return self.whitening if self.condition >= MIXED_AFTERWARDS["float64"] else None

    @property
    def n_sums(self) -> int:
        return self.n_outputs if self.mixing is None else len(self.landmarks)

    def summed(self, X: Any, *, single: bool = False) -> Any:
        if self.mixing is None:
            return self.transform(X)
        if not single or not self.single(X.dtype) or is_sparse(X):
            return self.kernel(self.scaling(X), self.landmarks)
        scaling = self.scaling
        if scaling.scale is not None:
            scale = scaling.scale.astype(np.float32)
            X = (X if scaling.shift is None else X - scaling.shift.astype(np.float32)) / scale
        return self.kernel.single(X, self.landmarks)

    def single(self, dtype: Any) -> bool:
        rbf = self.kernel.name == "rbf"
        return dtype == np.float32 and rbf and self.condition >= MIXED_AFTERWARDS["float32"]


class RandomFeatures(FeatureMap):
    """φ(x) = √(2/m) cos(ωᵀx + b): random Fourier features of the RBF or Laplace kernel.

    ω is normal with variance 1/h² for RBF and Cauchy with scale 1/h for Laplace (‖·‖₁).
    """

    def __init__(
        self,
        kernel: Kernel,
        n_features: int,
        n_components: int,
        rng: np.random.Generator,
        scaling: Scaling | None = None,
        dtype: Any = np.float64,
    ) -> None:
        if kernel.name not in ("rbf", "laplace"):
            raise ValueError(
                f"random features exist only for the kernels 'rbf' and 'laplace', got "
                f"{kernel.name!r}; use features='nystroem' for it"
            )
        self.kernel = kernel
        self.scaling = scaling or Scaling()
        self.n_outputs = check_count(n_components, "n_components")
        shape = (n_features, self.n_outputs)
        drawn = rng.normal(size=shape) if kernel.name == "rbf" else rng.standard_cauchy(size=shape)
        self.frequencies = (drawn / kernel.bandwidth).astype(dtype)
        self.phases = rng.uniform(0.0, 2.0 * np.pi, size=self.n_outputs).astype(dtype)

    def transform(self, X: Any) -> FloatArray:
        # in the precision of the frequencies: single for the many tokens of sequences
        angles = np.asarray(self.scaling(X) @ self.frequencies, dtype=self.frequencies.dtype)
        angles += self.phases
        np.cos(angles, out=angles)
        angles *= np.sqrt(2.0 / self.n_outputs)
        return angles


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


# --- what an estimator says about features ---


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
        """The inputs themselves, standardised only if that was asked for."""
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


def refuse_idle_features(model: BaseEstimator) -> None:
    """Refuse settings of kernels where there is none; the model has those of `FeatureOptions`."""
    name = model.features if isinstance(model.features, str) else "transformer"
    chosen = name in ("auto", "nystroem", "random")
    poly = name == "poly" or (chosen and model.kernel == "poly")
    approximated = "features 'auto', 'nystroem' or 'random'"
    refuse_idle(model, approximated, chosen, ("kernel", "n_components"))
    refuse_idle(model, "a kernel", chosen or name in KERNELS, ("bandwidth",))
    refuse_idle(model, "the polynomial kernel", poly, ("degree", "coef0"))
    refuse_idle(model, "built-in features", name != "transformer", ("standardize",))
