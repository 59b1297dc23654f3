"""Models of the expected target, one file or folder each, all interchangeable.

A model estimates E[τ(y) | x] for a statistic τ of the truth; the estimators turn that into
decisions. `consistruct.models` is this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from consistruct.learning.models.choice import MODELS, model_class

if TYPE_CHECKING:
    from consistruct.learning.models.base import LeftOut, TargetModel
    from consistruct.learning.models.chain.model import Chain
    from consistruct.learning.models.costs.model import Costs
    from consistruct.learning.models.items.model import Items
    from consistruct.learning.models.linear import Linear
    from consistruct.learning.models.prepared import Prepared
    from consistruct.learning.models.probabilities import Probabilities
    from consistruct.learning.models.regressor import Regressor
    from consistruct.learning.models.ridge.model import Ridge
    from consistruct.learning.models.stack import Stack
    from consistruct.learning.models.torch import Torch

__all__ = [
    "Chain",
    "Costs",
    "Items",
    "LeftOut",
    "Linear",
    "Prepared",
    "Probabilities",
    "Regressor",
    "Ridge",
    "Stack",
    "TargetModel",
    "Torch",
]

_BY_CLASS = {attribute: name for name, (_, attribute) in MODELS.items()}


def __getattr__(name: str) -> Any:
    if name in _BY_CLASS:  # imported on use: no model needs the others
        return model_class(_BY_CLASS[name])
    if name in ("LeftOut", "TargetModel"):
        from consistruct.learning.models import base

        return getattr(base, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
