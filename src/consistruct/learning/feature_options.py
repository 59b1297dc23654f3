"""What an estimator says about features, and which of its values are allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from consistruct._validation import check_count
from consistruct.learning.feature_maps import FeatureMap, TransformerFeatures

__all__ = [
    "DEFAULT_COMPONENTS",
    "FEATURES",
    "WIDE",
    "FeatureOptions",
    "transformer_features",
]

FEATURES = ("auto", "linear", "rbf", "laplace", "poly", "nystroem", "random")
WIDE = 4096  # more columns than this count as very wide: they are rich enough for linear scores
DEFAULT_COMPONENTS = 3072


@dataclass(frozen=True)
class FeatureOptions:
    """The estimator's arguments about features, unchecked."""

    features: Any = "auto"
    kernel: str = "rbf"
    bandwidth: Any = "auto"
    degree: int = 3
    coef0: float = 1.0
    n_components: int | None = None
    standardize: Any = "auto"
    fit_intercept: bool = True
    n_jobs: int | None = None

    def check_names(self) -> None:
        """Raise if `features` (a name) or `standardize` is none of the allowed values."""
        if self.features not in FEATURES:
            raise ValueError(
                f"features must be one of {', '.join(FEATURES)} or a scikit-learn transformer, "
                f"got {self.features!r}"
            )
        if self.standardize not in ("auto", True, False):
            raise ValueError(f"standardize must be 'auto', True or False, got {self.standardize!r}")

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
