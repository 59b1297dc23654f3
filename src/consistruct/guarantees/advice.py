"""Which score family to learn with: the best guarantee for a sample budget or an accuracy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from consistruct._validation import check_count, check_number
from consistruct.calibration import CalibrationFunction, LabelOrderWarning, calibration_function
from consistruct.calibration.bounds import expresses
from consistruct.exceptions import ConsistructError
from consistruct.guarantees.complexity import envelope_at
from consistruct.guarantees.constants import Constants, DataConstants, exp, sharp_constants
from consistruct.guarantees.crossing import crossing_point
from consistruct.guarantees.families import Family, score_families
from consistruct.guarantees.surrogate_choice import SurrogateAdvice, choose_surrogate
from consistruct.losses.base import Loss, as_loss
from consistruct.structures import Structure

__all__ = ["Advice", "FamilyGuarantee", "advise"]

PREDICTABLE_LIMIT = 40  # p(p−1) linear programs give the level of scores that are no closed form
TIE = 1e-9


@dataclass(frozen=True)
class FamilyGuarantee:
    """What one score family guarantees.

    Attributes
    ----------
    eps : float
        Excess task risk over the best rule with these scores: requested, or reached in budget.
    log_H : float
        log of the certified lower end of H at that ε.
    log_iterations : float
        log N* at that ε by the sharp constants; +inf at or below the consistency level.
    gap : float
        By which share N* may be too large, as in `SampleComplexity`.
    approximation_error : float
        What the best rule with these scores may lose to the best rule of all.
    on_front : bool
        Whether no other family is better both in what it needs (or reaches) and in that error.
    """

    name: str
    scores: Structure
    rank: int
    n_predictable: int
    consistency_level: float
    approximation_error: float
    max_eps: float
    eps: float
    log_H: float  # noqa: N815 - the paper's symbol
    log_iterations: float
    gap: float
    method: str
    on_front: bool = False

    @property
    def iterations(self) -> float:
        return exp(self.log_iterations)

    @property
    def total(self) -> float:
        """Bound on the excess over the best rule of all: ε plus the approximation error."""
        return self.eps + self.approximation_error


@dataclass(frozen=True)
class Advice:
    """Families, the recommended one (None if none has a guarantee) and the reason.

    Attributes
    ----------
    crossings : tuple of (name, float)
        Where H of the family overtakes that of the loss's own scores, for exact curves.
    skipped : tuple of (name, reason)
        Families that were found but not evaluated.
    surrogates : SurrogateAdvice or None
        Which surrogate to train with; None if it was not requested.
    """

    loss: Loss
    eps: float | None
    n_samples: int | None
    counts_approximation: bool
    families: tuple[FamilyGuarantee, ...]
    recommended: FamilyGuarantee | None
    reason: str
    crossings: tuple[tuple[str, float], ...]
    skipped: tuple[tuple[str, str], ...]
    surrogates: SurrogateAdvice | None = None


def advise(
    loss: Loss | str,
    *,
    n_samples: int | None = None,
    eps: float | None = None,
    candidates: Sequence[Structure] = (),
    radius: float = 1.0,
    q_bound: float = 1.0,
    total: bool = False,
    surrogates: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Advice:
    """Compare score families by their guarantee and recommend one.

    Few scores are learned from few examples but may not tell the best label apart: the consistency
    level stays however many examples there are, and the approximation error comes on top. Many
    scores have neither and need more examples.

    Parameters
    ----------
    loss : Loss or spec
    n_samples : int, optional
        Budget: the family with the smallest ε + approximation error after so many examples.
    eps : float, optional
        Accuracy: the family that needs the fewest examples for an excess of ε over the best rule
        *with its scores* (Theorem 6). Families whose approximation error exceeds ε are not
        recommended. Give either `n_samples` or `eps`.
    candidates : sequence of ScoreSpace
        Families of your own. Looked at in any case: own span, full scores, and for listed losses
        truncations of the loss by singular values and merges of labels with similar rows.
    radius, q_bound : float
        R and Q, as in `sample_complexity`. The same Q is used for every family.
    total : bool
        With `eps`: request ε over the best rule of all, approximation error included.
    surrogates : bool
        Whether to compare surrogates too (`choose_surrogate`), at `eps` or at what the recommended
        family reaches; some seconds for a cost matrix of 20 labels.
    progress : callable, optional
        Called with (done, total) after each family.

    Examples
    --------
    >>> import consistruct as cs
    >>> loss = cs.losses.Mixed((5,) * 20, 0.1)
    >>> [cs.advise(loss, eps=eps).recommended.name for eps in (0.02, 0.5)]
    ['full scores (own span)', '20 blocks']
    """
    loss = as_loss(loss)
    if (n_samples is None) == (eps is None):
        raise ValueError("pass either n_samples (a budget) or eps (an accuracy)")
    if n_samples is not None:
        n_samples = check_count(n_samples, "n_samples")
        if total:
            raise ValueError("total=True is for eps; a budget always counts everything")
    else:
        eps = check_number(eps, "eps", low=0.0, open_low=True)
    radius = check_number(radius, "radius", low=0.0, open_low=True)
    q_bound = check_number(q_bound, "q_bound", low=0.0, open_low=True)
    found: list[FamilyGuarantee] = []
    curves: list[CalibrationFunction] = []
    skipped: list[tuple[str, str]] = []
    families = score_families(loss, candidates)
    for done, family in enumerate(families):
        try:
            curve = _curve(loss, family)
        except ConsistructError as error:
            skipped.append((family.name, str(error)))
        else:
            constants = sharp_constants(
                loss, family.scores, radius=radius, q_bound=q_bound, data=DataConstants()
            )
            wanted = None if eps is None else eps - total * curve.approximation_error
            found.append(_guarantee(family, curve, constants, wanted, n_samples))
            curves.append(curve)
        if progress is not None:
            progress(done + 1, len(families))
    ranked = _with_front(found, n_samples)
    best, reason = _recommend(ranked, n_samples, eps, total)
    crossings = tuple(
        (entry.name, point)
        for entry, curve in zip(found[1:], curves[1:], strict=True)
        if curve.method == curves[0].method == "closed form"
        and (point := crossing_point(curves[0], curve)) is not None
    )
    compared = None
    if surrogates:
        at = eps if eps is not None else best.eps if best is not None else found[0].max_eps / 2
        compared = choose_surrogate(loss, eps=at)
    return Advice(
        loss, eps, n_samples, total or n_samples is not None, ranked, best, reason, crossings,
        tuple(skipped), compared,
    )  # fmt: skip


def _guarantee(
    family: Family,
    curve: CalibrationFunction,
    constants: Constants,
    eps: float | None,
    n_samples: int | None,
) -> FamilyGuarantee:
    """The entry of one family at ε, or at what `n_samples` examples reach."""
    if eps is None:
        assert n_samples is not None
        eps = curve.inverse_log(constants.log_excess(n_samples))
    log_H, log_envelope, gap = -math.inf, -math.inf, 0.0
    if eps > max(curve.consistency_level, 0.0):  # else H = 0, and the rest is not needed
        log_H = curve.log(eps)
        log_envelope, gap = envelope_at(curve, eps)
    return FamilyGuarantee(
        name=family.name,
        scores=family.scores,
        rank=family.scores.rank,
        n_predictable=family.scores.predictable().size,
        consistency_level=curve.consistency_level,
        approximation_error=curve.approximation_error,
        max_eps=curve.max_eps,
        eps=max(eps, 0.0),
        log_H=log_H,
        # at a budget ε = max_eps states nothing: any predictor keeps it
        log_iterations=-math.inf
        if n_samples is not None and eps >= curve.max_eps
        else constants.log_iterations(log_envelope),
        gap=gap,
        method=curve.method,
    )


def _curve(loss: Loss, family: Family) -> CalibrationFunction:
    with warnings.catch_warnings():
        # that merged labels are stood for by the first is part of every result here
        warnings.simplefilter("ignore", LabelOrderWarning)
        curve = calibration_function(loss, family.scores)
    if curve.method.startswith("explicit quadratic") and not expresses(loss, family.scores):
        size = family.scores.predictable().size
        if size > PREDICTABLE_LIMIT:
            raise ConsistructError(
                f"{size} predictable labels, more than the {PREDICTABLE_LIMIT} for which the "
                "consistency level is computed during a search; analyze this family by itself"
            )
    return curve


def _cost(entry: FamilyGuarantee, n_samples: int | None) -> float:
    return entry.log_iterations if n_samples is None else entry.eps


def _with_front(
    entries: list[FamilyGuarantee], n_samples: int | None
) -> tuple[FamilyGuarantee, ...]:
    """Mark the families that no other one beats in cost and approximation error together."""

    def beaten(entry: FamilyGuarantee) -> bool:
        mine = (_cost(entry, n_samples), entry.approximation_error)
        return any(
            all(a <= b for a, b in zip(other, mine, strict=True)) and other != mine
            for other in ((_cost(e, n_samples), e.approximation_error) for e in entries)
        )

    return tuple(
        replace(entry, on_front=math.isfinite(_cost(entry, n_samples)) and not beaten(entry))
        for entry in entries
    )


def _recommend(
    entries: tuple[FamilyGuarantee, ...], n_samples: int | None, eps: float | None, total: bool
) -> tuple[FamilyGuarantee | None, str]:
    if n_samples is not None:
        trivial = entries[0].max_eps
        best = min(entries, key=lambda e: (_rounded(e.total), e.approximation_error, e.rank))
        if best.total >= trivial:
            return None, (
                f"no family has a guarantee below the largest excess risk, {trivial:g}, after "
                f"{n_samples} examples; the worst-case bounds need more"
            )
        return best, (
            f"{best.name}: after {n_samples} examples its excess over the best rule of all is at "
            f"most {best.total:.4g}, the smallest of {len(entries)} families"
            + _cost_of(best, ", of which up to")
        )
    assert eps is not None
    allowed = [
        e
        for e in entries
        if e.log_iterations < math.inf and e.eps > 0 and (total or e.approximation_error <= eps)
    ]
    if not allowed:
        return None, f"no family reaches an excess of {eps:g} with an approximation error below it"
    # a tie in N* goes to the smaller approximation error, then to fewer scores
    best = min(allowed, key=lambda e: (_rounded(e.log_iterations), e.approximation_error, e.rank))
    rank = "the fewest" if len(allowed) > 1 else "and no other family reaches it"
    against = "the best rule of all" if total else "the best rule with its scores"
    return best, (
        f"{best.name}: an excess of {eps:g} over {against} takes "
        f"{_count(best)} examples, {rank}"
        + _cost_of(best, "; that rule itself may lose up to")
        + _undecided(best, allowed)
    )


def _undecided(best: FamilyGuarantee, allowed: list[FamilyGuarantee]) -> str:
    """Families that might need fewer examples if H were known better than N* is computed."""
    rivals = [
        entry.name
        for entry in allowed
        if entry is not best
        and not entry.log_iterations - math.log1p(entry.gap) >= best.log_iterations - TIE
    ]
    return (
        (f"; {', '.join(rivals)} may need just as few, because H is not known well enough")
        if rivals
        else ""
    )


def _rounded(value: float) -> float:
    return round(value / TIE) * TIE if math.isfinite(value) else value


def _count(entry: FamilyGuarantee) -> str:
    if math.isfinite(entry.iterations):
        return f"{entry.iterations:.3g}"
    return f"10^{entry.log_iterations / math.log(10):.1f}"


def _cost_of(entry: FamilyGuarantee, before: str) -> str:
    if entry.approximation_error == 0:
        return ", with no approximation error"
    shown = f"{before} {entry.approximation_error:g}"
    return f"{shown} because only {entry.n_predictable} labels can be predicted"
