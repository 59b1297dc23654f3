"""Check a claim about the Hamming loss with binary chain scores.

The loss of T binary parts is the share of wrong parts; scores are parts and neighboring pairs. The
claim is lower <= H(eps) <= upper, H the calibration function (see listed.py) of the quadratic
surrogate under the uniform measure. Let j be predicted though i is better; they differ on the parts
D and agree on U. j wins iff a flow z along the chain keeps within the edge scores (max-flow,
min-cut), which turns H into

    8 T^2 H(eps) = min  sum_t z_t^2 + sum_t (z_{t-1} - z_t - x_t)_+^2,   z_0 = z_T = 0,
                   x_t = 1 on U, -y_t on D, |y| <= 1, sum_D y_t >= eps T,   over all (D, U).

* Upper end: every flow z and every such y is feasible; the certificate has one of each.
* Lower end: pairs with |U| = n have a squared distance of at most 4 (T + min(n, T-1-n)) in score
  space (Theorem 7). For a multiplier nu they also cost at least L_n(nu) - 2 nu (T - n - eps T), L_n
  the least of sum z^2 + sum e^2 + 2 nu sum_D (1 - y) over all patterns with n agreeing parts. That
  is a dynamic program over (t, n). Its states are convex functions f of z_t, kept by the corners
  of phi = -f'/2, which falls from c = min(nu, 1) to 0, and by the value of f at the last corner:
      part in D:  z <- z + 1 - phi;   part in U:  z <- z - 1 - phi;   edge:  f <- f + z^2,
  with phi clipped to [0, c] (an optimal potential stays there, and clipping only lowers f). A
  function that is nowhere below another one is dropped.
Up to 20 parts the program runs in fractions. Beyond, all numbers are integers over a power of
two; only the ends of a clip fall between and are moved to the side that lowers f.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import Refused, number, vector
from consistruct.certificates.statement import Statement, parts_statement

EXACT_UP_TO = 20  # parts: the program runs in fractions, which grow by some bits with each part
ONE = 2**60  # beyond: the unit of z and phi; f has the unit ONE^2


def upper_value(differs: Any, flow: Any, contrast: Any, eps: Fraction) -> Fraction:
    """Return 8 T^2 times the value of a flow and contrasts, which are made feasible first.

    Floats found the contrasts y, so they may exceed 1 or sum to less than eps T: they are clipped,
    and raised toward 1 by one common share of what is left.
    """
    T = len(differs)
    z = [Fraction(0), *vector(flow, T - 1, "flow"), Fraction(0)]
    y = vector(contrast, sum(differs), "contrast")
    y = [min(max(value, Fraction(-1)), Fraction(1)) for value in y]
    short = eps * T - sum(y)
    if short > 0:
        room = len(y) - sum(y)
        if short > room:
            raise Refused(f"{len(y)} differing parts of {T} cannot cost eps")
        y = [value + (1 - value) * short / room for value in y]
    # the expected contrast of a part: 1 where i and j agree, -y_t where they differ
    left = iter(y)
    x = [-next(left) if differ else Fraction(1) for differ in differs]
    e = [max(z[t] - z[t + 1] - x[t], Fraction(0)) for t in range(T)]
    return sum((value * value for value in (*z, *e)), Fraction(0))


class State:
    """Hold a convex function f of the flow by the corners of phi = -f'/2 and its last value.

    phi is piecewise linear and falls from c to 0, so f is piecewise quadratic and known from one
    value. A part moves the corners, an edge adds z^2 and so subtracts z from phi: both are exact on
    corners, which is why the program needs no grid.
    """

    def __init__(self, z: list[Any], phi: list[Any], value: Any) -> None:
        self.z, self.phi, self.value = z, phi, value

    def at(self, x: Any) -> tuple[Any, Any]:
        """Return f(x) = f(end) + 2 integral of phi from x on, as numerator and denominator."""
        z, phi, total = self.z, self.phi, self.value
        if x >= z[-1]:
            return total, 1
        for k in range(len(z) - 1, 0, -1):
            width = z[k] - z[k - 1]
            if x >= z[k - 1] and width:
                # phi there is low + (high - low)(right - x)/width
                top = 2 * phi[k] * width + (phi[k - 1] - phi[k]) * (z[k] - x)
                return total * width + top * (z[k] - x), width
            total += (phi[k - 1] + phi[k]) * width
        return total + 2 * phi[0] * (z[0] - x), 1

    def slope(self, x: Any, right: bool) -> Fraction:
        """Return phi just right or just left of x, where it may jump."""
        z, phi = self.z, self.phi
        for k in range(1, len(z)):
            a, b = z[k - 1], z[k]
            if a < b and (a <= x < b if right else a < x <= b):
                return phi[k] + Fraction((phi[k - 1] - phi[k]) * (b - x)) / (b - a)
        beyond = x >= z[-1] if right else x > z[-1]
        return Fraction(0) if beyond else Fraction(phi[0])

    def covers(self, other: State) -> bool:
        """Return whether this function is nowhere below the other.

        The difference is quadratic between neighboring corners of both: its ends, and its vertex
        where that lies inside, decide.
        """
        if self.value < other.value:  # right of all corners both are constant
            return False
        points = sorted({*self.z, *other.z})
        gaps = []
        for x in points:
            (a, b), (c, d) = self.at(x), other.at(x)
            gaps.append((a * d - c * b, b * d))
            if gaps[-1][0] < 0:
                return False
        for n in range(len(points) - 1):
            a, b = points[n], points[n + 1]
            # half the derivative of the difference, linear in between
            start = other.slope(a, True) - self.slope(a, True)
            if start < 0:
                end = other.slope(b, False) - self.slope(b, False)
                top, bottom = gaps[n]
                if end > 0 and Fraction(top) / bottom + start**2 * (b - a) / (start - end) < 0:
                    return False
        return True

    def moved(self, differs: bool, one: Any) -> State:
        """Return f after one part: least over x of f(x) plus the excess of the part."""
        step = one if differs else -one
        return State([z + step - p for z, p in zip(self.z, self.phi)], self.phi, self.value)

    def crossed(self) -> State:
        """Return f after one edge: f + z^2, phi - z, clipped to [0, c]."""
        cap = self.phi[0]
        z, phi = list(self.z), list(self.phi)
        # left of all corners phi = c, so phi - z passes c at z = 0; right of them phi = 0, so it
        # passes 0 there: both become corners, where the clips below look for them
        if z[0] > 0:
            z.insert(0, 0 * cap)
            phi.insert(0, cap)
        if z[-1] < 0:
            z.append(0 * cap)
            phi.append(0 * cap)
        value = self.value + z[-1] ** 2
        phi = [p - x for p, x in zip(phi, z)]
        # right end: corners below zero are dropped; f at an earlier end is f(end) + 2 integral phi
        while len(z) > 1 and phi[-2] < 0:
            value += (phi[-1] + phi[-2]) * (z[-1] - z[-2])
            z.pop()
            phi.pop()
        if phi[-1] < 0 and len(z) > 1:
            back = -quotient(phi[-1] * (z[-1] - z[-2]), phi[-2] - phi[-1])  # up: the end moves left
            value += phi[-1] * back
            z[-1] -= back
            phi[-1] = 0 * cap
        # left end: corners above c are dropped, and the first piece is cut at c
        end = z[-1]
        while len(z) > 1 and phi[1] > cap:
            z.pop(0)
            phi.pop(0)
        if phi[0] > cap and len(z) > 1:
            z[0] += quotient((phi[0] - cap) * (z[1] - z[0]), phi[0] - phi[1])  # down
        inner = [(x, p) for x, p in zip(z, phi) if 0 < p < cap and x < end]
        corners = [(min(z[0], end), cap), *inner, (end, 0 * cap)]
        return State([x for x, _ in corners], [p for _, p in corners], value)


def quotient(a: Any, b: Any) -> Any:
    """Return a/b, rounded down where both are integers: every rounding lowers f."""
    return a / b if isinstance(a, Fraction) else a // b


def program(T: int, most: int, nu: Fraction) -> list[Fraction]:
    """Return L_n(nu), or less, for n = 0, .., most agreeing parts.

    One list of functions per n: a pattern of agreeing and differing parts is worth keeping only
    where its function is below all others with the same n somewhere.
    """
    exact = T <= EXACT_UP_TO
    one: Any = Fraction(1) if exact else ONE
    cap: Any = min(nu, Fraction(1)) if exact else math.floor(nu * ONE)
    zero = 0 * one
    # before the first part the flow is z_0 = 0: a jump of phi from c to 0 there
    states = {0: [State([zero, zero], [cap, zero], zero)]}
    for _ in range(T - 1):
        grown: dict[int, list[State]] = {}
        for n, functions in states.items():
            for function in functions:
                for m, differs in ((n, True), (n + 1, False)):
                    if m > most:
                        continue
                    new, kept = function.moved(differs, one).crossed(), grown.setdefault(m, [])
                    if not any(new.covers(other) for other in kept):
                        kept[:] = [other for other in kept if not other.covers(new)] + [new]
        states = grown
    # after the last part the flow is z_T = 0 again
    found: dict[int, Fraction] = {}
    for n, functions in states.items():
        for m, differs in ((n, True), (n + 1, False)):
            for function in functions:
                top, bottom = function.moved(differs, one).at(zero)
                value = Fraction(top) / (bottom * one * one)
                found[m] = min(found.get(m, value), value)
    return [found[n] for n in range(most + 1)]


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    words = "one free score per part and state, and per pair of neighboring states"
    return parts_statement(document["T"], 2, "chain", words)


def verify(
    document: dict[str, Any],
    run: Callable[[int, int, Fraction], list[Fraction]] = program,
) -> None:
    """Raise Refused unless the document proves its claim; `run` may be a faster `program`."""
    T, differs = document["T"], document["differs"]
    eps = number(document["fraction"], "fraction")
    lower, upper = number(document["lower"], "lower"), number(document["upper"], "upper")
    if type(T) is not int or T < 1 or not 0 < eps <= 1:
        raise Refused("needs a positive integer T and an eps in (0, 1]")
    if len(differs) != T or not all(type(d) is bool for d in differs):
        raise Refused("differs must be true or false for every part")
    # such multipliers are exact in the compiled program too, whose unit is 2^-60
    nus = vector(document["multipliers"], len(document["multipliers"]), "multipliers")
    if not all(0 < nu <= 1 and (nu * 2**20).denominator == 1 for nu in nus):
        raise Refused("a multiplier must be a multiple of 2^-20 in (0, 1]")
    scale = 8 * T**2
    value = upper_value(differs, document["flow"], document["contrast"], eps) / scale
    if value > upper:
        raise Refused(f"the upper bound is not attained, only {float(value)!r} is")
    # a pair that costs eps agrees in at most T - eps T parts; the bound for n of them is that of
    # Theorem 7 or of a multiplier, whichever is more, and the least over n holds for all pairs
    spare = T - eps * T
    most = math.floor(spare)
    bounds = [(eps * T) ** 2 / (T + min(n, T - 1 - n)) for n in range(most + 1)]
    for nu in nus:
        for n, bound in enumerate(run(T, most, nu)):
            bounds[n] = max(bounds[n], bound - 2 * nu * (spare - n))
    if lower * scale > min(bounds):
        raise Refused(f"the lower bound is not proved, only {float(min(bounds) / scale)!r} is")
