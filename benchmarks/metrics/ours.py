"""What is inside a fitted estimator of ours: in words, and the features of its ridge regression."""

from __future__ import annotations

from typing import Any

from consistruct.learning.models.ridge.model import Ridge

__all__ = ["described", "ridge_features"]


def described(estimator: Any) -> str:
    """The models behind the decisions, with their weights."""
    if hasattr(estimator, "portfolio_"):
        used = [entry for entry in estimator.portfolio_ if entry["weight"] > 0]
        return ", ".join(f"{entry['weight']:.2f} {entry['name']}" for entry in used)
    return type(estimator.model_).__name__


def ridge_features(estimator: Any, X: Any, y: Any) -> Any:
    """The feature map that peers on the same features get: that of the ridge regression in it.

    Where ridge regression has no part in the decisions, it is fitted for the peers alone.
    """
    members = getattr(estimator.model_, "members_", [estimator.model_])
    for member in members:
        inner = getattr(member, "model_", member)
        if isinstance(inner, Ridge) and inner is member:
            return inner.feature_map_
    alone = type(estimator)(estimator.loss, Ridge(), random_state=0).fit(X, y)
    return alone.model_.feature_map_
