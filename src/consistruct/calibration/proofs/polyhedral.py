"""Certificates of the hinge and of the max-min margin."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from consistruct.calibration.proofs.base import Exact, MatrixCertificate, down, plain, up
from consistruct.certificates import polyhedral

if TYPE_CHECKING:
    from consistruct.calibration.methods.nonquadratic.polyhedral.cuts import Node, PairSearch
    from consistruct.calibration.methods.nonquadratic.polyhedral.snapping import UpperPoint

__all__ = ["PolyhedralCertificate"]


@dataclass(frozen=True, eq=False)
class PolyhedralCertificate(MatrixCertificate):
    """lower ≤ H(ε) ≤ upper for a loss matrix and argmax decoding.

    Attributes
    ----------
    surrogate, loss : "hinge" or "max-min"; rows
    pair : (i, j), j is predicted though i is better by ε
    distribution : the distribution of the true label under which that happens at the least cost
    scores : scores that predict j (max-min margin: the mixed predictions that they stand for)
    coupling : [c, y, share] that shows the least expected surrogate, rest independent; hinge only
    pairs : {"pair", "tree", "points"}: cuts of the polytope of a pair, values at its vertices
    symmetries : permutations of the labels that do not change the loss
    """

    kind = "polyhedral"

    surrogate: Literal["hinge", "max-min"]
    loss: list[list[Exact]]
    eps: Exact
    lower: Exact
    upper: Exact
    pair: tuple[int, int]
    distribution: list[Exact]
    scores: list[Exact]
    coupling: list[list[Any]]
    pairs: list[dict[str, Any]]
    symmetries: list[list[int]]

    @classmethod
    def of(
        cls,
        problem: polyhedral.Problem,
        rows: list[list[Exact]],
        eps: float,
        pair: tuple[int, int],
        top: UpperPoint,
        searches: list[PairSearch],
        symmetries: list[list[int]],
    ) -> PolyhedralCertificate:
        """From the searches of all pairs, none for a lower end of 0; ends are rounded outward."""
        unit, lower = Fraction(problem.unit), Fraction(0)
        bounds = [bound for search in searches if (bound := search.exact_bound()) is not None]
        if bounds:
            lower = max(min(bounds) / unit, lower)
        return cls(
            surrogate="hinge" if problem.hinge else "max-min", loss=rows, eps=eps,
            lower=down(lower), upper=up(top.value / unit), pair=pair,
            distribution=[plain(x) for x in top.distribution],
            scores=[plain(x / unit) if problem.hinge else plain(x) for x in top.scores],
            coupling=[[c, y, plain(share)] for c, y, share in top.coupling],
            pairs=[_exported(search) for search in searches] if lower else [],
            symmetries=symmetries if lower else [],
        )  # fmt: skip


def _exported(search: PairSearch) -> dict[str, Any]:
    """The proof of a pair; vertices get the numbers that the checker will give them."""
    points: list[list[Any]] = []
    made = 0

    def height(distribution: polyhedral.Distribution, between: Fraction | None) -> Fraction:
        nonlocal made
        made += 1
        empty = search.problem.below(search.j, distribution, []) if between is None else between
        best, point = search.values.points.get(distribution, (empty, None))
        if best > empty:
            points.append([made - 1, point])
        return max(best, empty)

    def tree(node: Node, vertices: list[polyhedral.Vertex]) -> dict[str, Any]:
        if node.cut is None:
            return node.leaf() if vertices else {}
        plus, minus = polyhedral.clip(vertices, node.cut, node.bit, height)
        return {
            "cut": list(node.cut),
            "plus": tree(node.children[0], plus),
            "minus": tree(node.children[1], minus),
        }

    root = search.problem.polytope(search.i, search.j, search.exact_eps, height)
    found = tree(search.root, root)
    return {"pair": [search.i, search.j], "points": points, "tree": found}
