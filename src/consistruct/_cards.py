"""Write what a notebook shows of a loss or a metric; the losses themselves carry mathematics."""

from __future__ import annotations

import inspect
from typing import Any

from consistruct._html import card, list_of_facts, table
from consistruct._members import describe_count

__all__ = ["loss_card", "metric_card"]

LONG = 120  # characters of a title
LISTED = 8  # predictions and true labels whose costs are shown


def loss_card(loss: Any) -> str:
    """Show what a loss charges, over how many labels, and its costs where they are few."""
    low, high = loss.value_range
    facts = [("what it does", _first_line(loss)), ("values", f"{low:g} to {high:g}")]
    size, true_size = loss.n_labels, loss.true_labels.size
    if size is None:
        facts.append(("predictions", "a family: the size comes with the data"))
    else:
        facts.append(("predictions", describe_count(size)))
        if true_size != size:
            shown = "not listed" if true_size is None else describe_count(true_size)
            facts.append(("true labels", shown))
    parts = [list_of_facts(facts)]
    if size is not None and true_size is not None and max(size, true_size) <= LISTED:
        parts.append(_costs(loss))
    return card(_title(loss), *parts)


def metric_card(metric: Any) -> str:
    """Show what a metric measures, and of how many classes."""
    low, high = metric.value_range
    facts = [
        ("what it does", _first_line(metric)),
        ("values", f"{low:g} to {high:g}, greater is better"),
        (
            "kind",
            f"{metric.kind}, a function of the confusion matrix of all rows, not an average over "
            "them",
        ),
        ("classes", "any number" if metric.n_classes is None else str(metric.n_classes)),
    ]
    return card(_title(metric), list_of_facts(facts))


def _title(member: object) -> str:
    """Return the code that makes it, unless that is long: a matrix is shown below or not at all."""
    code = repr(member)
    return code if len(code) <= LONG else type(member).__name__


def _costs(loss: Any) -> str:
    matrix = loss.matrix()
    k, m = matrix.shape
    pred = _names(getattr(loss, "pred_names", None), k)
    true = _names(getattr(loss, "true_names", None), m)
    rows = [(name, *(f"{cost:g}" for cost in row)) for name, row in zip(pred, matrix, strict=True)]
    return table(("predicted \\ true", *true), rows)


def _names(given: object, size: int) -> list[str]:
    names = list(given) if isinstance(given, tuple | list) else []
    return [str(name) for name in names] if len(names) == size else [str(n) for n in range(size)]


def _first_line(member: object) -> str:
    return (inspect.getdoc(type(member)) or "").partition("\n")[0]
