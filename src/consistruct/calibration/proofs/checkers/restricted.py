#!/usr/bin/env python3
"""Check a certificate over some distributions of the true label. Standard library, exact.

    python restricted.py certificate.json      # exit code 0: proved, 1: refused, 2: unreadable

Needs listed.py beside it. The claim: lower <= H(eps) <= upper, H as in listed.py but with the
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

import importlib.util
import json
import math
import re
import sys
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

RATIONAL = r"-?(0x[0-9a-f]+|[0-9]+)(/(0x[0-9a-f]+|[0-9]+))?"
MOST = 2048  # vertices


class Refused(ValueError):
    """The certificate does not prove its claim."""


def number(value: Any, name: str = "a number") -> Fraction:
    """The exact value of an integer, a finite float or a string "p/q"."""
    try:
        if isinstance(value, str) and re.fullmatch(RATIONAL, value):
            top, _, bottom = value.partition("/")
            return Fraction(int(top, 0), int(bottom or "1", 0))
        if type(value) in (int, float, Fraction):
            return Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        pass
    raise Refused(f"{name} must be a finite number, got {value!r}")


def check_listed(document: dict[str, Any]) -> None:
    """`verify` of listed.py, which stands beside this file."""
    spec = importlib.util.spec_from_file_location("listed", Path(__file__).with_name("listed.py"))
    if spec is None or spec.loader is None:
        raise Refused("listed.py was not found")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.verify(document)
    except module.Refused as reason:
        raise Refused(str(reason)) from None


def share(value: Any, name: str) -> Fraction:
    """A number in [0, 1]."""
    found = number(value, name)
    if not 0 <= found <= 1:
        raise Refused(f"{name} must be in [0, 1]")
    return found


def polytopes(kind: dict[str, Any], m: int) -> list[list[list[Fraction]]]:
    """The vertices of every polytope; true labels are numbered from 0."""
    name, zero = kind["class"], Fraction(0)
    if name == "Capped":
        cap = 1 - share(kind["delta"], "delta")
        if cap * m < 1:
            raise Refused("no distribution keeps below this cap")
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
        if eta == 1:
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
    """Refuse what would take too long."""
    if count > MOST**2:
        raise Refused(f"more than {MOST} vertices")


def dot(a: Any, b: Any) -> Fraction:
    """Sum of products."""
    return sum((x * y for x, y in zip(a, b)), Fraction(0))


def cut_simplex(rows: Any, bounds: Any, m: int) -> list[list[Fraction]]:
    """Vertices of the simplex within half-spaces, one cut after the other."""
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
    """L q of every vertex."""
    return [[dot(row, q) for q in vertices] for row in loss]


def same_problem(part: dict[str, Any], L: list[list[Fraction]], won: dict[str, Any]) -> bool:
    """The loss of the polytope up to the order of its columns, with the scores of the others."""
    given = [[number(x, "loss") for x in row] for row in part["loss"]]
    equal = sorted(zip(*given)) == sorted(zip(*L)) and len(given) == len(L)
    return equal and all(part[name] == won[name] for name in ("scores", "measure"))


def verify(document: dict[str, Any], check_part: Any = check_listed) -> None:
    """Raise Refused unless the document proves its claim."""
    if document["kind"] != "restricted":
        raise Refused("its kind is not 'restricted'")
    loss = [[number(x, "loss") for x in row] for row in document["loss"]]
    if not loss or not loss[0] or any(len(row) != len(loss[0]) for row in loss):
        raise Refused("the loss must be a matrix")
    eps = number(document["eps"], "eps")
    lower, upper = number(document["lower"], "lower"), number(document["upper"], "upper")
    if eps <= 0:
        raise Refused("eps must be positive")
    every, parts = polytopes(document["distributions"], len(loss[0])), document["parts"]
    winner = document["winner"]
    if len(every) != len(parts) or type(winner) is not int or not 0 <= winner < len(parts):
        raise Refused("the parts are not those of the distributions")
    won = parts[winner]
    if won is None:
        raise Refused("the part that attains the upper end has no certificate")
    for part in parts:
        if part is not None:
            check_part({**part, "kind": "listed"})
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


def main(path: str) -> int:
    """Read a certificate, print the verdict, return the exit code."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError) as reason:
        print(f"unreadable: {reason}")
        return 2
    try:
        verify(document)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as reason:
        print(f"refused: {reason}")
        return 1
    print("proved")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else print(__doc__) or 2)
