"""What the page offers to choose from: the registered losses with their parameters."""

from __future__ import annotations

from typing import Any

from consistruct import __version__
from consistruct.charts.plotly_figures import PLOTLY_CONFIG, THEME_COLORS
from consistruct.explorer.files import FILES, TITLES
from consistruct.explorer.limits import Limits
from consistruct.losses.registry import LOSSES
from consistruct.surrogates import SURROGATES

__all__ = ["OFFERS", "catalog"]

OFFERS = {name: entry.offer for name, entry in LOSSES.items() if entry.offer is not None}

# by the name in the registry; constraints on recall or groups need more than a confusion
METRIC_TITLES = {
    "f1": "F1 of the second of two classes",
    "macro-f1": "macro F1",
    "micro-f1": "micro F1",
    "weighted-f1": "F1 weighted by class",
    "f-beta": "F2 of the second of two classes",
    "jaccard": "Jaccard of the second of two classes",
    "macro-jaccard": "macro Jaccard",
    "micro-jaccard": "micro Jaccard",
    "balanced-accuracy": "balanced accuracy: mean recall",
    "g-mean": "G-mean: geometric mean of recalls",
    "min-recall": "smallest recall",
    "kappa": "Cohen's kappa",
    "qwk": "quadratic weighted kappa",
    "mcc": "Matthews correlation (MCC)",
}
METRIC_SPECS = {"f-beta": "f-beta:2"}
METRICS_NOT_OFFERED = (
    "precision-at-recall",
    "recall-at-precision",
    "coverage",
    "equal-recall",
    "randomized",
)

SCORES = (
    ("own", "own: just enough for the loss"),
    ("full", "full: one score per prediction"),
    ("separable", "separable: one score per part and state"),
    ("chain", "chain: neighboring parts together"),
    ("sortable", "sortable: one score per item"),
    ("blocks", "blocks: one score per group"),
)
DECODINGS = (
    ("argmax", "argmax: the highest score"),
    ("bayes", "Bayes: lowest expected loss"),
)


def catalog(limits: Limits) -> dict[str, Any]:
    """All choices and limits, JSON-ready."""
    return {
        "version": __version__,
        "losses": [
            {
                "name": name,
                "title": offer.title,
                "spec": offer.spec,
                "fields": [
                    {"label": field.label, "default": field.default, "kind": field.kind}
                    for field in offer.fields
                ],
            }
            for name, offer in OFFERS.items()
        ],
        "metrics": [
            {"name": METRIC_SPECS.get(name, name), "title": title}
            for name, title in METRIC_TITLES.items()
        ],
        "specs": [LOSSES[name].spec for name in OFFERS],
        "scores": [{"name": name, "title": title} for name, title in SCORES],
        "surrogates": [
            {"name": name, "title": entry.title}
            for name, entry in SURROGATES.items()
            if entry.analysable
        ],
        "decodings": [{"name": name, "title": title} for name, title in DECODINGS],
        "files": [{"name": name, "title": TITLES[name]} for name in FILES],
        "theme_colors": THEME_COLORS,
        "plotly_config": PLOTLY_CONFIG,
        "limits": {
            "upload_bytes": limits.upload_bytes,
            "labels": limits.labels,
            "shared_bytes": limits.shared_bytes,
            "seconds": limits.seconds,
        },
    }
