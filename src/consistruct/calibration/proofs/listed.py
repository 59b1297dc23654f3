"""Certificates over listed labels, any loss matrix, any scores, any measure."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from consistruct._plain_data import form
from consistruct.calibration.proofs.base import Exact, MatrixCertificate
from consistruct.calibration.proofs.comparing import different_scores
from consistruct.calibration.proofs.filters import FloatView, is_safe
from consistruct.certificates.exact import dot, number
from consistruct.certificates.listed import Problem
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = ["ListedCertificate"]

FILTER_FROM = 10  # labels: below, integers are as fast

Points = dict[tuple[int, int], list[tuple[dict[int, Exact], Exact]]]  # {(i, j): [(w, ν)]}


def _write_points(points: Points) -> list[dict[str, Any]]:
    return [{"pair": pair, "w": w, "nu": nu} for pair, duals in points.items() for w, nu in duals]


def _read_points(entries: list[dict[str, Any]]) -> Points:
    points: Points = {}
    for entry in entries:
        i, j = entry["pair"]
        w = {int(c): x for c, x in entry["w"].items()}
        points.setdefault((i, j), []).append((w, entry["nu"]))
    return points


@dataclass(frozen=True, eq=False)
class ListedCertificate(MatrixCertificate):
    """lower ≤ H(ε) ≤ upper for a loss matrix with the scores, all of it plain data.

    Attributes
    ----------
    loss, scores, measure : rows; rows or None (one score per label); weights or None (uniform)
    pair : (i, j), j is predicted though i is better by ε
    distribution : the distribution of the true label under which that happens at the least cost
    level : with full scores, the score of j; others have minus their expected loss if it is less
    theta : with other scores, their parameters
    points : {(i, j): [(w, ν)]} dual points of the pairs that w = e_i, ν = 1 does not decide
    wins : {label: θ} for i and j: parameters under which they are predicted
    excluded : {label: {label: share}} labels that lose every tie, as mixtures of others
    """

    kind = "listed"

    loss: list[list[Exact]]
    scores: list[list[Exact]] | None
    measure: list[Exact] | None
    eps: Exact
    lower: Exact
    upper: Exact
    pair: tuple[int, int]
    distribution: list[Exact]
    level: Exact | None
    theta: list[Exact] | None
    points: Annotated[Points, form(_write_points, _read_points)]
    wins: dict[int, list[Exact]]
    excluded: dict[int, dict[int, Exact]]

    @property
    def expected(self) -> list[Fraction]:
        """Expected loss of every label under the distribution."""
        distribution = [number(x) for x in self.distribution]
        total = sum(distribution, Fraction(0))
        return [dot(map(number, row), distribution) / total for row in self.loss]

    @property
    def label_scores(self) -> list[float]:
        """The score of every label."""
        if self.scores is None:
            level = number(self.level)
            found = [min(-x, level) for x in self.expected]
            found[self.pair[1]] = level
            return [float(x) for x in found]
        theta = [number(x) for x in self.theta or []]
        return [float(dot(map(number, row), theta)) for row in self.scores]

    @property
    def faster(self) -> dict[str, Any]:
        return {"screen": screen_of(len(self.loss))}

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        return different_scores(self.scores, self.measure, loss, space)


def screen_of(k: int) -> Any:
    """Return what decides most pairs of k labels in floats; None where integers are as fast."""
    return None if k < FILTER_FROM else _filtered


def _filtered(
    problem: Problem,
    eps: Fraction,
    lower: Fraction,
    points: dict[tuple[int, int], list[tuple[dict[int, Fraction], Fraction]]],
    rows: list[int],
) -> set[tuple[int, int]]:
    return FloatView(problem).proved(eps, lower, points, rows) if is_safe(problem) else set()
