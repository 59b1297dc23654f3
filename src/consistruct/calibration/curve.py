"""The calibration function as an object: its points, what a method must return, and the curve.

A `Method` computes `CurvePoint`s, one for each ε; `CalibrationFunction` calls it, remembers the
results and derives from them whatever is true of every curve (envelope, inverse, pieces).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from consistruct.calibration.bounds import expresses
from consistruct.calibration.envelope import (
    Envelope,
    as_rows,
    envelope_from_floor,
    envelope_from_values,
)
from consistruct.calibration.methods.orbits.closed_forms import Quadratic
from consistruct.calibration.problem.distributions import Distributions
from consistruct.calibration.proofs import Certificate
from consistruct.calibration.proofs.base import down, log_down, log_up, up
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Structure
from consistruct.structures.base import EffectiveClasses

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from consistruct.calibration.methods.nonquadratic.pairs import Witness

__all__ = [
    "CalibrationFunction",
    "CurvePoint",
    "Method",
    "Progress",
    "Status",
    "at_each",
    "status_of",
]

Progress = Callable[[int, int], None]  # done, total
Status = Literal["exact", "certified", "numerical", "rounding", "loose", "bounds", "infeasible"]

TOLERANCE = 1e-6  # relative width of what counts as certified
ROUNDING = 1e-11  # share by which coefficients of pieces and of Theorem 7 may be off
REFINEMENTS = 12  # of the inverse


@dataclass(frozen=True)
class CurvePoint:
    """H(ε) within [scaled_lower, scaled_upper] · scale.

    Attributes
    ----------
    status : str
        "exact": a closed form; "certified": proved, relative width at most 1e-6; "numerical": as
        narrow, but the bounds are evaluated in floats; "rounding": zero up to rounding errors;
        "loose": solved, but wider; "bounds": only bounds are known; "infeasible": no excess risk
        of ε exists, H = +inf.
    method : str
        Which method was used.
    pair : tuple or None
        The labels (i, j): j is predicted though i is better.
    scale : Fraction or None
        exp(log_scale) where that is a rational, as 1/k is: then all ends are rounded outward.
    """

    eps: float
    scaled_lower: float
    scaled_upper: float
    log_scale: float
    method: str
    status: Status
    pair: tuple[Any, Any] | None = None
    scale: Fraction | None = None

    @property
    def log_lower(self) -> float:
        return self._outward(self.scaled_lower, log_down, _log)

    @property
    def log_upper(self) -> float:
        return self._outward(self.scaled_upper, log_up, _log)

    @property
    def lower(self) -> float:
        return self._outward(self.scaled_lower, down, _value)

    @property
    def upper(self) -> float:
        return self._outward(self.scaled_upper, up, _value)

    def _outward(
        self,
        scaled: float,
        rounded: Callable[[Fraction], float],
        floating: Callable[[float, float], float],
    ) -> float:
        """An end times the scale: rounded outward where the scale is a rational."""
        if self.scale is not None and math.isfinite(scaled):
            return rounded(Fraction(scaled) * self.scale)
        return floating(scaled, self.log_scale)


def _log(scaled: float, log_scale: float) -> float:
    if scaled == 0:
        return -math.inf
    return math.log(scaled) + log_scale if math.isfinite(scaled) else math.inf


def _value(scaled: float, log_scale: float) -> float:
    if scaled == 0 or math.isinf(scaled):
        return scaled
    return scaled * math.exp(log_scale) if log_scale > -700 else math.exp(_log(scaled, log_scale))


def status_of(lower: float, upper: float, scale: float) -> Status:
    """Judge an interval; `scale` is a typical value of H at the largest ε."""
    if math.isinf(lower):
        return "infeasible"
    if math.isinf(upper):
        return "bounds"
    if upper - lower <= TOLERANCE * upper:
        return "certified"
    return "rounding" if upper <= 1e-13 * scale else "loose"


class Method(ABC):
    """Computes points of one curve."""

    name: str
    log_scale: float = 0.0
    scale: Fraction | None = None  # exp(log_scale), where that is a rational
    fast_pieces: bool = False  # whether `pieces` are known, or computed in well under a second
    most_values: int = 512  # evaluations that an envelope may take for each ε in question
    only_theorem_7: bool = False  # whether the lower ends are those of Theorem 7 anyway

    @property
    @abstractmethod
    def max_eps(self) -> float:
        """Largest feasible ε; H = +inf above it."""

    @abstractmethod
    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        """H at positive ε ≤ max_eps."""

    @abstractmethod
    def certificate(self, eps: float) -> Certificate:
        """Certificate of the value at ε."""

    @property
    def consistency_level(self) -> float:
        """sup{ε : H(ε) = 0}; 0 where the scores express the loss."""
        return 0.0

    @property
    def level_interval(self) -> tuple[float, float]:
        """Floats around sup{ε : H(ε) = 0}."""
        return self.consistency_level, self.consistency_level

    @property
    def level_reason(self) -> str | None:
        """Why the two are apart, if they are."""
        return None

    @property
    def approximation_error(self) -> float:
        """What the labels that can be predicted cost against all labels; 0 where F expresses L."""
        return 0.0

    @property
    def witness(self) -> Witness:
        """The distribution and the pair at the consistency level."""
        raise ConsistructError(f"the method '{self.name}' provides no witness")

    def pair_at(self, eps: float) -> tuple[Any, Any] | None:
        """A pair that is hard at ε, where one can be named without solving anything."""
        return None

    def floor(self) -> FloatArray | None:
        """(n, 5) rows as `Envelope` takes them, from all that was solved so far; None: no such.

        A value at ε must raise them to its lower end there: then supporting lines need few values.
        """
        return None

    def pieces(self) -> tuple[Quadratic, ...]:
        """H·exp(−log_scale) as quadratics."""
        raise ConsistructError(
            f"the method '{self.name}' does not resolve the whole curve; use interval(eps)"
        )


def at_each(
    eps: FloatArray, point: Callable[[float], CurvePoint], progress: Progress | None
) -> list[CurvePoint]:
    """One point after the other."""
    found = []
    for done, value in enumerate(eps.tolist()):
        found.append(point(value))
        if progress is not None:
            progress(done + 1, len(eps))
    return found


class CalibrationFunction:
    """H(ε): the least excess surrogate risk that an excess task risk of ε forces.

    If the surrogate risk is within H(ε) of its optimum, the task risk is within ε of its own.
    Made by `consistruct.calibration_function`; evaluates lazily and remembers what it computed.

    Attributes
    ----------
    loss, scores
        What it is about.
    method : str
        Which method is used.
    distributions : Distributions or None
        Which distributions of the true label it covers; None: all.
    refusals : tuple of str
        Why the methods that come before it in the order did not.
    """

    def __init__(
        self,
        loss: Loss,
        scores: Structure,
        method: Method,
        refusals: tuple[str, ...],
        surrogate: str = "quadratic",
        decoding: str = "argmax",
        distributions: Distributions | None = None,
    ) -> None:
        self.loss = loss
        self.scores = scores
        self.surrogate = surrogate
        self.decoding = decoding
        self.distributions = distributions
        self._method = method
        self.refusals = refusals
        self._cache: dict[float, CurvePoint] = {}

    def __repr__(self) -> str:
        return f"<calibration function of {self.loss!r} with {self.scores!r}, {self.method}>"

    def _repr_html_(self) -> str:
        from consistruct.calibration.card import calibration_card  # in notebooks only

        return calibration_card(self)

    @property
    def computed(self) -> dict[float, CurvePoint]:
        """The values that were computed so far, by ε."""
        return dict(self._cache)

    @property
    def method(self) -> str:
        return self._method.name

    @property
    def measure(self) -> str:
        """Reference measure on the predictions."""
        return self.scores.measure

    # --- values ---

    def curve(self, eps: ArrayLike, *, progress: Progress | None = None) -> list[CurvePoint]:
        """Points with bounds, method, pair and status, in the order given."""
        values = np.atleast_1d(np.asarray(eps, dtype=np.float64)).ravel()
        if np.isnan(values).any() or (values < 0).any() or np.isinf(values).any():
            raise ValueError(f"eps must be finite and non-negative, got {eps!r}")
        limit = self._method.max_eps
        todo = np.array(
            sorted({e for e in values.tolist() if e not in self._cache and 0 < e <= limit})
        )
        if len(todo):
            for point in self._method.points(todo, progress):
                self._cache[point.eps] = point
        return [self._cache.get(e) or self._trivial(e) for e in values.tolist()]

    def _trivial(self, eps: float) -> CurvePoint:
        value = 0.0 if eps == 0 else math.inf
        status = "exact" if eps == 0 else "infeasible"
        return CurvePoint(eps, value, value, self._method.log_scale, "definition", status)  # type: ignore[arg-type]

    def __call__(self, eps: ArrayLike) -> Any:
        """The certified lower end of H(ε): a float, or an array of the shape of `eps`."""
        return _shaped(eps, [point.lower for point in self.curve(eps)])

    def interval(self, eps: ArrayLike) -> tuple[Any, Any]:
        """(lower, upper): H(ε) lies between them."""
        points = self.curve(eps)
        return (
            _shaped(eps, [point.lower for point in points]),
            _shaped(eps, [point.upper for point in points]),
        )

    def log(self, eps: ArrayLike) -> Any:
        """log of the lower end: finite where H itself underflows (H carries 1/k)."""
        return _shaped(eps, [point.log_lower for point in self.curve(eps)])

    def certificate(self, eps: float) -> Certificate:
        """Certificate of H(ε): pair, distribution, scores, multipliers, what covers other pairs."""
        if not 0 < eps <= self._method.max_eps:
            raise ValueError(f"eps must be in (0, max_eps = {self.max_eps:.17g}], got {eps}")
        return self._method.certificate(float(eps))

    # --- the whole curve ---

    @property
    def max_eps(self) -> float:
        """Largest possible excess task risk; H = +inf above it."""
        return self._method.max_eps

    @property
    def consistency_level(self) -> float:
        """sup{ε : H(ε) = 0}, or less where `consistency_interval` is wide: 0 means consistent."""
        return self._method.consistency_level

    @property
    def consistency_interval(self) -> tuple[float, float]:
        """(lower, upper): the consistency level lies between them."""
        return self._method.level_interval

    @property
    def consistency_reason(self) -> str | None:
        """Why the consistency level is known by bounds only, where it is."""
        return self._method.level_reason

    @property
    def approximation_error(self) -> float:
        """What is lost because only some labels can be predicted, in the worst case."""
        return self._method.approximation_error

    @property
    def witness(self) -> Witness:
        """The distribution at the consistency level and its pair; not for the quadratic surrogate.

        Under this distribution the surrogate's optimum predicts j though i is better by the level.
        """
        return self._method.witness

    @cached_property
    def effective_classes(self) -> EffectiveClasses | None:
        """k_eff with H ≥ ε²/(4 k_eff); None where the scores do not express the loss.

        None too for other surrogates than the quadratic.
        """
        if self.surrogate != "quadratic" or not expresses(self.loss, self.scores):
            return None
        return self.scores.effective_classes()

    @cached_property
    def pieces(self) -> tuple[Quadratic, ...]:
        """H as quadratics a·ε² + b·ε + c on intervals (low, high], +inf above the last.

        Raises ConsistructError where the curve is not resolved exactly.
        """
        if self.surrogate != "quadratic":
            raise ConsistructError(
                f"only the quadratic surrogate has quadratic pieces, not {self.surrogate!r}; "
                f"use interval(eps)"
            )
        scale = self._method.scale
        factor = math.exp(self._method.log_scale) if scale is None else float(scale)
        if factor == 0:
            raise ConsistructError(
                "the coefficients underflow (H carries 1/k); use log(eps) or curve(eps)"
            )
        return tuple(
            Quadratic(p.low, p.high, p.a * factor, p.b * factor, p.c * factor)
            for p in self._method.pieces()
        )

    def envelope(
        self, at: ArrayLike = (), *, eps: ArrayLike | None = None, tolerance: float = 0.01
    ) -> Envelope:
        """The largest convex function below H, exact where H is known by pieces.

        That is so for closed forms, for up to four listed labels, and wherever `pieces` was
        requested for before. Where H is known by values only the envelope is that of the steps
        between them, with the bound of Theorem 7 taken in; `Envelope.gap` states how far it may be
        off.

        Parameters
        ----------
        at : array
            Where it is needed: values are added until N* (which goes as 1/Ȟ²) is within
            `tolerance` there, or as close as the certified values allow.
        eps : array, optional
            Where H is evaluated to begin with (which may be known already); 201 values if not
            given, 33 with `at`.
        tolerance : float
            Share of N*.
        """
        wanted = np.unique(np.asarray(at, dtype=np.float64).ravel())
        if not (np.isfinite(wanted) & (wanted >= 0)).all():
            raise ValueError(f"at must be finite and non-negative, got {at!r}")
        scale = self._method.log_scale
        if self.max_eps == 0:
            return Envelope(np.zeros((0, 5)), 0.0, scale)
        k_eff = self.effective_classes
        if self._method.only_theorem_7 and k_eff is not None:
            row = np.array([[0.0, self.max_eps, 0.25 * (1 - ROUNDING), 0.0, 0.0]])
            return Envelope(row, self.max_eps, -k_eff.log, "theorem 7")
        if self._method.fast_pieces:
            rows = as_rows(self._method.pieces())
            return Envelope(rows * (1, 1, *(1 - ROUNDING,) * 3), self.max_eps, scale)
        if len(wanted) and self._method.floor() is not None:
            return envelope_from_floor(
                lambda: self._method.floor(),  # type: ignore[arg-type,return-value]
                self._ends,
                max_eps=self.max_eps,
                log_scale=scale,
                at=wanted[(wanted > 0) & (wanted <= self.max_eps)],
                tolerance=tolerance,
            )
        grid = np.linspace(0.0, self.max_eps, 33 if len(wanted) else 201) if eps is None else eps
        level = 0.0 if math.isnan(self.consistency_level) else self.consistency_level
        inside = np.append(np.asarray(grid, dtype=np.float64), [*wanted.tolist(), level])
        inside = inside[(inside > 0) & (inside < self.max_eps)]
        quadratic = 0.0 if k_eff is None else math.exp(-k_eff.log - scale) / 4 * (1 - ROUNDING)
        return envelope_from_values(
            self._ends,
            np.concatenate([[0.0], np.unique(inside), [self.max_eps]]),
            quadratic=quadratic,
            log_scale=scale,
            at=wanted[wanted > level],
            tolerance=tolerance,
            most=self._method.most_values,
        )

    def _ends(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        points = self.curve(eps)
        return (
            np.array([point.scaled_lower for point in points]),
            np.array([point.scaled_upper for point in points]),
        )

    def inverse(self, delta: float) -> float:
        """sup{ε : Ȟ(ε) ≤ δ}: the excess task risk that an excess surrogate risk δ allows."""
        if not delta >= 0:
            raise ValueError(f"delta must be non-negative, got {delta}")
        return self.inverse_log(math.log(delta) if delta > 0 else -math.inf)

    def inverse_log(self, log_delta: float) -> float:
        """`inverse` at δ = exp(log_delta), for δ below all floats.

        Where H is known by values only they are refined until the result moves by less than 0.1 %.
        At δ = 0 it is the consistency level: H does not fall, so that Ȟ is positive wherever H is.
        """
        if log_delta == -math.inf:
            return min(self.consistency_interval[1], self.max_eps)
        eps = self._envelope.inverse_log(log_delta)
        if self._envelope.source != "values":
            return eps
        for _ in range(REFINEMENTS):
            if eps == 0:
                break
            refined = self.envelope(eps).inverse_log(log_delta)
            moved, eps = eps - refined, min(eps, refined)
            if moved <= 1e-3 * eps:
                break
        return eps

    @property
    def _envelope(self) -> Envelope:
        """The envelope for `inverse`: kept, but not beyond the moment when pieces are known."""
        found = self.__dict__.get("_known_envelope")
        if found is None or (found.source == "values" and self._method.fast_pieces):
            found = self.__dict__["_known_envelope"] = self.envelope()
        return found

    def plot(self, ax: Axes | None = None, *, n_grid: int = 201) -> Axes:
        """Draw the certified band, Theorem 7 and the convex envelope."""
        from consistruct.calibration.plotting import curve_chart
        from consistruct.charts.pictures import draw_chart

        return draw_chart(curve_chart(self, n_grid), ax)


def _shaped(eps: ArrayLike, values: list[float]) -> Any:
    if np.ndim(eps) == 0:
        return values[0]
    shaped: FloatArray = np.array(values).reshape(np.shape(eps))
    return shaped
