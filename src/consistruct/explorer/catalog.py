"""What the page offers to choose from: the registered losses with their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from consistruct import __version__
from consistruct.charts.plotly_figures import PLOTLY_CONFIG, THEME_COLORS
from consistruct.explorer.files import FILES, TITLES
from consistruct.explorer.limits import Limits
from consistruct.losses.registry import LOSSES
from consistruct.surrogates import SURROGATES

__all__ = ["OFFERS", "Field", "Offer", "catalog"]


@dataclass(frozen=True)
class Field:
    """A parameter of a loss: how it is called on the page, and what it starts with."""

    label: str
    default: str
    kind: Literal["integer", "number", "sizes"] = "integer"


@dataclass(frozen=True)
class Offer:
    """A loss that the page offers to choose.

    Attributes
    ----------
    spec : str
        The spec with ``{}`` for each field, such as ``hamming:{}x{}``.
    """

    title: str
    spec: str
    fields: tuple[Field, ...]

    @property
    def default(self) -> str:
        """Return the spec that the page starts with: it is analyzed in a moment."""
        return self.spec.format(*(field.default for field in self.fields))


# by the name in the registry. Not offered are losses whose files would have to be read (cost,
# tree) and those whose true labels are not finite (cost-vectors, decision)
OFFERS: dict[str, Offer] = {
    "zero-one": Offer("0-1: right or wrong", "zero-one:{}", (Field("classes", "10"),)),
    "block": Offer(
        "Block: wrong group of classes", "block:{}", (Field("group sizes", "4x25", "sizes"),)
    ),
    "mixed": Offer(
        "Mixed: a wrong group is worse than a wrong class",
        "mixed:{}:{}",
        (Field("group sizes", "4x5", "sizes"), Field("share η of the 0-1 loss", "0.4", "number")),
    ),
    "hamming": Offer(
        "Hamming: share of wrong parts",
        "hamming:{}x{}",
        (Field("parts", "10"), Field("states per part", "2")),
    ),
    "label-costs": Offer(
        "Label costs: a missed label costs more than a false one",
        "label-costs:{}:{}",
        (Field("labels", "10"), Field("cost of a missed label", "2", "number")),
    ),
    "ordinal": Offer(
        "Ordinal: distance between levels",
        "ordinal:{}:{}",
        (Field("levels", "5"), Field("power", "1", "number")),
    ),
    "abstain": Offer(
        "Abstain: an answer “don't know”",
        "abstain:{}:{}",
        (Field("classes", "5"), Field("cost of abstaining", "0.3", "number")),
    ),
    "fbeta": Offer(
        "F-beta on label sets", "fbeta:{}:{}", (Field("labels", "4"), Field("beta", "1", "number"))
    ),
    "precision-at": Offer(
        "Precision at q", "precision-at:{}:{}", (Field("items", "4"), Field("q", "2"))
    ),
    "ndcg": Offer(
        "NDCG: gain of a ranking", "ndcg:{}:{}", (Field("items", "4"), Field("cut-off", "4"))
    ),
    "eru": Offer("Expected rank utility", "eru:{}", (Field("items", "4"),)),
    "pairwise": Offer("Pairwise disagreement", "pairwise:{}", (Field("items", "4"),)),
    "map": Offer("Mean average precision", "map:{}", (Field("items", "3"),)),
    "kendall": Offer("Kendall: swapped pairs", "kendall:{}", (Field("items", "3"),)),
    "footrule": Offer("Spearman's footrule", "footrule:{}", (Field("items", "3"),)),
    "spearman-rho": Offer("Spearman's rho", "spearman-rho:{}", (Field("items", "3"),)),
    "matching": Offer("Matching: wrong partners", "matching:{}", (Field("pairs", "3"),)),
    "part-errors": Offer(
        "Parse: words with a wrong head", "part-errors:trees:{}", (Field("words", "3"),)
    ),
    "partial-labels": Offer(
        "Partial labels: a set of candidates",
        "partial-labels:infimum:zero-one:{}",
        (Field("classes", "4"),),
    ),
}

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
            if entry.analyzed
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
