"""Check a claim over some distributions of the true label only.

The claim: lower <= H(eps) <= upper, H as in listed.py but with the
distribution q of the true label in a union of polytopes:

  Capped       q_y <= 1 - delta for every y
  WithMargin   one y has q_y - q_z >= gamma for all other z
  Noisy        q = (1 - eta) (one true label) + eta (anything)
  Constrained  rows . q <= bounds

H is the least over the polytopes. Of a distribution only L q counts, so that a polytope with the
vertices q_1, .., q_n is a loss with n true labels, the columns L q_1, .., L q_n. The vertices are
listed here again, in fractions; every part then is a certificate of its own kind, or no pair of its
labels differs by eps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

from consistruct.certificates import listed
from consistruct.certificates.exact import Refused, dot, ends, exact_text, matrix, number
from consistruct.certificates.statement import (
    Statement,
    matrix_statement,
    measure_words,
    scores_words,
)

MOST = 2048  # vertices: at most so many squared are compared, some seconds of work
WHERE = {  # what a class of distributions is, in words with its exact number
    "Capped": lambda kind: (
        f"no true label has a probability above {exact_text(1 - number(kind['delta']))}"
    ),
    "WithMargin": lambda kind: (
        "the most probable true label leads the second by at least "
        f"{exact_text(number(kind['gamma']))}"
    ),
    "Noisy": lambda kind: (
        f"every label is certain apart from noise at rate {exact_text(number(kind['eta']))}"
    ),
    "Constrained": lambda kind: (
        f"the probabilities satisfy {len(kind['rows'])} linear constraints that the file lists"
    ),
}


def share(value: Any, name: str) -> Fraction:
    """Return a number in [0, 1]."""
    found = number(value, name)
    if not 0 <= found <= 1:
        raise Refused(f"{name} must be in [0, 1]")
    return found


def polytopes(kind: dict[str, Any], m: int) -> list[list[list[Fraction]]]:
    """Return the vertices of every polytope; true labels are numbered from 0.

    They are listed here again, in fractions, rather than read: a document that left one out would
    prove too large a lower end.
    """
    name, zero = kind["class"], Fraction(0)
    if name == "Capped":
        cap = 1 - share(kind["delta"], "delta")
        if cap * m < 1:
            raise Refused("no distribution keeps below this cap")
        # vertices fill as many labels up to the cap as fit, and give the rest to one more
        full = math.floor(1 / cap)
        rest = 1 - full * cap
        within(math.comb(m, full) * m)
        found = []
        for chosen in combinations(range(m), full):
            for last in [t for t in range(m) if t not in chosen] if rest else [None]:
                found.append(
                    [cap if t in chosen else rest if t == last else zero for t in range(m)]
                )
        return [found]
    if name == "WithMargin":
        gamma = share(kind["gamma"], "gamma")
        within(2 ** (m - 1))
        # the best true label, and those that share the second place
        parts = []
        for best in range(m):
            others, found = [t for t in range(m) if t != best], []
            for size in range(m if gamma < 1 else 1):
                top = (1 + size * gamma) / (size + 1)
                for second in combinations(others, size):
                    low = dict.fromkeys(second, top - gamma)
                    found.append([top if t == best else low.get(t, zero) for t in range(m)])
            parts.append(found)
        return parts
    if name == "Noisy":
        eta = share(kind["eta"], "eta")
        if eta == 1:  # anything goes: the whole simplex, and not m copies of it
            return [[[Fraction(int(t == y)) for t in range(m)] for y in range(m)]]
        parts = []
        for best in range(m):
            found = []
            for any_ in range(m):
                row = [(1 - eta) * (t == best) + eta * (t == any_) for t in range(m)]
                if row not in found:
                    found.append(row)
            parts.append(found)
        return parts
    if name == "Constrained":
        return [cut_simplex(kind["rows"], kind["bounds"], m)]
    raise Refused(f"distributions {name!r} are not known")


def within(count: int) -> None:
    """Refuse what would take too long to list."""
    if count > MOST**2:
        raise Refused(f"more than {MOST} vertices")


def cut_simplex(rows: Any, bounds: Any, m: int) -> list[list[Fraction]]:
    """Return the vertices of the simplex within half-spaces, one cut after the other."""
    if len(rows) != len(bounds) or any(len(row) != m for row in rows):
        raise Refused("pass one bound for each row, and one number per true label in a row")
    unit = [[Fraction(int(t == s)) for t in range(m)] for s in range(m)]
    vertices, known = unit, [([-x for x in row], Fraction(0)) for row in unit]
    for given, limit in zip(rows, bounds):
        row, bound = [number(x, "rows") for x in given], number(limit, "bounds")
        height = [dot(row, v) - bound for v in vertices]
        tight = [{n for n, (a, b) in enumerate(known) if dot(a, v) == b} for v in vertices]
        kept = [v for v, h in zip(vertices, height) if h <= 0]
        crossed: list[list[Fraction]] = []
        for u, v in combinations(range(len(vertices)), 2):
            if height[u] * height[v] >= 0:
                continue
            # an edge joins two vertices iff no third one meets all constraints that both meet
            common = tight[u] & tight[v]
            if any(common <= tight[w] for w in range(len(vertices)) if w not in (u, v)):
                continue
            move = height[u] / (height[u] - height[v])
            point = [a + move * (b - a) for a, b in zip(vertices[u], vertices[v])]
            if point not in crossed:
                crossed.append(point)
        vertices = kept + crossed
        known.append((row, bound))
        within(len(vertices))
    if not vertices:
        raise Refused("no distribution meets these constraints")
    return vertices


def columns(loss: list[list[Fraction]], vertices: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return L q of every vertex: true labels of the loss that the polytope amounts to."""
    return [[dot(row, q) for q in vertices] for row in loss]


def same_problem(part: dict[str, Any], L: list[list[Fraction]], won: dict[str, Any]) -> bool:
    """Return whether a part is about the loss of its polytope, with the scores of the others.

    The order of its columns does not matter: it is the order in which vertices were found.
    """
    given = [[number(x, "loss") for x in row] for row in part["loss"]]
    equal = sorted(zip(*given)) == sorted(zip(*L)) and len(given) == len(L)
    return equal and all(part[name] == won[name] for name in ("scores", "measure"))


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    won = document["parts"][document["winner"]]
    if won is None:
        raise Refused("the part that attains the upper end has no certificate")
    found = matrix_statement(
        document,
        ("loss", "distributions"),
        scores=scores_words(won["scores"]),
        measure=measure_words(won["measure"]),
        distributions=f"only those where {where(document['distributions'])}",
    )
    found.data.update(scores=won["scores"], measure=won["measure"])
    return found


def where(kind: dict[str, Any]) -> str:
    """Return in words, to follow "where", which distributions a document allows."""
    if kind["class"] not in WHERE:
        raise Refused(f"distributions {kind['class']!r} are not known")
    return WHERE[kind["class"]](kind)


def verify(
    document: dict[str, Any], check_part: Callable[[dict[str, Any]], None] = listed.verify
) -> None:
    """Raise Refused unless the document proves its claim; `check_part` may be a faster check."""
    loss = matrix(document["loss"], "loss")
    eps, lower, upper = ends(document)
    every, parts = polytopes(document["distributions"], len(loss[0])), document["parts"]
    winner = document["winner"]
    if len(every) != len(parts) or type(winner) is not int or not 0 <= winner < len(parts):
        raise Refused("the parts are not those of the distributions")
    won = parts[winner]
    if won is None:
        raise Refused("the part that attains the upper end has no certificate")
    for part in parts:
        if part is not None:
            check_part(part)
    # labels that are never predicted cannot be the worse one of a pair
    rows = [c for c in range(len(loss)) if str(c) not in won["excluded"]]
    for vertices, part in zip(every, parts):
        L = columns(loss, vertices)
        if part is None:
            values = [[L[c][y] for c in rows] for y in range(len(vertices))]
            if any(max(v) - min(v) >= eps for v in values):
                raise Refused("no certificate is given for a part")
            continue
        if number(part["eps"], "eps") != eps or not same_problem(part, L, won):
            raise Refused("a part is about another problem")
        if number(part["lower"], "lower") < lower:
            raise Refused("the lower end is not proved")
    if number(won["upper"], "upper") > upper:
        raise Refused("the upper end is not attained")
