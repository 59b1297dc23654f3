"""What a notebook shows of a fitted estimator: its loss, what was chosen, out-of-fold loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._html import card, list_of_facts, table

__all__ = ["estimator_card"]


def estimator_card(estimator: Any) -> str:
    """The card of a fitted estimator; scikit-learn's diagram stands below it."""
    facts = [("loss", _loss(estimator))]
    portfolio = getattr(estimator, "portfolio_", None)
    facts += _chosen(portfolio) if portfolio else [("model", _model(estimator))]
    left = _out_of_fold(estimator)
    if left is not None:
        facts.append(left)
    parts = [list_of_facts(facts)]
    if portfolio:
        parts.append(_tried(portfolio))
    return card(f"{type(estimator).__name__}, fitted", *parts)


def _loss(estimator: Any) -> str:
    if not hasattr(estimator, "metric_"):
        return repr(estimator.loss_)
    return f"{estimator.metric_!r}, by decisions chosen on out-of-fold rows"


def _chosen(portfolio: list[dict[str, Any]]) -> list[tuple[str, str]]:
    used = [entry for entry in portfolio if entry["weight"] > 0]
    names = " + ".join(f"{entry['weight']:.2g} · {entry['name']}" for entry in used)
    if len(used) == 1:
        names = str(used[0]["name"])
    compared = [entry for entry in portfolio if entry["criterion"] is not None]
    if len(compared) < 2:
        return [("model", names)]
    why = (
        f"best of {len(compared)} on out-of-fold rows, judged by estimates and decisions together"
        if len(used) == 1
        else f"their average did better on out-of-fold rows than any of the {len(compared)} models"
    )
    return [("model", names), ("why", why)]


def _model(estimator: Any) -> str:
    model = estimator.model_
    name = type(model).__name__
    inner = getattr(model, "estimator", None)
    if inner is not None:
        name = f"{name}({type(inner).__name__})"
    alpha = getattr(model, "alpha_", None)
    return name if alpha is None else f"{name}, penalty α = {float(alpha):.3g}"


def _out_of_fold(estimator: Any) -> tuple[str, str] | None:
    """The loss on rows that the model had not seen, where that is known."""
    if hasattr(estimator, "metric_estimate_"):
        return "on out-of-fold rows", f"{estimator.metric_estimate_:.4g}"
    entries = getattr(estimator, "portfolio_", [])
    known = [e["task_loss"] for e in entries if e["weight"] > 0 and e["task_loss"] is not None]
    if known:
        return "out-of-fold loss", f"{min(known):.4g}, of the best single model used"
    path, alpha = getattr(estimator, "path_", {}), getattr(estimator.model_, "alpha_", None)
    if alpha is None or "task_loss" not in path or "alphas" not in path:
        return None
    best = int(np.argmin(np.abs(np.asarray(path["alphas"]) - float(alpha))))
    error = f" ± {path['task_error'][best]:.2g}" if "task_error" in path else ""
    return "out-of-fold loss", f"{path['task_loss'][best]:.4g}{error}, one row left out at a time"


def _tried(portfolio: list[dict[str, Any]]) -> str:
    rows = [
        (
            entry["name"],
            f"{entry['weight']:.2g}",
            "" if entry["task_loss"] is None else f"{entry['task_loss']:.4g}",
            f"{entry['seconds']:.1f}",
            entry["status"],
        )
        for entry in portfolio
    ]
    return table(("tried", "weight", "out-of-fold loss", "seconds", ""), rows)
