"""The paper's sufficient conditions for an (a, b) surrogate: proved, refuted or undecided.

Φ(f, y) = (1/k) Σ_c L(c, y) a(f_c) + b(f_c) is consistent for every loss with values in [0, Lmax] if

1. c·a + b is convex and differentiable for all c in [0, Lmax] (the paper requires that a and b be
   convex, which its own second example breaks; linear in c, so c = 0 and c = Lmax are enough),
2. c·a + b is bounded below for c in [0, Lmax], with a unique minimizer that is finite for c
   strictly inside (the paper lets it be infinite: a = e^f, b = e^2f then meet all its conditions,
   with the minimizer −∞ for every c, and the surrogate orders nothing),
3. a and b'/a' are strictly increasing.

Given 3, c·a + b falls and then rises (its derivative is a'·(c + b'/a')), so only the limits at the
ends are left of 2: they matter for c that −b'/a' does not pass.

Signs are decided exactly where a derivative is a rational function of f or of e^f: the numerator is
a polynomial whose real roots are counted. Elsewhere a grid may find a counterexample, which is
confirmed in 50-digit arithmetic; without one the answer is "undecided".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import mpmath
import numpy as np
import sympy as sp
from sympy import Expr
from sympy.calculus.util import continuous_domain

__all__ = ["Condition", "ConditionsReport", "check_conditions", "paper_examples"]

Verdict = Literal["proved", "refuted", "undecided"]
GRID = np.concatenate([np.linspace(-30, 30, 241), [-200.0, -100.0, 100.0, 200.0]])
DIGITS = 50


@dataclass(frozen=True)
class Condition:
    """One condition, the verdict, how it was reached, and the witness of a refutation."""

    statement: str
    verdict: Verdict
    reason: str
    witness: dict[str, float] | None = None


@dataclass(frozen=True)
class ConditionsReport:
    """All conditions of one (a, b) surrogate.

    Attributes
    ----------
    minimizer : sympy expression or None
        f*(ℓ), where solving b'/a' = −ℓ succeeded.
    """

    a: str
    b: str
    l_max: float
    conditions: tuple[Condition, ...]
    minimizer: Any = None

    @property
    def verdict(self) -> Verdict:
        """All conditions together; "refuted" only states that the theorem does not apply."""
        verdicts = {condition.verdict for condition in self.conditions}
        if "refuted" in verdicts:
            return "refuted"
        return "undecided" if "undecided" in verdicts else "proved"

    def __str__(self) -> str:
        lines = [f"a = {self.a}, b = {self.b}, Lmax = {self.l_max:g}: {self.verdict}"]
        for one in self.conditions:
            witness = "" if one.witness is None else f"; witness {one.witness}"
            lines.append(f"  {one.verdict:9s} {one.statement} ({one.reason}{witness})")
        return "\n".join(lines)


def paper_examples(l_max: float = 1.0) -> dict[str, tuple[str, str, str]]:
    """The paper's three examples: a, b and its f*(ℓ), in the symbols f and ell."""
    top = str(Fraction(l_max).limit_denominator(10**12))
    return {
        "quadratic": ("f", "f**2/2", "-ell"),
        "exponential": (
            f"(exp(f) - exp(-f))/({top})",
            "exp(-f)",
            f"log(1 - ell/({top}))/2 - log(ell/({top}))/2",
        ),
        "logistic": (
            f"f/({top})",
            "log(1 + exp(-f))",
            f"log(1 - ell/({top})) - log(ell/({top}))",
        ),
    }


def check_conditions(a: str | Expr, b: str | Expr, l_max: float = 1.0) -> ConditionsReport:
    """Check the sufficient conditions for consistency with every loss in [0, l_max].

    Parameters
    ----------
    a, b : str or SymPy expression in the symbol f
    l_max : float
        Largest value of the loss.

    Examples
    --------
    >>> from paper.conditions import check_conditions
    >>> check_conditions("f", "log(1 + exp(-f))").verdict       # logistic
    'proved'
    >>> report = check_conditions("f", "abs(f)")                # not differentiable
    >>> report.verdict == "proved"
    False
    """
    f, ell = sp.Symbol("f", real=True), sp.Symbol("ell", positive=True)
    if not l_max > 0:
        raise ValueError(f"l_max must be positive, got {l_max}")
    top = sp.Rational(Fraction(l_max).limit_denominator(10**12))
    A, B = (_expression(text, f) for text in (a, b))
    da, db = sp.diff(A, f), sp.diff(B, f)
    conditions = [_smooth((A, B, da, db), f)]
    for statement, expression in (
        ("b is convex (c = 0)", sp.diff(db, f)),
        ("Lmax·a + b is convex (c = Lmax)", top * sp.diff(da, f) + sp.diff(db, f)),
    ):
        conditions.append(_sign(statement, expression, f, strict=False))
    rising = _sign("a is strictly increasing", da, f, strict=True)
    numerator = sp.diff(db, f) * da - db * sp.diff(da, f)  # of (b'/a')'
    ratio = _sign("b'/a' is strictly increasing", numerator, f, strict=True)
    conditions += [rising, ratio, _bounded(A, B, da, db, f, top, (rising, ratio))]
    minimizer = _minimizer(da, db, f, ell)
    return ConditionsReport(str(a), str(b), float(l_max), tuple(conditions), minimizer)


def _expression(given: Any, f: Any) -> Any:
    try:
        expression = sp.sympify(given, locals={"f": f})
    except (sp.SympifyError, TypeError, SyntaxError):
        raise ValueError(f"a and b must be expressions in f, got {given!r}") from None
    replaced = expression.subs({s: f for s in expression.free_symbols if s.name == "f"})
    if replaced.free_symbols - {f}:
        raise ValueError(f"a and b may contain only the symbol f, got {given!r}")
    return sp.nsimplify(replaced, rational=True)


def _smooth(expressions: tuple[Any, ...], f: Any) -> Condition:
    """Whether the functions and their derivatives are continuous on the whole line."""
    statement = "a and b are differentiable"
    kinks = (sp.Abs, sp.Max, sp.Min, sp.sign, sp.Piecewise, sp.Heaviside)
    for expression in expressions:
        if expression.has(*kinks):
            return Condition(statement, "undecided", f"{expression} may have kinks")
        try:
            domain = continuous_domain(expression, f, sp.S.Reals)
        except NotImplementedError:
            return Condition(statement, "undecided", f"the domain of {expression} is not known")
        if domain != sp.S.Reals:
            hole = next(iter(sp.Complement(sp.S.Reals, domain).boundary), None)
            witness = None if hole is None else {"f": float(hole)}
            return Condition(statement, "refuted", f"{expression} is not continuous", witness)
    return Condition(statement, "proved", "continuous with their derivatives on the whole line")


def _sign(statement: str, expression: Any, f: Any, *, strict: bool) -> Condition:
    """Whether an expression is ≥ 0 (strict: > 0 but for isolated points) on the real line."""
    simple = sp.simplify(expression)
    if simple == 0:
        return _constant_zero(statement, strict)
    verdict = _rational_sign(simple, f)
    if verdict is not None:
        holds, point, how = verdict
        if holds:
            return Condition(statement, "proved", how)
        return Condition(statement, "refuted", "a negative derivative", {"f": point})
    witness = _search(simple, f)
    if witness is not None:
        return Condition(statement, "refuted", "negative in 50-digit arithmetic", {"f": witness})
    return Condition(statement, "undecided", "no counterexample on a grid, and no proof")


def _constant_zero(statement: str, strict: bool) -> Condition:
    if strict:
        return Condition(statement, "refuted", "the derivative vanishes everywhere", {"f": 0.0})
    return Condition(statement, "proved", "the second derivative vanishes everywhere")


def _rational_sign(expression: Any, f: Any) -> tuple[bool, float, str] | None:
    """(holds, point where it fails, how it was shown) for rational functions of f or of e^f."""
    x = sp.Symbol("x", positive=True)
    exponential = sp.simplify(sp.expand(expression.rewrite(sp.exp)).subs(f, sp.log(x)))
    for variable, candidate, back in (
        (f, expression, lambda value: value),
        (x, exponential, sp.log),
    ):
        numerator, denominator = sp.fraction(sp.together(candidate))
        if not (numerator.is_polynomial(variable) and denominator.is_polynomial(variable)):
            continue
        if (numerator.free_symbols | denominator.free_symbols) - {variable}:
            continue
        t = sp.Dummy("t", real=True)
        product = sp.Poly(sp.expand(numerator * denominator).subs(variable, t), t)
        positive = variable is x
        roots = sorted({r for r in sp.real_roots(product) if not positive or r > 0}, key=float)
        # between the roots the sign is constant: one sample in each gap decides
        samples = _samples(roots, positive)
        for sample in samples:
            if product.eval(sample) < 0:
                return False, float(back(sample)), ""
        name = "e^f" if positive else "f"
        return True, 0.0, f"a polynomial in {name} of {len(roots)} real roots, no sign change"
    return None


def _samples(roots: list[Any], positive: bool) -> list[Any]:
    if not roots:
        return [sp.Integer(1)]
    numbers = [sp.Rational(float(root)) for root in roots]
    first = numbers[0] / 2 if positive else numbers[0] - 1
    between = [(p + q) / 2 for p, q in pairwise(numbers)]
    return [first, *between, numbers[-1] + 1]


def _search(expression: Any, f: Any) -> float | None:
    """A point of the grid where the expression is certainly negative."""
    function: Callable[[Any], Any] = sp.lambdify(f, expression, "mpmath")
    with mpmath.workdps(DIGITS):
        for point in GRID.tolist():
            try:
                value = function(mpmath.mpf(point))
                if mpmath.im(value) == 0 and mpmath.re(value) < -(mpmath.mpf(10) ** (-DIGITS // 2)):
                    return float(point)
            except (ZeroDivisionError, ValueError, OverflowError, TypeError, NameError):
                continue
    return None


def _bounded(
    A: Any, B: Any, da: Any, db: Any, f: Any, top: Any, monotone: tuple[Condition, ...]
) -> Condition:
    """c·a + b for the c in [0, Lmax] that −b'/a' does not pass: limits at the ends."""
    statement = "c·a + b is bounded below with a unique minimizer, finite for 0 < c < Lmax"
    if any(one.verdict != "proved" for one in monotone):
        return Condition(statement, "undecided", "follows from monotonicity, which is not proved")
    level = sp.simplify(-db / da)  # falls from `most` to `least`
    try:
        least, most = sp.limit(level, f, sp.oo), sp.limit(level, f, -sp.oo)
        checks = []
        # c up to `least` keeps falling to the right, c from `most` on keeps falling to the left
        if least >= 0:
            checks += [(sp.Min(least, top), sp.oo), (sp.Integer(0), sp.oo)]
        if most <= top:
            checks += [(sp.Max(most, 0), -sp.oo), (top, -sp.oo)]
        for c, end in checks:
            limit = sp.limit(sp.expand(c * A + B), f, end)
            if limit == -sp.oo:
                return Condition(
                    statement, "refuted", f"c·a + b falls to −∞ as f → {end}", {"c": float(c)}
                )
            if not limit.is_finite and limit != sp.oo:
                return Condition(statement, "undecided", f"no limit as f → {end}")
        if least > 0 or most < top:
            c = least / 2 if least > 0 else (sp.Max(most, 0) + top) / 2
            return Condition(
                statement, "refuted", "the minimizer is infinite", {"c": float(sp.Min(c, top))}
            )
    except (NotImplementedError, ValueError, TypeError):
        return Condition(statement, "undecided", "a limit could not be computed")
    return Condition(statement, "proved", f"−b'/a' falls from {most} to {least}, finite limits")


def _minimizer(da: Any, db: Any, f: Any, ell: Any) -> Any:
    """f*(ℓ) from b' + ℓ a' = 0, in the variable e^f if need be; None if there is no single root."""
    x = sp.Symbol("x", positive=True)
    equation = sp.simplify(db + ell * da)
    try:
        solutions = sp.solve(sp.numer(sp.together(equation.subs(f, sp.log(x)))), x, dict=False)
        direct = [] if equation.has(sp.exp, sp.log) else sp.solve(equation, f, dict=False)
    except NotImplementedError:
        return None
    if direct:
        return sp.simplify(direct[0]) if len(direct) == 1 else None
    return sp.log(solutions[0]) if len(solutions) == 1 else None
