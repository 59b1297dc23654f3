"""Whether what a user requests of `RiskControl` makes sense, and which policy "auto" stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consistruct._validation import check_number
from consistruct.exceptions import RiskLevelError
from consistruct.guarantees.risk.policies import POLICIES, default_policy
from consistruct.guarantees.risk.policies.base import Options
from consistruct.learning.estimator import TargetEstimator
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray

__all__ = ["check_losses", "check_settings", "check_weights", "choose_policy", "per_row"]

LABEL_SETS = ("grow", "shrink", "threshold")  # policies that may guarantee another loss


def check_settings(control: Any) -> None:
    """Raise one line on the first parameter that is wrong by itself or beside another."""
    if control.risk not in ("marginal", "selective"):
        raise ValueError(f"risk must be 'marginal' or 'selective', got {control.risk!r}")
    if control.policy != "auto" and control.policy not in POLICIES:
        listed = ", ".join(POLICIES)
        raise ValueError(f"policy must be 'auto' or one of {listed}, got {control.policy!r}")
    if control.confidence is not None:
        check_number(control.confidence, "confidence", low=0.0, high=1.0, open_low=True)
        if control.confidence >= 1.0:
            raise ValueError("confidence must be below 1: no finite number of rows gives certainty")
    level = control.level
    for value in level.values() if isinstance(level, Mapping) else [level]:
        check_number(value, "level", low=0.0, open_low=True)
    if (control.policy == "defer") != (control.defer_cost is not None):
        raise ValueError(
            "policy='defer' needs defer_cost=, the cost of handing a row over"
            if control.policy == "defer"
            else "defer_cost= needs policy='defer'"
        )
    if control.defer_to is not None and control.policy != "defer":
        raise ValueError("defer_to= needs policy='defer'")
    if control.defer_cost is not None:
        check_number(control.defer_cost, "defer_cost", low=0.0)
    if control.loss is not None and not isinstance(control.loss, Loss):
        raise TypeError(f"loss must be a consistruct loss, got {type(control.loss).__name__}")


def choose_policy(control: Any, estimator: TargetEstimator, options: Options) -> str:
    """The policy that is named, or that the loss suggests; where that fails, abstaining."""
    name = default_policy(options.loss) if control.policy == "auto" else control.policy
    refusal = POLICIES[name].refusal(estimator, options)
    if control.policy == "auto" and refusal is not None and name != "abstain":
        other = POLICIES["abstain"].refusal(estimator, options)
        refusal = None if other is None else f"{refusal}; nor does 'abstain': {other}"
        name = "abstain" if other is None else name
    if refusal is not None:
        raise ValueError(f"policy {name!r} does not work for {options.loss!r} here: {refusal}")
    if control.loss is not None and name not in LABEL_SETS:
        raise ValueError(
            f"loss= guarantees another loss for sets of labels (policies {', '.join(LABEL_SETS)}); "
            f"for classes change the loss of the estimator with set_loss"
        )
    if control.risk == "selective" and not POLICIES[name].silent:
        raise ValueError(
            f"risk='selective' needs rows without an answer, but policy {name!r} always answers: "
            "use policy='abstain' or 'defer', or risk='marginal'"
        )
    return str(name)


def check_losses(losses: FloatArray, bounds: tuple[float, float]) -> None:
    """Raise where calibration rows have losses that the guarantee does not reckon with."""
    low, high = bounds
    least, most = float(losses.min()), float(losses.max())
    slack = 1e-9 * max(abs(low), abs(high))
    if least < low - slack or most > high + slack:
        raise RiskLevelError(
            f"losses must be in [{low:g}, {high:g}] for a guarantee, got {least:g} to {most:g}; "
            "set max_loss= to the largest possible loss"
        )


def check_weights(weights: Any) -> FloatArray | None:
    """Weights as numbers, none of them negative, not all of them 0."""
    if weights is None:
        return None
    found = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
        raise ValueError("weights must be finite and not negative, some of them positive")
    return found


def per_row(values: Any, rows: Any, name: str, n: int) -> Any:
    """One value per example, in the order of the calibration rows."""
    if values is None:
        return None
    found = np.asarray(values)
    if found.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one per example, got {found.shape}")
    return found if rows is None else found[rows]
