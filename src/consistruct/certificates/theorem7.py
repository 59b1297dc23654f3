"""Check claims over labels that are never listed: few true labels, the best label found exactly.

Four kinds share this proof: orders by item, orders by pair, label sets by size, states of a chain.
Their losses are a constant of the true label plus ⟨F_c, u_y⟩ with the scores F of their own. For a
distribution q of true labels write Uq for the expected target, and E for the mean over the labels c
under the reference measure.

* Upper end: θ with ⟨F_j, θ⟩ the largest of all labels predicts j, and ⟨F_j − F_i, Uq⟩ ≥ ε makes i
  better by ε. Such a point is feasible, so H(ε) ≤ ½ E ⟨F_c, θ + Uq⟩².
* Lower end: H(ε) ≥ ε² / 2D (Theorem 7; the loss is linear in the scores), D the largest squared
  distance of two F_c in the metric in which θ has the squared length E ⟨F_c, θ⟩².

What differs is how the best label is found without listing all of them (sorting, assignment,
Viterbi, the best set of each size), and the closed forms of D and of the mean square.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from consistruct.certificates.exact import Refused, distribution, dot, ends, vector

__all__ = ["ScoredLabels", "expected_target", "verify_by_theorem7"]


class ScoredLabels(Protocol):
    """The scores of labels that are never listed, as the proof needs them."""

    width: int

    def features(self, label: Any) -> list[Fraction]:
        """Return F_c of a label."""

    def target(self, true_label: Any) -> list[Fraction]:
        """Return u_y of a true label."""

    def largest(self, theta: list[Fraction]) -> Fraction:
        """Return max_c ⟨F_c, θ⟩ over all labels."""

    def mean_square(self, theta: list[Fraction]) -> Fraction:
        """Return E ⟨F_c, θ⟩² under the reference measure."""

    def diameter(self, eps: Fraction) -> Fraction:
        """Return D, at least; labels that cannot differ by ε may be left out."""


def expected_target(
    space: ScoredLabels, true_labels: Sequence[Any], weights: Any
) -> list[Fraction]:
    """Return Uq, (width,), of weights that are divided by their sum."""
    total = [Fraction(0)] * space.width
    for true_label, share in zip(true_labels, distribution(weights, len(true_labels))):
        for column, u in enumerate(space.target(true_label)):
            if share and u:
                total[column] += share * u
    return total


def verify_by_theorem7(document: dict[str, Any], space: ScoredLabels) -> None:
    """Raise Refused unless the point of the document and Theorem 7 prove its claim."""
    eps, lower, upper = ends(document)
    bound = eps**2 / (2 * space.diameter(eps))
    if lower > bound:
        raise Refused(f"Theorem 7 gives {float(bound)!r} only")
    i, j = (space.features(label) for label in document["pair"])
    u = expected_target(space, document["true_labels"], document["distribution"])
    if dot(j, u) - dot(i, u) < eps:
        raise Refused("j is not worse than i by eps under this distribution")
    theta = vector(document["theta"], space.width, "theta")
    if dot(j, theta) < space.largest(theta):
        raise Refused("j does not win under the scores")
    value = space.mean_square([a + b for a, b in zip(theta, u)]) / 2
    if value > upper:
        raise Refused(f"the point has the value {float(value)!r}, above the upper end")
