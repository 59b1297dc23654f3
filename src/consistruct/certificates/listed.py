"""Check a claim over listed labels: any loss matrix, any scores, any reference measure.

The claim: lower <= H(eps) <= upper, H the calibration function of the quadratic surrogate for the
loss matrix L (k predictions x m true labels), scores f = F theta and reference weights mu:

    H(eps) = min 1/2 |f + P L q|^2   over distributions q of the true label and scores f under which
    a label j is predicted (ties to the smallest index) although some predictable i has
    (L q)_j - (L q)_i >= eps;   |z|^2 = sum_c mu_c z_c^2,  P = projection on the scores.
Why few lines check that. Write K = F (F' M F)^+ F', M = diag(mu), P L = K M L.
* Upper end: any feasible (q, f) is above H. It is enough to evaluate one.
* Lower end: for a pair (i, j), any w >= 0 over labels and any nu >= 0, weak duality gives
      H_ij(eps) >= (nu eps + h)^2 / (2 n)   if nu eps + h > 0, where
      h = min_y [ -sum_c w_c (PL_c - PL_j) - nu (L_j - L_i) ]_y   and
      n = |sum_c w_c (F_c - F_j)|^2 = sum_ab w_a w_b (K_ab - K_aj - K_jb + K_jj);
  n = 0 with a positive numerator means that the pair is infeasible. The point w = e_i, nu = 1 is
  always tried. A pair with max_y (L_j - L_i)_y < eps is infeasible.
* A label that is a mixture of others (`excluded`), one of them earlier, loses every tie and is
  never predicted. All others take part in the lower end. The two labels of the upper end must be
  predictable: `wins` has parameters under which they win.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import (
    Refused,
    distribution,
    ends,
    integer_rows,
    integers,
    label_pair,
    matrix,
    number,
    product,
    solve_integers,
    vector,
)
from consistruct.certificates.statement import (
    Statement,
    matrix_statement,
    measure_words,
    scores_words,
)

Points = dict[tuple[int, int], list[tuple[dict[int, Fraction], Fraction]]]


class Problem:
    """Hold a problem as integers: L = loss/unit, PL = projected/unit, K = kernel/scale.

    Attributes
    ----------
    k, m : int
        Predictions and true labels.
    full : bool
        One score per label: then P is the identity and K = diag(1/mu), which `inverse` holds.
    scores : (k, r) rows of F, empty with full scores; mu uniform unless `measure` is given
    """

    def __init__(self, loss: Any, scores: Any = None, measure: Any = None) -> None:
        L = matrix(loss, "loss")
        self.k, self.m = len(L), len(L[0])
        mu = [Fraction(1, self.k)] * self.k
        if measure is not None:
            mu = vector(measure, self.k, "measure")
            if any(weight <= 0 for weight in mu):
                raise Refused("the measure must be positive")
        self.mu, self.full = mu, scores is None
        self.scores: list[list[Fraction]] = []
        if scores is None:  # one score per label: K = diag(1/mu), PL = L
            self.loss, self.unit = integer_rows(L)
            self.projected = self.loss
            self.inverse, self.scale = integers([1 / weight for weight in mu])
            return
        F = self.scores = matrix(scores, "scores")
        if len(F) != self.k:
            raise Refused(f"scores must be a list of {self.k} rows")
        # Everything from here on is one matrix equation over the integers. F may have dependent
        # columns: K = F X needs any solution of (F'MF) X = F', and all of them give the same K.
        rows, unit = integer_rows(F)
        weights, total = integers(mu)
        columns = list(zip(*rows))
        weighted = [[w * x for w, x in zip(weights, column)] for column in columns]
        gram = integer_rows(product(weighted, columns))[0]
        # gram = unit^2 total F'MF and the right-hand side unit F': X = (F'MF)^+ F' / (unit total)
        solved = solve_integers(gram, columns)
        if solved is None:  # cannot be: every column is in the range of the Gram matrix
            raise Refused("the Gram matrix of the scores has no inverse on their span")
        X, self.scale = integer_rows(solved)
        self.kernel = integer_rows(product(rows, [[total * x for x in row] for row in zip(*X)]))[0]
        self.dual = [[Fraction(x * unit * total, self.scale) for x in row] for row in X]
        # P L = K M L; L and P L get one common unit, since the bounds subtract one from the other
        PL = product(self.kernel, [[m * x for m, x in zip(mu, column)] for column in zip(*L)])
        PL = [[x / self.scale for x in row] for row in PL]
        both, self.unit = integer_rows(L + PL)
        self.loss, self.projected = both[: self.k], both[self.k :]

    def distance(self, a: int, b: int, j: int) -> int:
        """<F_a - F_j, F_b - F_j> times `scale`; a and b other than j."""
        if self.full:  # K is diagonal: K_ab - K_aj - K_jb + K_jj with a, b != j
            return self.inverse[j] + (self.inverse[a] if a == b else 0)
        K = self.kernel
        return K[a][b] - K[a][j] - K[j][b] + K[j][j]

    def gap(self, i: int, j: int) -> list[int]:
        """L_j - L_i, times `unit`."""
        return [b - a for a, b in zip(self.loss[i], self.loss[j])]


def bound(
    problem: Problem, i: int, j: int, w: dict[int, Fraction], nu: Fraction, eps: Fraction
) -> Fraction | None:
    """Return the lower bound on H_ij(eps) of a dual point w >= 0, nu >= 0; None for infinity.

    The bound is (nu eps + h)^2 / 2n with h and n as above. It does not change when all multipliers
    are multiplied by one number, so that they may be made integers.
    """
    labels = [c for c, weight in w.items() if weight and c != j]
    slope, *weights = integers([nu, *(w[c] for c in labels)])[0]
    if problem.full and labels == [i] and weights[0] == slope:
        least = 0  # w = e_i, nu = 1 is Theorem 7: P L = L cancels, whatever the losses are
    else:
        PL, total = problem.projected, [-slope * g for g in problem.gap(i, j)]
        for c, weight in zip(labels, weights):
            total = [t - weight * (p - q) for t, p, q in zip(total, PL[c], PL[j])]
        least = min(total)
    # from here on everything is multiplied by the unit of the losses and the denominator of eps
    height = slope * eps.numerator * problem.unit + eps.denominator * least
    if height <= 0:
        return Fraction(0)
    if problem.full:
        # n without forming its k^2 terms, which certificates of large matrices would have
        sums = sum(weights)
        norm = sums * sums * problem.inverse[j]
        norm += sum(x * x * problem.inverse[c] for c, x in zip(labels, weights))
    else:
        norm = sum(
            x * y * problem.distance(a, b, j)
            for a, x in zip(labels, weights)
            for b, y in zip(labels, weights)
        )
    if norm == 0:
        return None
    return Fraction(height**2 * problem.scale, 2 * norm * (eps.denominator * problem.unit) ** 2)


def check_lower(
    problem: Problem, eps: Fraction, lower: Fraction, points: Points, todo: Any
) -> None:
    """Refuse unless every pair of `todo` is infeasible or bounded by `lower`."""
    for i, j in todo:
        # no distribution reaches eps if no single true label does
        if lower <= 0 or max(problem.gap(i, j)) * eps.denominator < eps.numerator * problem.unit:
            continue
        best = Fraction(0)
        for w, nu in [({i: Fraction(1)}, Fraction(1)), *points.get((i, j), [])]:
            found = bound(problem, i, j, w, nu, eps)
            # a pair without any feasible point is above every claim
            best = lower if found is None else max(best, found)
            if best >= lower:
                break
        else:
            raise Refused(f"pair ({i}, {j}) is bounded below by {float(best)!r} only")


def check_upper(problem: Problem, document: dict[str, Any], eps: Fraction, upper: Fraction) -> None:
    """Refuse unless the point of the certificate is feasible and its value is at most `upper`."""
    i, j = label_pair(document["pair"], problem.k)
    q = distribution(document["distribution"], problem.m)
    support = [(y, x) for y, x in enumerate(q) if x]
    expected = [sum(x * row[y] for y, x in support) / problem.unit for row in problem.loss]
    if expected[j] - expected[i] < eps:
        raise Refused(f"label {j} is not worse than {i} by eps under this distribution")
    if problem.full:
        # The best scores for a given f_j = level are f_c = min(-expected loss, level): whatever
        # lies below the level costs nothing, so that one number states all k scores, and every
        # level is feasible.
        level = number(document["level"], "level")
        short = [(m, x + level) for m, x in zip(problem.mu, expected)]
        value = sum(m * x * x for c, (m, x) in enumerate(short) if c == j or x < 0) / 2
    else:
        # i and j must be able to win strictly against earlier labels, or their pair does not count
        width = len(problem.scores[0])
        for label in (i, j):
            theta = vector(document["wins"][str(label)], width, "wins")
            f = product([theta], problem.scores)[0]
            if any(f[c] >= f[label] for c in range(label)) or max(f) > f[label]:
                raise Refused(f"label {label} is not shown to be predictable")
        f = product([vector(document["theta"], width, "theta")], problem.scores)[0]
        if max(f) > f[j]:
            raise Refused(f"label {j} does not win under the scores")
        # |f + P L q|^2 = z' K z with z = M (f + L q), because f = P f lies in the span
        z = [m * (a + b) for m, a, b in zip(problem.mu, f, expected)]
        value = product([z], product([z], problem.kernel))[0][0] / (2 * problem.scale)
    if value > upper:
        raise Refused(f"the point has the value {float(value)!r}, above the upper end")


def check_excluded(F: list[list[Fraction]], label: int, mixture: dict[str, Any]) -> None:
    """Refuse unless the label is a mixture of others, one of them earlier.

    Its score is the mean of theirs, so it is the largest only where all of them tie with it, and
    then the earlier one is predicted.
    """
    parts = [(int(c), number(x, "mixture")) for c, x in mixture.items()]
    good = all(x >= 0 and 0 <= c < len(F) for c, x in parts) and sum(x for _, x in parts) == 1
    good = good and any(c < label and x > 0 for c, x in parts)
    if not good or [sum(x * F[c][a] for c, x in parts) for a in range(len(F[0]))] != F[label]:
        raise Refused(f"label {label} is not shown to lose every tie")


def read_points(document: dict[str, Any], k: int) -> Points:
    """Return the dual points by pair; negative multipliers would prove anything."""
    points: Points = {}
    for entry in document["points"]:
        w = {int(c): number(x, "w") for c, x in entry["w"].items()}
        nu = number(entry["nu"], "nu")
        if nu < 0 or any(x < 0 or not 0 <= c < k for c, x in w.items()):
            raise Refused("a multiplier is negative, or of a label that does not exist")
        points.setdefault(label_pair(entry["pair"], k), []).append((w, nu))
    return points


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    scores, measure = document["scores"], document["measure"]
    return matrix_statement(
        document,
        ("loss", "scores", "measure"),
        scores=scores_words(scores),
        measure=measure_words(measure),
    )


def verify(document: dict[str, Any], screen: Any = None) -> None:
    """Raise Refused unless the document proves its claim.

    `screen(problem, eps, lower, points, rows)` may name pairs that are surely fine, so that only
    the others need exact arithmetic; `calibration` passes one made of floats with error bounds.
    """
    problem = Problem(document["loss"], document["scores"], document["measure"])
    eps, lower, upper = ends(document)
    points = read_points(document, problem.k)
    excluded = {int(c): mixture for c, mixture in document["excluded"].items()}
    if excluded and problem.full:
        raise Refused("with full scores every label is predictable")
    for label, mixture in excluded.items():
        check_excluded(problem.scores, label, mixture)
    check_upper(problem, document, eps, upper)
    rows = [c for c in range(problem.k) if c not in excluded]
    proved = screen(problem, eps, lower, points, rows) if screen else ()
    todo = [(i, j) for i in rows for j in rows if i != j and (i, j) not in proved]
    check_lower(problem, eps, lower, points, todo)
