"""The closed form on an accelerator: sums in chunks, one Cholesky factor per penalty.

With A the centered second moment, M the penalty matrix (the identity, or K_mm of Nyström centers)
and λ = Nα, the weights are (A + λM + νI)⁻¹m. ν is twice the rounding noise of A: it damps the
directions that the sums could not resolve and nothing else, so that single precision is safe
wherever what is damped does not matter. Whether it matters is tried, not assumed: first on some
rows, in both precisions, judged by the task loss of rows left out; then on all, by damping twice as
much, since more rows resolve more directions.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from consistruct._members import Member, frozen_array
from consistruct._validation import check_alpha
from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.base import OutOfFold
from consistruct.learning.models.features.feature_maps import ScoreMap
from consistruct.learning.models.ridge.closed_form import RidgeFit
from consistruct.learning.models.ridge.device_sums import (
    DeviceFeatures,
    DevicePass,
    accumulate_on,
    as_tensor,
    single_products,
)
from consistruct.learning.models.ridge.selection import (
    LEVERAGE_LIMIT,
    SELECTION_ROWS,
    ValidationRows,
    out_of_fold_share,
    penalty_grid,
)
from consistruct.protocols import FloatArray, IntArray

__all__ = ["DeviceClosedForm", "predict_on", "some_rows"]

logger = logging.getLogger(__name__)

PILOT_ROWS = 2**15  # rows on which both precisions are tried
DAMPED = 0.005  # of the explained variance: more than that lost to twice the damping matters
FEW = 5  # grid points that are tried first; the rest around the best of them
DOUBLE = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False, repr=False)
class DeviceClosedForm(Member):
    """Ridge regression of τ(y) on the features, on a device of PyTorch.

    Parameters
    ----------
    device : str
        "cuda", "cuda:1", "cpu" …
    precision : {"auto", "double", "single"}
        Of the products. "single" is TF32 on GPUs that have it, float32 elsewhere; factors and
        solutions are float64 always. "auto" takes "single" where a trial on some rows finds the
        same out-of-fold task loss within its standard error and rounding takes nothing from the fit
        on all rows, "double" otherwise and on the host.
    selection : {"gcv", "surrogate", "task_loss"}
        How one of several penalties is chosen: generalized cross-validation, or out-of-fold rows.

    Examples
    --------
    >>> DeviceClosedForm("cpu")
    DeviceClosedForm('cpu')
    """

    device: str
    precision: Literal["auto", "double", "single"] = "auto"
    selection: Literal["gcv", "surrogate", "task_loss"] = "gcv"

    def __post_init__(self) -> None:
        for name, allowed in (
            ("precision", ("auto", "double", "single")),
            ("selection", ("gcv", "surrogate", "task_loss")),
        ):
            if getattr(self, name) not in allowed:
                listed = ", ".join(map(repr, allowed))
                raise ValueError(f"{name} must be one of {listed}, got {getattr(self, name)!r}")

    def solve(
        self,
        statistic: Statistic,
        score_map: ScoreMap,
        inputs: Any,
        true: Any,
        *,
        alpha: Any = "auto",
        sample_weight: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> tuple[RidgeFit, str]:
        """The fit, and the precision that was used; inputs may be arrays or tensors."""
        device = device_named(self.device)
        n = inputs.shape[0]
        weight = np.broadcast_to(np.ones(1), n)  # of a billion rows, without a number for each
        if sample_weight is not None:
            weight = np.asarray(sample_weight, np.float64)
        problem = _Problem(statistic, score_map, inputs, true, weight, check_alpha(alpha), device)
        precision: str = self.precision
        if precision == "auto":
            precision = "double" if device.type == "cpu" else self._tried(problem, rng)
        kept = np.arange(min(n, SELECTION_ROWS))
        if n > SELECTION_ROWS:
            kept = np.sort(rng.choice(n, size=SELECTION_ROWS, replace=False))
        fit, lost = problem.fit(kept, precision, self.selection)
        if self.precision == "auto" and precision == "single" and lost > DAMPED:
            logger.info(
                "closed form on %s: rounding costs %.2g of the explained variance: once more in "
                "double precision",
                self.device,
                lost,
            )
            precision = "double"
            fit, _ = problem.fit(kept, precision, self.selection)
        return fit, precision

    def _tried(self, problem: _Problem, rng: np.random.Generator) -> str:
        """The lower precision that is as good, by the task loss of rows left out."""
        n = problem.inputs.shape[0]
        rows = np.sort(rng.choice(n, size=min(n, PILOT_ROWS), replace=False))
        part = problem.some(rows)
        kept = np.arange(min(len(rows), SELECTION_ROWS))
        losses = []
        for precision in ("double", "single"):
            left = part.fit(kept, precision, self.selection)[0].out_of_fold
            pred = problem.statistic.decode(left.expected)
            losses.append(problem.statistic.loss(pred, part.host_codes(kept)))
        gap = losses[1] - losses[0]
        error = max(float(np.std(losses[0])), float(np.std(gap))) / np.sqrt(len(gap))
        chosen = "single" if float(gap.mean()) <= error else "double"
        logger.info(
            "closed form on %s: out-of-fold task loss %.5g in double, %.5g in single precision "
            "(standard error %.2g): %s precision",
            self.device,
            losses[0].mean(),
            losses[1].mean(),
            error,
            chosen,
        )
        return chosen


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is to be solved."""

    statistic: Statistic
    score_map: ScoreMap
    inputs: Any
    true: Any
    weight: FloatArray
    alpha: float | FloatArray | None
    device: Any

    def some(self, rows: IntArray) -> _Problem:
        """The same problem on some of the rows."""
        return _Problem(
            self.statistic,
            self.score_map,
            some_rows(self.inputs, rows),
            some_rows(self.true, rows),
            self.weight[rows],
            self.alpha,
            self.device,
        )

    def host_codes(self, rows: IntArray) -> Any:
        found = some_rows(self.true, rows)
        return found.cpu().numpy() if hasattr(found, "cpu") else found

    def fit(self, kept: IntArray, precision: str, criterion: str) -> tuple[RidgeFit, float]:
        """The fit, and what share of the explained variance twice the damping would take."""
        import torch

        dtype = torch.float64 if precision == "double" else torch.float32
        features = DeviceFeatures(self.score_map.features, self.device, dtype)
        found = accumulate_on(
            features, self.statistic, self.inputs, self.true, self.weight, keep=kept
        )
        if not self.score_map.fit_intercept:
            found = found.about_zero()
        alike = self.weight.strides == (0,)  # every row counts once
        share = np.ones(len(kept)) if alike else out_of_fold_share(self.weight)[kept]
        left = ValidationRows(self.statistic, self.host_codes(kept), self.weight[kept], share)
        path = _Path(found, features.penalty(), self.score_map.fit_intercept, left)
        alpha, compared = path.choose(self.alpha, criterion)
        coef, estimates = path.solution(alpha)
        coef = coef.cpu().numpy()
        sums = found.moments
        intercept = sums.mean_target.cpu().numpy() - sums.mean_feature.cpu().numpy() @ coef
        weights = np.vstack([coef, intercept]) if self.score_map.fit_intercept else coef
        lost = 0.0 if precision == "double" else path.lost_to_damping(alpha)
        return RidgeFit(weights, alpha, compared, OutOfFold(kept, estimates)), lost


class _Path:
    """Solutions for any penalty from the sums, each by one Cholesky factor on the device."""

    def __init__(
        self, found: DevicePass, penalty: Any, fit_intercept: bool, left: ValidationRows
    ) -> None:
        import torch

        sums: Any = found.moments
        self.kept_rows = found.kept_rows
        self.sums, self.penalty, self.fit_intercept, self.left = sums, penalty, fit_intercept, left
        self.size = sums.second_moment.shape[0]
        diagonal = sums.second_moment.diagonal()
        self.trace = float(diagonal.sum())
        # rounding of the sums, and of the factorization itself
        self.floor = 2.0 * found.noise + 10.0 * DOUBLE * self.trace
        y = torch.as_tensor(left.target(slice(None))).to(sums.cross_moment)
        self.target = y - sums.mean_target

    def _penalized(self, alpha: float) -> Any:
        """λM + νI, (m, m)."""
        strength = self.sums.total_weight * alpha
        if self.penalty is None:
            added = self.sums.second_moment.new_zeros((self.size, self.size))
        else:
            added = strength * self.penalty
            strength = 0.0
        added.diagonal().add_(strength + self.floor)
        return added

    def _factor(self, alpha: float) -> Any:
        import torch

        whole = self._penalized(alpha)
        whole += self.sums.second_moment
        factor, failed = torch.linalg.cholesky_ex(whole)
        if int(failed):
            raise ValueError(
                f"alpha={alpha:g} is too small: the features are dependent up to rounding; choose "
                "a larger alpha, or 'auto'"
            )
        return factor

    def grid(self) -> FloatArray:
        """The penalties that alpha="auto" tries."""
        total = self.sums.total_weight
        if self.penalty is not None:  # features of a kernel have its diagonal as squared norm
            return penalty_grid(float(self.penalty.diagonal().mean()), 0.0, DOUBLE)
        return penalty_grid(self.trace / total, 0.0, DOUBLE)

    def choose(
        self, alphas: float | FloatArray | None, criterion: str
    ) -> tuple[float, dict[str, FloatArray]]:
        """The best penalty and what was compared; a long grid is searched from coarse to fine."""
        if isinstance(alphas, float):
            return alphas, {}
        grid = np.sort(self.grid() if alphas is None else alphas)
        scores: dict[int, float] = {}

        def score(position: int) -> float:
            if position not in scores:
                scores[position] = self._score(float(grid[position]), criterion)
            return scores[position]

        tried = np.unique(np.linspace(0, len(grid) - 1, min(FEW, len(grid))).round().astype(int))
        for position in tried:
            score(int(position))
        while True:  # neighbors of the best until it is the best of them; ties: more penalty
            best = min(scores, key=lambda p: (scores[p], -p))
            around = [p for p in (best - 1, best + 1) if 0 <= p < len(grid) and p not in scores]
            if not around:
                break
            for position in around:
                score(position)
        order = np.array(sorted(scores))
        compared = np.array([scores[int(p)] for p in order])
        logger.info("closed form: alpha %.3g of %d by %s", grid[best], len(order), criterion)
        return float(grid[best]), {"alphas": frozen_array(grid[order]), criterion: compared}

    def _score(self, alpha: float, criterion: str) -> float:
        import torch

        if criterion != "gcv":
            estimates = self.solution(alpha)[1]
            own = self.left.target(slice(None))
            share = self.left.weight / self.left.weight.sum()
            if criterion == "surrogate":
                return float(share @ self.left.statistic.squared_error(own - estimates))
            pred = self.left.statistic.decode(estimates)
            return float(share @ self.left.statistic.loss(pred, self.left.true))
        factor = self._factor(alpha)
        sums = self.sums
        z = torch.cholesky_solve(sums.cross_moment, factor)
        fitted = (sums.cross_moment * z).sum()
        spread = (z * (sums.second_moment @ z)).sum()
        remaining = sums.target_squares - 2.0 * float(fitted) + float(spread)
        # df = tr (A + P)⁻¹A = m − tr (A + P)⁻¹P with P = CCᵀ
        root = torch.linalg.cholesky_ex(self._penalized(alpha))[0]
        freedom = self.size - float(
            torch.linalg.solve_triangular(factor, root, upper=False).square().sum()
        )
        share = max(1.0 - (freedom + self.fit_intercept) / sums.total_weight, 1e-10)
        return max(remaining, 0.0) / sums.total_weight / share**2

    def lost_to_damping(self, alpha: float) -> float:
        """Share of the explained variance that twice the damping would take."""
        own = self._score(alpha, "gcv")
        explained = self.sums.target_squares / self.sums.total_weight - own
        once = self.floor
        self.floor = 2.0 * once
        lost = self._score(alpha, "gcv") - own
        self.floor = once
        return lost / explained if explained > 0 else 0.0

    def solution(self, alpha: float) -> tuple[Any, FloatArray]:
        """Weights of the features, (m, width), and exact out-of-fold estimates of the kept rows."""
        import torch

        factor, sums = self._factor(alpha), self.sums
        coef = torch.cholesky_solve(sums.cross_moment, factor)
        half = torch.linalg.solve_triangular(factor, self.kept_rows.T, upper=False)
        leverage = half.square().sum(0) + float(self.fit_intercept) / sums.total_weight
        weight = torch.as_tensor(self.left.share * self.left.weight).to(leverage)
        part = 1.0 - (weight * leverage).clamp(max=LEVERAGE_LIMIT)
        fitted = self.kept_rows @ coef
        estimates = self.target - (self.target - fitted) / part[:, None] + sums.mean_target
        return coef, estimates.cpu().numpy()


def device_named(name: str) -> Any:
    """A device of this machine."""
    try:
        import torch
    except ImportError:
        raise ImportError("Ridge(device=…) needs PyTorch: pip install consistruct[torch]") from None
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"device must be None or a device of this machine such as 'cpu' or 'cuda', got "
            f"{name!r} ({reason})"
        ) from None


def predict_on(
    name: str, precision: str, score_map: ScoreMap, weights: FloatArray, inputs: Any
) -> FloatArray:
    """Wᵀφ(x) + b in chunks on the device, (n, width) on the host."""
    import torch

    device = device_named(name)
    dtype = torch.float64 if precision == "double" else torch.float32
    features = DeviceFeatures(score_map.features, device, dtype)
    coef, intercept = (
        torch.as_tensor(part.copy()).to(device, dtype) for part in score_map.split(weights)
    )
    rows = max(1, 2**26 // max(1, score_map.features.n_outputs))
    parts = []
    with single_products(False):
        for start in range(0, inputs.shape[0], rows):
            phi = features(as_tensor(inputs[start : start + rows], device, dtype))
            parts.append((phi @ coef + intercept).double().cpu().numpy())
    return np.concatenate(parts)


def some_rows(values: Any, rows: IntArray) -> Any:
    """Rows of an array or a tensor, where it is."""
    import torch

    if isinstance(values, torch.Tensor):
        return values[torch.as_tensor(rows).to(values.device)]
    return values[rows]
