"""Parameters of an estimator that reach into its frozen loss, and as files keep them."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from sklearn.base import BaseEstimator

from consistruct._members import Member
from consistruct.learning.encoding.costs import loss_with_rows

__all__ = ["LossParameters"]


class LossParameters(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """An estimator with a parameter `loss`, whose fields can be searched: ``loss__beta``."""

    loss: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep`, also those of the model and the fields of a loss object."""
        params: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.loss, Member):
            for field in dataclasses.fields(self.loss):  # type: ignore[arg-type]
                params[f"loss__{field.name}"] = getattr(self.loss, field.name)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``loss__beta=2`` replaces the frozen loss by one with that field."""
        changes = {key: params.pop(key) for key in list(params) if key.startswith("loss__")}
        super().set_params(**params)
        if not changes:
            return self
        fields = {key.removeprefix("loss__"): value for key, value in changes.items()}
        if not isinstance(self.loss, Member):
            raise ValueError(
                f"{next(iter(changes))} changes a field of a loss object, but loss is "
                f"{self.loss!r}; pass an object first"
            )
        known = [field.name for field in dataclasses.fields(self.loss)]  # type: ignore[arg-type]
        unknown = [field for field in fields if field not in known]
        if unknown:
            raise ValueError(
                f"{type(self.loss).__name__} has no field {unknown[0]!r}; "
                f"its fields are {', '.join(known)}"
            )
        self.loss = dataclasses.replace(self.loss, **fields)  # type: ignore[type-var]
        return self

    def stored_parameters(self) -> dict[str, Any]:
        """Parameters as a model file keeps them: a table of costs becomes a loss."""
        params: dict[str, Any] = super().get_params(deep=False)
        params["loss"] = loss_with_rows(params["loss"], params.get("rows"))
        if "rows" in params:
            params["rows"] = None  # the loss has its rows where they belong
        return params
