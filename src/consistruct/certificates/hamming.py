"""Check a claim about the Hamming loss with full or separable scores.

The loss of T parts with s states each is the share of wrong parts. The claim is about the quadratic
surrogate under the uniform measure, H as in listed.py:

* scores "separable" (one score per part and state): lower <= H(eps) <= upper; H = eps^2/4sT.
  Lower end: squared distances of labels in score space are 2s times the number of parts in which
  they differ, at most 2sT, and H >= eps^2 / (2 max distance) (w = e_i, nu = 1 in listed.py).
  Upper end: i and j differ everywhere, the distribution has (1+eps)/2 on i and (1-eps)/2 on j. In
  each part the expected losses of the two states are (1 -+ eps)/2T; giving both the score -1/2T
  ties them and moves two of s states by eps/2T each: 1/2 * T * (1/s) * 2 (eps/2T)^2 = eps^2/4sT.

* scores "full" (one score per label): lower <= k H(eps) <= upper, k = s^T. Pairs that differ in d
  parts form an orbit, d >= eps T. With delta = eps T/d and the distribution (1+delta)/2 on i,
  (1-delta)/2 on j, a label that agrees with j instead of i in m of the d parts, has a third state
  in o of them and deviates in n of the others is worse than i by r = m eps/d + o (1+delta)/2T +
  n/T. For 0 <= x <= eps the scores f_j = -l_i - x, f_c = min(-l_c, f_j) have the value
      1/2 [ (eps-x)^2 + sum_c (x - r_c)_+^2 ]   with  C(d,m) C(d-m,o) (s-2)^o C(T-d,n) (s-1)^n
  labels for each (m, o, n). The multipliers w_c = (x - r_c)_+ give the lower bound
      (nu eps + h)^2 / 2 [(sum w)^2 + sum w^2],
      h = min_y [sum_c w_c (L_j - L_c) - nu (L_j - L_i)]_y,
  and h is a sum over parts of a minimum over the states of y (i's, j's, a third; j's, another).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import Refused, number
from consistruct.certificates.statement import Statement, parts_statement, scores_words


def full_bounds(T: int, s: int, eps: Fraction, d: int, x: Fraction) -> tuple[Fraction, Fraction]:
    """Return (lower, upper) bounds on k H_d(eps) from one number 0 <= x <= eps.

    Both ends come from the same sum over (m, o, n), which has O(T^3) terms instead of s^T labels:
    the point and the multipliers are functions of r_c alone.
    """
    delta = eps * T / d
    primal = (eps - x) ** 2
    total = squares = stay = other = keep = Fraction(0)
    # r grows with m, o and n: once it reaches x, no further label is below
    for m in range(d + 1):
        if m * eps >= x * d:
            break
        for o in range(d - m + 1 if s > 2 else 1):
            for n in range(T - d + 1):
                r = m * eps / d + o * (1 + delta) / (2 * T) + Fraction(n, T)
                if r >= x:
                    break
                count = math.comb(d, m) * math.comb(d - m, o) * (s - 2) ** o
                count *= math.comb(T - d, n) * (s - 1) ** n
                weight = count * (x - r)
                total += weight
                squares += weight * (x - r)
                stay += weight * Fraction(d - m - o, d)  # has the state of i in a differing part
                other += weight * Fraction(o, d)  # has a third state there
                keep += weight * Fraction(T - d - n, T - d) if d < T else 0
    switch = total - stay - other  # has the state of j
    # h is a sum over parts of the least of a few linear functions of nu; any nu >= 0 is valid,
    # and this one makes the first two of them equal
    nu = (stay - switch + total) / 2
    options = [stay - nu, switch - total + nu] + ([other / (s - 2)] if s > 2 else [])
    agreeing = min(keep - total, (total - keep) / (s - 1)) if d < T else Fraction(0)
    height = nu * eps + (d * min(options) + (T - d) * agreeing) / T
    norm = total**2 + squares
    lower = height**2 / (2 * norm) if height > 0 and norm > 0 else Fraction(0)
    return lower, (primal + squares) / 2


def scale(document: dict[str, Any]) -> Fraction:
    """Return what lower and upper are multiplied by to be bounds on H."""
    if document["scores"] == "separable":  # then T may be so large that k is no number to write
        return Fraction(1)
    return Fraction(1, document["n_states"] ** document["T"])


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    scores = document["scores"]
    words = scores_words(None) if scores == "full" else "one free score per part and state"
    return parts_statement(document["T"], document["n_states"], scores, words)


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    T, s = document["T"], document["n_states"]
    eps = number(document["eps"], "eps")
    lower, upper = number(document["lower"], "lower"), number(document["upper"], "upper")
    if type(T) is not int or type(s) is not int or T < 1 or s < 2:
        raise Refused("T must be a positive integer, n_states an integer of at least 2")
    if not 0 < eps <= 1:
        raise Refused("eps must be in (0, 1]")
    if document["scores"] == "separable":
        value = eps**2 / (4 * s * T)
        if not lower <= value <= upper:
            raise Refused(f"H is {float(value)!r}")
        return
    if document["scores"] != "full":
        raise Refused("scores must be 'full' or 'separable'")
    first = math.ceil(eps * T)  # pairs that differ in fewer parts cannot differ by eps
    x = {int(d): number(value, "x") for d, value in document["x"].items()}
    best = document["d"]
    if type(best) is not int or not first <= best <= T:
        raise Refused(f"pairs that differ in {best} parts cannot differ by eps")
    for d in range(first, T + 1):
        if d not in x or not 0 <= x[d] <= eps:
            raise Refused(f"no bound is given for pairs that differ in {d} parts")
        low, high = full_bounds(T, s, eps, d, x[d])
        if low < lower:
            raise Refused(f"pairs that differ in {d} parts: bounded below by {float(low)!r} only")
        if d == best and high > upper:
            raise Refused(f"the point has the value {float(high)!r}, above the upper end")
