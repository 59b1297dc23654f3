"""The distribution behind a value of H, from its certificate, in label names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from consistruct.calibration import CalibrationFunction
from consistruct.calibration.nonquadratic.closed import FormulaMethod
from consistruct.calibration.nonquadratic.pairs import PairsCertificate
from consistruct.calibration.proofs import (
    HammingCertificate,
    ListedCertificate,
    MixedCertificate,
    OracleCertificate,
    PolyhedralCertificate,
)
from consistruct.calibration.proofs.base import probabilities
from consistruct.calibration.proofs.bregman import BregmanCertificate
from consistruct.calibration.proofs.chain import ChainCertificate
from consistruct.calibration.proofs.divergence import DivergenceCertificate
from consistruct.calibration.proofs.restricted import RestrictedCertificate
from consistruct.calibration.proofs.sets import SetCertificate
from consistruct.calibration.proofs.ties import TiesCertificate
from consistruct.exceptions import ConsistructError
from consistruct.losses import ZeroOne
from consistruct.protocols import FloatArray, LabelArray
from consistruct.report.calibration.model import LawEntry, ReportPoint, WorstCase
from consistruct.report.formats import label_text, shown_label

__all__ = ["find_worst_case"]

N_SHOWN = 12  # truths that a report lists; the rest is one number
NEGLIGIBLE = 1e-9  # probabilities that are rounding of a solver

# certificates whose pair and law are numbers of listed labels
LISTED = (
    ListedCertificate,
    RestrictedCertificate,
    PolyhedralCertificate,
    DivergenceCertificate,
    BregmanCertificate,
    TiesCertificate,
)

# truths as text, and as labels where they are listed one by one
Truths = tuple[Sequence[str], LabelArray | None, FloatArray]


def find_worst_case(curve: CalibrationFunction, point: ReportPoint) -> WorstCase | str:
    """The distribution at ``point.eps``, or in one line why there is none."""
    if point.log_upper == math.inf:
        return "only a lower bound on H is known here, and no distribution that attains it"
    try:
        pair, truths, note = _law(curve, point)
    except ConsistructError as error:
        return str(error)
    names, listed, law = truths
    order = np.argsort(-law, kind="stable")
    kept = [int(n) for n in order[:N_SHOWN] if law[n] > NEGLIGIBLE]
    expected = [None, None] if listed is None else [_expected(curve, p, listed, law) for p in pair]
    shown = [shown_label(curve.loss.predictions, prediction) for prediction in pair]
    return WorstCase(
        eps=point.eps,
        better=shown[0],
        predicted=shown[1],
        law=tuple(LawEntry(names[n], float(law[n])) for n in kept),
        rest=max(float(law.sum() - law[kept].sum()), 0.0),
        expected_better=expected[0],
        expected_predicted=expected[1],
        log_surrogate_gap=point.log_upper,
        note=note,
    )


def _law(curve: CalibrationFunction, point: ReportPoint) -> tuple[tuple[Any, Any], Truths, str]:
    """(better, predicted), the truths with their probabilities, and where they come from."""
    loss, eps = curve.loss, point.eps
    level = curve.consistency_level
    if curve.surrogate != "quadratic" and eps <= level:
        witness = curve.witness
        assert witness.pair is not None
        assert witness.law is not None
        labels = tuple(loss.predictions.unindex(np.array(witness.pair)).tolist())
        return (labels[0], labels[1]), _listed(curve, witness.law), "witness of the level"
    if isinstance(curve._method, FormulaMethod) and isinstance(loss, ZeroOne):
        # two labels carry the law, the others have probability zero: the proof of the formula
        law = np.array([(1 + eps) / 2, (1 - eps) / 2])
        names = [label_text(shown_label(loss.truths, label)) for label in (0, 1)]
        return (0, 1), (names, np.array([0, 1]), law), "proof of the closed form"
    found = curve.certificate(eps)
    note = f"certificate at ε = {eps:g}; other distributions may be just as bad"
    if isinstance(found, LISTED):
        pair = loss.predictions.unindex(np.array(found.pair)).tolist()
        return (pair[0], pair[1]), _listed(curve, np.array(probabilities(found.law))), note
    if isinstance(found, PairsCertificate):
        pair = loss.predictions.unindex(np.array(found.pair)).tolist()
        return (pair[0], pair[1]), _listed(curve, found.law), note
    if isinstance(found, OracleCertificate):
        # column generation may hold a truth twice
        truths, where = np.unique(np.array(found.truths), axis=0, return_inverse=True)
        law = np.zeros(len(truths))
        np.add.at(law, where.ravel(), probabilities(found.law))
        names = [label_text(shown_label(loss.truths, label)) for label in truths.tolist()]
        return found.pair, (names, truths, law), note
    if isinstance(found, ChainCertificate):
        truths = np.array([truth for truth, _ in found.law])
        law = np.array([share for _, share in found.law])
        names = [label_text(shown_label(loss.truths, label)) for label in truths.tolist()]
        return found.pair, (names, truths, law), note
    if isinstance(found, SetCertificate):
        names = [_counts_name(counts, found.groups) for counts, _ in found.cells]
        return found.pair, (names, None, np.array([p for _, p in found.cells])), note
    if isinstance(found, HammingCertificate):
        names = [label_text(shown_label(loss.truths, label)) for label in found.pair]
        return found.pair, (names, np.array(found.pair), np.array(found.law)), note
    if not isinstance(found, MixedCertificate):
        raise ConsistructError(
            f"a {type(found).__name__} does not say under which distribution of the truth it holds"
        )
    return found.pair, (_cell_names(curve, found), None, np.array(found.probabilities)), note


def _listed(curve: CalibrationFunction, law: FloatArray) -> Truths:
    truths = curve.loss.truths.enumerate()
    names = [label_text(shown_label(curve.loss.truths, label)) for label in truths.tolist()]
    return names, truths, law


def _expected(
    curve: CalibrationFunction, prediction: Any, truths: LabelArray, law: FloatArray
) -> float:
    repeated = np.array([prediction] * len(law))
    return float(curve.loss(repeated, truths) @ law)


def _cell_names(curve: CalibrationFunction, found: MixedCertificate) -> list[str]:
    """Cells of labels that the pair cannot tell apart, in words."""
    i, j = (label_text(shown_label(curve.loss.truths, label)) for label in found.pair)
    inside = "" if len(found.sizes) == 1 else f"in the block of {i} and {j}"
    names = []
    for name, size in found.cells:
        words = {
            "i": i,
            "j": j,
            "their block": _others(size, inside),
            "block of i": _others(size, f"in the block of {i}"),
            "block of j": _others(size, f"in the block of {j}"),
            # block scores: the first label of a block is the only one that can be predicted
            "block of i, first label": f"{i} (first of its block)",
            "block of j, first label": f"{j} (first of its block)",
            "block of i, other labels": _others(size, f"in the block of {i}"),
            "block of j, other labels": _others(size, f"in the block of {j}"),
        }
        names.append(words.get(name) or f"{_others(size, 'in')} {name}")
    return names


def _counts_name(counts: Sequence[int], groups: Sequence[int]) -> str:
    """A set by how many members it takes from where."""
    places = ("of both answers", "of the better answer only", "of the winning answer only", "else")
    parts = [
        f"{count} of {size} {place}"
        for count, size, place in zip(counts, groups, places, strict=True)
        if size
    ]
    return "a set with " + ", ".join(parts)


def _others(size: int, where: str) -> str:
    number = str(size) if size < 10**6 else f"about 10^{len(str(size)) - 1}"
    return f"{number} other label{'s' if size > 1 else ''} {where}".rstrip()
