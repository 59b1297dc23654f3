"""Which surrogate: four that are consistent, compared where the engine takes the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

from consistruct.calibration import calibration_function, compare_surrogates
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss, as_loss

__all__ = ["SurrogateAdvice", "SurrogateGuarantee", "choose_surrogate"]

# name, surrogate, decoding, and the labels above which its conic programs take too long here
CANDIDATES = (
    ("quadratic", "quadratic", "argmax", None),
    ("logistic", "logistic", "argmax", 20),
    ("log, Bayes decoding", "log", "bayes", 30),
    ("linear-regret", "linear-regret", "argmax", None),
)


@dataclass(frozen=True)
class SurrogateGuarantee:
    """One surrogate at one ε.

    Attributes
    ----------
    lower, upper : float
        Certified bounds on H(ε), in the surrogate's own unit.
    draws_least, draws_most : float or None
        Bounds on n(ε) = S/H(ε), which has no unit: draws from the uniform distribution after which
        acting on the frequencies costs H(ε). None where S is not known.
    consistency_level : float
        NaN where it is not known.
    status : str
        "exact", "certified", "numerical", "loose" or "bounds".
    """

    name: str
    surrogate: str
    decoding: str
    lower: float
    upper: float
    draws_least: float | None
    draws_most: float | None
    consistency_level: float
    status: str
    method: str


@dataclass(frozen=True)
class SurrogateAdvice:
    """The comparison, the recommended surrogate (None if nothing can be compared) and the reason.

    Attributes
    ----------
    refused : tuple of (name, reason)
        Surrogates that the engine does not take for this loss, and why.
    """

    eps: float
    entries: tuple[SurrogateGuarantee, ...]
    recommended: SurrogateGuarantee | None
    reason: str
    refused: tuple[tuple[str, str], ...]


def choose_surrogate(loss: Loss | str, *, eps: float) -> SurrogateAdvice:
    """Compare surrogates by draws per calibrated excess, n(ε) = S/H(ε).

    H alone depends on the unit of the surrogate; n(ε) does not (`compare_surrogates` defines S). It
    compares worst-case calibration per draw at the least informative distribution, and states
    nothing of approximation by a model, of optimization, or of distributions with less noise. The
    quadratic surrogate has the loss's own scores, the others what they are trained with. For
    "linear-regret" it also depends on κ, here the largest loss: a larger κ has a lower figure and a
    stiffer surrogate.

    Examples
    --------
    >>> from consistruct.losses import ZeroOne
    >>> found = choose_surrogate(ZeroOne(10), eps=0.5)
    >>> [(entry.name, round(entry.draws_most, 1)) for entry in found.entries]
    [('quadratic', 7.2), ('logistic', 19.1), ('log, Bayes decoding', 34.4), ('linear-regret', 1.8)]
    >>> found.recommended.name
    'linear-regret'
    """
    loss = as_loss(loss)
    entries, refused = [], []
    for name, surrogate, decoding, limit in CANDIDATES:
        try:
            entries.append(_evaluate(loss, name, surrogate, decoding, limit, eps))
        except (ConsistructError, ValueError) as error:
            refused.append((name, str(error)))
    best, reason = _recommend(entries, eps)
    return SurrogateAdvice(eps, tuple(entries), best, reason, tuple(refused))


def _evaluate(
    loss: Loss, name: str, surrogate: str, decoding: str, limit: int | None, eps: float
) -> SurrogateGuarantee:
    function = calibration_function(loss, None, surrogate, decoding)
    listed = not function.method.startswith(("closed form", "bounds"))
    if limit is not None and listed and (loss.n_labels or 0) > limit:
        raise ConsistructError(
            f"its conic programs take too long here above {limit} labels, and there are "
            f"{loss.n_labels}; use compare_surrogates of consistruct.calibration to compute them"
        )
    if eps > function.max_eps:
        raise ConsistructError(
            f"no excess risk is above {function.max_eps:.17g}, so there is nothing to prove at "
            f"{eps}"
        )
    curve = compare_surrogates(loss, ((surrogate, decoding),), [eps]).curves[0]
    point, draws = curve.points[0], curve.draws[0]
    return SurrogateGuarantee(
        name,
        surrogate,
        decoding,
        point.lower,
        point.upper,
        None if draws is None else draws[0],
        None if draws is None else draws[1],
        curve.function.consistency_level,
        point.status,
        curve.function.method,
    )


def _recommend(
    entries: list[SurrogateGuarantee], eps: float
) -> tuple[SurrogateGuarantee | None, str]:
    known = [e for e in entries if e.draws_most is not None and math.isfinite(e.draws_most)]
    if not known:
        return None, f"no surrogate has a scale-free guarantee at an excess of {eps:g}"
    best = min(known, key=lambda e: e.draws_most or 0.0)
    others = [e for e in known if e is not best]
    if not others:
        return best, f"{best.name}: the only one with a scale-free guarantee at {eps:g}"
    proved = all((e.draws_least or 0.0) > (best.draws_most or 0.0) for e in others)
    shown = ", ".join(f"{e.name} {'at most ' * (not _tight(e))}{e.draws_most:.4g}" for e in others)
    kind = "the fewest" if proved else "the fewest that are guaranteed"
    return best, (
        f"{best.name}: n(ε) = S/H(ε) at ε = {eps:g} is {'at most ' * (not _tight(best))}"
        f"{best.draws_most:.4g} draws, {kind}; {shown}"
    )


def _tight(entry: SurrogateGuarantee) -> bool:
    return entry.status in ("exact", "certified", "numerical")
