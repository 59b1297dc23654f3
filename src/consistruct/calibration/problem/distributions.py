"""Which distributions of the true label a calibration function covers, where not all of them.

The worst distribution of a loss is often a close call that the data at hand never are. If P(y|x) is
known to lie in a polytope, or in a union of polytopes, the calibration function may be taken over
those alone. All that counts of a distribution q is the vector Lq of expected losses, so a polytope
with vertices q_1 … q_n is a loss with n true labels, the columns of L·[q_1 … q_n]: the same problem
again, with the same certificates.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from consistruct._validation import check_number
from consistruct.exceptions import ConsistructError

__all__ = [
    "Capped",
    "Constrained",
    "Distributions",
    "Noisy",
    "Polytope",
    "WithMargin",
    "parse_distributions",
    "restore",
]

VERTEX_LIMIT = 2048  # extreme distributions of one polytope

Vertex = tuple[Fraction, ...]  # probabilities of all true labels


@dataclass(frozen=True)
class Polytope:
    """All mixtures of some distributions."""

    name: str
    vertices: tuple[Vertex, ...]

    def columns(self, L: np.ndarray) -> list[list[Fraction]]:
        """L·q of every vertex q, (k, n), exactly: rounded, they would be another loss."""
        exact = [[Fraction(value) for value in row] for row in L.tolist()]
        support = [[(t, p) for t, p in enumerate(vertex) if p] for vertex in self.vertices]
        return [
            [sum((row[t] * p for t, p in vertex), Fraction(0)) for vertex in support]
            for row in exact
        ]

    def matrix(self) -> np.ndarray:
        """(m, n): the vertices as columns."""
        return np.array([[float(p) for p in vertex] for vertex in self.vertices]).T


class Distributions(ABC):
    """A union of polytopes of distributions over the true labels."""

    @abstractmethod
    def polytopes(self, n_true_labels: int) -> tuple[Polytope, ...]:
        """The polytopes, by their vertices."""

    def document(self) -> dict[str, Any]:
        """Plain data from which `restore` makes it again."""
        return {"class": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]

    @property
    @abstractmethod
    def spec(self) -> str:
        """As the command line writes it."""

    @property
    @abstractmethod
    def meaning(self) -> str:
        """In words, to follow "if"; numbers as short as floats are written."""


@dataclass(frozen=True)
class Capped(Distributions):
    """No true label is surer than 1 − delta: P(y|x) ≤ 1 − delta for every y.

    Examples
    --------
    >>> [len(p.vertices) for p in Capped(0.25).polytopes(4)]   # ¾ on one label, ¼ on another
    [12]
    """

    delta: float

    def __post_init__(self) -> None:
        check_number(self.delta, "delta", low=0.0, high=1.0)
        if self.delta == 1:
            raise ValueError("delta must be below 1: no true label may have probability 0")

    @property
    def spec(self) -> str:
        return f"cap:{self.delta!r}"

    @property
    def meaning(self) -> str:
        return f"no true label has a probability above 1 − {self.delta!r}"

    def polytopes(self, n_true_labels: int) -> tuple[Polytope, ...]:
        cap = 1 - Fraction(self.delta)
        if cap * n_true_labels < 1:
            raise ConsistructError(
                f"no distribution over {n_true_labels} true labels keeps them all at or below "
                f"{float(cap)!r}; choose a smaller delta"
            )
        full = math.floor(1 / cap)
        rest = 1 - full * cap
        _check_count(
            math.comb(n_true_labels, full) * (n_true_labels - full if rest else 1),
            self,
            n_true_labels,
        )
        vertices = []
        for top in combinations(range(n_true_labels), full):
            for last in (t for t in range(n_true_labels) if t not in top) if rest else (None,):
                vertex = [cap if t in top else Fraction(0) for t in range(n_true_labels)]
                if last is not None:
                    vertex[last] = rest
                vertices.append(tuple(vertex))
        return (Polytope("all", tuple(vertices)),)


@dataclass(frozen=True)
class WithMargin(Distributions):
    """One true label is likelier than every other by gamma: P(best) − P(second) ≥ gamma.

    One polytope for each true label that may be the best; its vertices are the sets of true labels
    that share the second place.

    Examples
    --------
    >>> [len(p.vertices) for p in WithMargin(0.5).polytopes(3)]
    [4, 4, 4]
    """

    gamma: float

    def __post_init__(self) -> None:
        check_number(self.gamma, "gamma", low=0.0, high=1.0)

    @property
    def spec(self) -> str:
        return f"margin:{self.gamma!r}"

    @property
    def meaning(self) -> str:
        return f"the most probable true label leads the second by at least {self.gamma!r}"

    def polytopes(self, n_true_labels: int) -> tuple[Polytope, ...]:
        gamma = Fraction(self.gamma)
        _check_count(2 ** (n_true_labels - 1) if gamma < 1 else 1, self, n_true_labels)
        found = []
        for best in range(n_true_labels):
            others = [t for t in range(n_true_labels) if t != best]
            vertices = []
            for size in range(n_true_labels if gamma < 1 else 1):
                for second in combinations(others, size):
                    top = (1 + size * gamma) / (size + 1)
                    vertex = [
                        top - gamma if t in second else Fraction(0) for t in range(n_true_labels)
                    ]
                    vertex[best] = top
                    vertices.append(tuple(vertex))
            found.append(Polytope(f"best {best}", tuple(vertices)))
        return tuple(found)


@dataclass(frozen=True)
class Noisy(Distributions):
    """Labels that are sure but for noise: q = (1 − eta)·(one true label) + eta·(anything).

    Examples
    --------
    >>> [len(p.vertices) for p in Noisy(0.1).polytopes(3)]
    [3, 3, 3]
    """

    eta: float

    def __post_init__(self) -> None:
        check_number(self.eta, "eta", low=0.0, high=1.0)

    @property
    def spec(self) -> str:
        return f"noise:{self.eta!r}"

    @property
    def meaning(self) -> str:
        return f"every label is certain apart from noise at rate {self.eta!r}"

    def polytopes(self, n_true_labels: int) -> tuple[Polytope, ...]:
        eta = Fraction(self.eta)
        unit = [
            tuple(Fraction(int(t == one)) for t in range(n_true_labels))
            for one in range(n_true_labels)
        ]
        if eta == 1:
            return (Polytope("all", tuple(unit)),)
        return tuple(
            Polytope(
                f"best {best}",
                tuple(
                    dict.fromkeys(
                        tuple(
                            (1 - eta) * a + eta * b for a, b in zip(unit[best], any_, strict=True)
                        )
                        for any_ in unit
                    )
                ),
            )
            for best in range(n_true_labels)
        )


@dataclass(frozen=True)
class Constrained(Distributions):
    """Linear constraints of your own: Σ_y rows[r][y]·P(y|x) ≤ bounds[r] for every r.

    Vertices are found by cutting the simplex with one constraint after the other, in fractions.

    Examples
    --------
    >>> half = Constrained(((1.0, 0.0, 0.0),), (0.5,))   # P(0) ≤ ½
    >>> [[str(p) for p in vertex] for vertex in half.polytopes(3)[0].vertices]
    [['0', '1', '0'], ['0', '0', '1'], ['1/2', '1/2', '0'], ['1/2', '0', '1/2']]
    """

    rows: tuple[tuple[float, ...], ...]
    bounds: tuple[float, ...]

    def __post_init__(self) -> None:
        rows = tuple(tuple(float(x) for x in row) for row in self.rows)
        bounds = tuple(float(x) for x in self.bounds)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "bounds", bounds)
        if len(rows) != len(bounds) or not all(map(math.isfinite, [*bounds, *sum(rows, ())])):
            raise ValueError(
                f"pass one finite bound for each row of finite numbers, got {len(rows)} rows and "
                f"{len(bounds)} bounds"
            )

    @property
    def spec(self) -> str:
        return f"{len(self.rows)} linear constraints"

    @property
    def meaning(self) -> str:
        return f"the probabilities satisfy {len(self.rows)} linear constraints"

    def polytopes(self, n_true_labels: int) -> tuple[Polytope, ...]:
        for row in self.rows:
            if len(row) != n_true_labels:
                raise ValueError(
                    f"each row needs one number per true label, {n_true_labels}, got {len(row)}"
                )
        zeros = [
            [Fraction(int(t == s)) for t in range(n_true_labels)] for s in range(n_true_labels)
        ]
        vertices: list[Vertex] = [tuple(row) for row in zeros]
        # constraints a·q ≤ b met so far, −q_t ≤ 0 first
        known = [([-x for x in row], Fraction(0)) for row in zeros]
        for row, bound in zip(self.rows, self.bounds, strict=True):
            cut = [Fraction(x) for x in row], Fraction(bound)
            vertices = _cut(vertices, known, cut)
            known.append(cut)
            _check_count(len(vertices), self, n_true_labels)
        if not vertices:
            raise ConsistructError("no distribution satisfies all of these constraints")
        return (Polytope("all", tuple(vertices)),)


HalfSpace = tuple[list[Fraction], Fraction]


def _cut(vertices: list[Vertex], known: Sequence[HalfSpace], cut: HalfSpace) -> list[Vertex]:
    """Vertices of the part within a half-space: those inside, and where edges cross the border."""
    heights = {v: _dot(cut[0], v) - cut[1] for v in vertices}
    tight = {v: {n for n, (a, b) in enumerate(known) if _dot(a, v) == b} for v in vertices}
    inside = [v for v in vertices if heights[v] <= 0]
    outside = [v for v in vertices if heights[v] > 0]
    crossed: dict[Vertex, None] = {}
    for u in inside:
        for w in outside:
            common = tight[u] & tight[w]
            # an edge joins them iff no third vertex meets all constraints that both meet
            if heights[u] == 0 or any(
                common <= tight[v] for v in vertices if v is not u and v is not w
            ):
                continue
            share = heights[u] / (heights[u] - heights[w])
            point = tuple(a + share * (b - a) for a, b in zip(u, w, strict=True))
            crossed[point] = None
    return [*inside, *crossed]


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _check_count(count: int, which: Distributions, n_true_labels: int) -> None:
    if count > VERTEX_LIMIT:
        raise ConsistructError(
            f"{which.spec} has {count} extreme distributions over {n_true_labels} true labels, "
            f"more than the {VERTEX_LIMIT} that are listed; noise:… has only {n_true_labels}, or "
            "use fewer labels"
        )


KINDS: dict[str, Callable[[float], Distributions]] = {
    "cap": Capped,
    "margin": WithMargin,
    "noise": Noisy,
}


def restore(document: dict[str, Any]) -> Distributions:
    """The inverse of `Distributions.document`."""
    classes = {cls.__name__: cls for cls in (Capped, WithMargin, Noisy, Constrained)}
    fields = {name: value for name, value in document.items() if name != "class"}
    if document.get("class") not in classes:
        raise ValueError(
            f"distributions must be one of {', '.join(classes)}, got {document.get('class')!r}"
        )
    found: Distributions = classes[document["class"]](**fields)
    return found


def parse_distributions(spec: str) -> Distributions:
    """``cap:0.1``, ``margin:0.3`` or ``noise:0.05``.

    Examples
    --------
    >>> parse_distributions("noise:0.05")
    Noisy(eta=0.05)
    """
    name, _, number = spec.partition(":")
    if name not in KINDS:
        raise ValueError(
            f"distributions must be cap:DELTA, margin:GAMMA or noise:ETA, got {spec!r}"
        )
    try:
        value = float(number)
    except ValueError:
        raise ValueError(f"{name}: needs a number, for example {name}:0.1, got {spec!r}") from None
    return KINDS[name](value)
