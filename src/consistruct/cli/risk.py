"""``--risk``: a guarantee about the loss, from rows that are kept apart when fitting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # imported inside the functions: see cli/commands/learning.py
    from consistruct.guarantees.risk import RiskControl

__all__ = [
    "Calibrate",
    "Confidence",
    "PolicyName",
    "Risk",
    "calibration_result",
    "evaluation_result",
    "is_controlled",
    "with_risk",
]

Risk = Annotated[
    float | None,
    typer.Option(
        help="Guarantee that the mean loss is at most this: some rows are set aside, and uncertain "
        "predictions are replaced by safer ones (no answer, several classes, a longer list, "
        "…)."
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        help="With --risk: one minus the probability, over the choice of the rows set aside, that "
        "predictions are given whose loss exceeds it, such as 0.9; default: it holds on average "
        "over them."
    ),
]
PolicyName = Annotated[
    str | None,
    typer.Option(
        help="With --risk: abstain, sets, ancestor, grow, shrink, threshold or list; default: what "
        "suits the loss."
    ),
]
Calibrate = Annotated[
    float | None,
    typer.Option(help="With --risk: share of the rows that are set aside; default: 0.3."),
]


def with_risk(
    estimator: Any,
    risk: float | None,
    confidence: float | None,
    policy: str | None,
    calibrate: float | None,
    seed: int,
) -> Any:
    """The estimator, with a guarantee where --risk requests one."""
    if risk is None:
        for name, value in (
            ("--confidence", confidence),
            ("--policy", policy),
            ("--calibrate", calibrate),
        ):
            if value is not None:
                raise ValueError(f"{name} needs --risk LEVEL")
        return estimator
    from consistruct.guarantees.risk import RiskControl

    return RiskControl(
        estimator,
        risk,
        confidence=confidence,
        policy=policy or "auto",
        cv=0.3 if calibrate is None else calibrate,
        random_state=seed,
    )


def is_controlled(estimator: Any) -> bool:
    """Whether an estimator comes with a guarantee, which only those of `--risk` have."""
    return hasattr(estimator, "guarantee_")


def calibration_result(estimator: RiskControl) -> dict[str, Any]:
    """What `fit` states of the rows kept apart."""
    found = estimator.calibration_.as_dict()
    return {"policy": estimator.policy_, "guarantee": found.pop("guarantee")} | {
        f"calibration_{name}": value for name, value in found.items()
    }


def evaluation_result(
    estimator: RiskControl, X: Any, y: Any, queries: dict[str, Any]
) -> dict[str, Any]:
    """What `evaluate` states: risk and coverage beside the guarantee."""
    found = estimator.evaluate(X, y, **queries).as_dict()
    count, risk, interval = (found.pop(name) for name in ("n_examples", "risk", "risk_interval"))
    return {
        "n_queries" if queries else "n_examples": count,
        "policy": estimator.policy_,
        "mean_loss": risk,
        "interval": interval,
        **found,
    }
