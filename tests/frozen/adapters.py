"""Request the frozen values from the library; the files `adapters*.py` alone know its names.

This one holds certificates, calibration functions and the list of all cases.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import consistruct as cs
from consistruct import losses, structures
from consistruct.calibration import LabelOrderWarning
from consistruct.calibration.proofs.files import KINDS
from consistruct.guarantees.risk.policies import POLICIES
from consistruct.learning.models import MODELS
from consistruct.losses.metrics.registry import METRICS
from consistruct.losses.registry import LOSSES
from tests.frozen.adapters_learning import (
    CHOSEN,
    CLOSED_FITS,
    CLOSED_STREAMS,
    ITERATED_FITS,
    ITERATED_STREAMS,
    LEARNED,
    SET_LATER,
    TREE_FITS,
    chosen,
    learned,
)
from tests.frozen.adapters_reports import CLOSED_REPORTS, ITERATED_REPORTS, SAFER
from tests.frozen.values import TOLERANCES, plain

__all__ = ["PARTS", "Case", "compute", "registered"]


@dataclass(frozen=True)
class Case:
    """What computes the values, and which of `TOLERANCES` holds for its floats."""

    compute: Callable[[], dict[str, Any]]
    tolerance: str = "closed"


def compute(part: str, name: str) -> Any:
    """Return the values of a case as they are recorded."""
    with warnings.catch_warnings():
        for kind in (LabelOrderWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", kind)
        case = PARTS[part][name]
        return plain(case.compute(), TOLERANCES[case.tolerance])


# --- calibration functions and certificates ---

_RNG = np.random.default_rng(0)
F = np.column_stack([np.ones(5), _RNG.standard_normal((5, 3))])
COSTS = losses.CostMatrix(_RNG.random((5, 4)), rows="pred")
THREE = losses.CostMatrix([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 5.0, 0.0]], rows="pred")


def _curve(*problem: Any, **settings: Any) -> Callable[[], Any]:
    return lambda: cs.calibration_function(*problem, **settings)


# one of each kind of certificate, named after the kind, then others of the same kind
CERTIFIED: dict[str, Callable[[], Any]] = {
    "listed": _curve(COSTS, structures.Dense(F)),
    "listed, free scores": _curve(COSTS, "full"),
    "mixed": _curve(losses.Mixed((2, 3, 4), 0.2), structures.Blocks((2, 3, 4))),
    "mixed, free scores": _curve(losses.Mixed((2, 3, 4), 0.2), "full"),
    "hamming": _curve(losses.Hamming(6), "full"),
    "hamming, separable": _curve(losses.Hamming(50, 3)),
    "orders": _curve(losses.NDCG(8, n_grades=3)),
    "orders, matching": _curve(losses.Matching(6)),
    "pairs": _curve(losses.Kendall(6)),
    "states": _curve(losses.Hamming(5, 3), structures.Chain(5, 3)),
    "sizes": _curve(losses.FBeta(8, sizes=(1, 2))),
    "chain": _curve(losses.Hamming(9), structures.Chain(9, 2)),
    "sets": _curve(losses.FBeta(4, 2.0)),
    "restricted": _curve(COSTS, structures.Dense(F), distributions="noise:0.25"),
    "restricted, margin": _curve(COSTS, "full", distributions="margin:0.3"),
    "polyhedral": _curve(THREE, surrogate="hinge"),
    "polyhedral, max-min": _curve(losses.Ordinal(6), surrogate="max-min-margin"),
    "divergence": _curve(THREE, surrogate="log"),
    "divergence, sparsemax": _curve(THREE, surrogate="sparsemax", decoding="bayes"),
    "bregman": _curve(losses.CostMatrix([[0, 2], [1, 0]], rows="pred"), surrogate="logistic"),
    "ties": _curve(THREE, surrogate="linear-regret"),
}
SHARE = 0.8  # of the largest regret: where a certificate claims; above every consistency level


def _certificate(kind: str, make: Callable[[], Any]) -> dict[str, Any]:
    """The claim: lower ≤ H(eps) ≤ upper, eps exactly, for a pair of labels."""
    curve = make()
    certificate = curve.certificate(SHARE * curve.max_eps)
    assert certificate.kind == kind
    certificate.check()
    scale = Fraction(certificate.scale)
    return {
        "eps": float(Fraction(certificate.eps)),
        "interval": [
            float(Fraction(end) * scale) for end in (certificate.lower, certificate.upper)
        ],
        "labels of the pair differ": certificate.pair[0] != certificate.pair[1],
    }


# of the largest regret: where calibration functions are read; none of them is at a jump
SHARES = (0.11, 0.37, 0.73, 1.0)


def _values(make: Callable[[], Any]) -> dict[str, Any]:
    """H from below and above at some eps, and the consistency level."""
    curve = make()
    eps = np.array(SHARES) * curve.max_eps
    points = curve.curve(eps)
    return {
        "largest regret": float(curve.max_eps),
        "consistency level": float(curve.consistency_level),
        "eps": eps,
        "log lower": [point.log_lower for point in points],
        "log upper": [point.log_upper for point in points],
        "status": [point.status for point in points],
    }


# one member of each loss family with its own scores; cost vectors are infinitely many true labels,
# for which H is refused
MEMBERS = {
    "zero-one": losses.ZeroOne(10),
    "block": losses.Block((3, 5)),
    "mixed": losses.Mixed((2, 3), 0.1),
    "hamming": losses.Hamming(5, 3),
    "label-costs": losses.LabelCosts([1.0, 4.0, 0.5], [1.0, 0.5, 2.0]),
    "ordinal": losses.Ordinal(5, 2.0),
    "abstain": losses.Abstain(4, 0.3),
    "cost": THREE,
    "decision": losses.Decision(cs.structures.GridPath(2, 3)),
    "fbeta": losses.FBeta(3),
    "precision-at": losses.PrecisionAt(4, 2),
    "ndcg": losses.NDCG(3, n_grades=3),
    "eru": losses.ExpectedRankUtility(4),
    "pairwise": losses.PairwiseDisagreement(3),
    "map": losses.MeanAveragePrecision(3),
    "kendall": losses.Kendall(3),
    "footrule": losses.SpearmanFootrule(3),
    "spearman-rho": losses.SpearmanRho(3),
    "matching": losses.Matching(3),
    "part-errors": losses.PartErrors(cs.structures.DependencyTrees(3)),
    "partial-labels": losses.PartialLabels(losses.ZeroOne(4), "average"),
    "tree": losses.Tree((-1, 0, 0, 1, 1, 2)),
}

PARTS: dict[str, dict[str, Case]] = {
    "certificates": {
        name: Case(
            lambda name=name, make=make: _certificate(name.partition(",")[0], make), "certificate"
        )  # type: ignore[misc]
        for name, make in CERTIFIED.items()
    },
    "calibration": {
        **{
            f"loss {name}": Case(lambda loss=loss: _values(_curve(loss)))  # type: ignore[misc]
            for name, loss in MEMBERS.items()
        },
        **{
            f"certificate {name}": Case(lambda make=make: _values(make))  # type: ignore[misc]
            for name, make in CERTIFIED.items()
        },
    },
    "models": {
        **{name: Case(make) for name, make in CLOSED_FITS.items()},
        **{name: Case(make, "iterative") for name, make in ITERATED_FITS.items()},
        **{name: Case(make, "trees") for name, make in TREE_FITS.items()},
    },
    "losses": {name: Case(lambda name=name: learned(name)) for name in LEARNED},  # type: ignore[misc]
    "loss-changes": {name: Case(make, "iterative") for name, make in SET_LATER.items()},
    "metrics": {
        name: Case(lambda name=name: chosen(name), "iterative")  # type: ignore[misc]
        for name in CHOSEN
    },
    "streams": {
        **{name: Case(make) for name, make in CLOSED_STREAMS.items()},
        **{name: Case(make, "iterative") for name, make in ITERATED_STREAMS.items()},
    },
    "risk": {name: Case(make) for name, make in SAFER.items()},
    "reports": {
        **{name: Case(make) for name, make in CLOSED_REPORTS.items()},
        **{name: Case(make, "iterative") for name, make in ITERATED_REPORTS.items()},
    },
}


def registered() -> dict[str, tuple[set[str], set[str]]]:
    """Return what the registries of the library name and what is recorded, by part."""
    return {
        "certificates": (set(KINDS), _kinds(CERTIFIED)),
        # cost vectors are infinitely many true labels, for which H is refused
        "calibration": (set(LOSSES) - {"cost-vectors"}, _kinds(MEMBERS)),
        "models": (set(MODELS) | {"auto"}, _kinds(PARTS["models"])),
        "losses": (set(LOSSES) | {"combination"}, _kinds(LEARNED)),
        "metrics": (set(METRICS), _kinds(CHOSEN)),
        "risk": (set(POLICIES), _kinds(SAFER)),
    }


def _kinds(names: Iterable[str]) -> set[str]:
    return {name.partition(",")[0] for name in names}
