"""Models of the expected target: the setting `model` of both estimators, each imported on use.

>>> from consistruct.models import Ridge
>>> Ridge("linear", alpha=0.1)
Ridge(alpha=0.1, features='linear')
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from consistruct.learning.models import OutOfFold, TargetModel

if _TYPE_CHECKING:
    from consistruct.learning.models import (
        Boosting,
        Chain,
        Costs,
        Items,
        Linear,
        Prepared,
        Probabilities,
        Regressor,
        Ridge,
        Stack,
        Torch,
    )
else:  # type checkers know the names above, and find misspelled ones
    from consistruct.learning.models import __getattr__  # noqa: F401

__all__ = [
    "Boosting",
    "Chain",
    "Costs",
    "Items",
    "Linear",
    "OutOfFold",
    "Prepared",
    "Probabilities",
    "Regressor",
    "Ridge",
    "Stack",
    "TargetModel",
    "Torch",
]


def __dir__() -> list[str]:
    return sorted(__all__)
