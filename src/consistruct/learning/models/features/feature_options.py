"""What an estimator says about features, and which of its values are allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from consistruct._sparse import is_sparse
from consistruct._validation import check_count
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    LinearFeatures,
    Scaling,
    TransformerFeatures,
)
from consistruct.learning.models.features.kernels import KERNELS
from consistruct.protocols import FloatArray

__all__ = [
    "DEFAULT_COMPONENTS",
    "FEATURES",
    "FeatureOptions",
    "transformer_features",
]

FEATURES = ("auto", "linear", "rbf", "laplace", "poly", "nystroem", "random")
WIDE = 4096  # more columns than this count as very wide: they are rich enough for linear scores
WIDE_SPARSE = 1024  # sparse inputs with fewer columns are narrow enough for kernels
DEFAULT_COMPONENTS = 3072


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
