"""The closed form: ridge regression of −u_y on the features, for a whole path of penalties."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import frozen_array
from consistruct._sparse import squared_entries, to_dense
from consistruct.learning.eigen import symmetric_eigen
from consistruct.learning.feature_maps import KernelFeatures
from consistruct.learning.normal_equations import accumulate
from consistruct.learning.penalty_search import FactoredRidge, search_penalty, selection_rows
from consistruct.learning.ridge_path import (
    OutputPenalty,
    PathScores,
    Spectrum,
    evaluate_path,
    penalty_grid,
    relative_grid,
)
from consistruct.learning.score_map import ScoreMap
from consistruct.learning.solver import BaseSolver, SolverResult, check_alpha, require
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.surrogates import QuadraticSurrogate

__all__ = ["ClosedForm", "DualRidge", "left_out_share"]

logger = logging.getLogger(__name__)

SELECTION_ROWS = 2048  # leave-one-out risks are averaged over at most so many rows
KERNEL_DECADES = (-9.0, 1.0)  # relative penalties tried by alpha="auto"


@dataclass(frozen=True, eq=False, repr=False)
class ClosedForm(BaseSolver):
    """min_W (1/N) Σ_i w_i Φ(Wᵀφ_i, y_i) + (α/2) tr(WᵀḠW) for the quadratic surrogate Φ, exactly.

    This is ridge regression of −u_y on φ(x): one factorisation serves all outputs and all α.
    The smaller of the primal (features × features) and the dual (examples × examples) problem is
    decomposed. The primal products are summed over chunks of rows, so memory is that of one chunk
    and of a features × features matrix, and inputs may be memory-mapped. float32 inputs on linear
    features are multiplied in float32 within chunks of a few thousand rows, and those partial
    sums are added in float64; everything else is float64.

    Parameters
    ----------
    alpha : "auto", float or sequence of float
        Penalty; of several ("auto": 21 between 1e-9 and 10 times the mean squared norm of the
        features) the one with the least leave-one-out risk.
    selection : "task_loss", "surrogate" or "gcv"
        Exact leave-one-out task loss (ties: surrogate risk), leave-one-out surrogate risk, or
        generalised cross-validation. The first two use at most 2048 rows, drawn at random.
    regularizer : "gram" or "weights"
        tr(WᵀḠW), free of the basis of the scores, or the paper's ‖W‖².
    form : "auto", "primal" or "dual"

    Examples
    --------
    >>> ClosedForm(alpha=0.1)
    ClosedForm(alpha=0.1)
    """

    alpha: Any = "auto"
    selection: Literal["task_loss", "surrogate", "gcv"] = "task_loss"
    regularizer: Literal["gram", "weights"] = "gram"
    form: Literal["auto", "primal", "dual"] = "auto"

    def __post_init__(self) -> None:
        alpha = check_alpha(self.alpha)
        if isinstance(alpha, np.ndarray):
            self._set(alpha=tuple(alpha.tolist()))
        _one_of("selection", self.selection, ("task_loss", "surrogate", "gcv"))
        _one_of("regularizer", self.regularizer, ("gram", "weights"))
        _one_of("form", self.form, ("auto", "primal", "dual"))

    @property
    def requires(self) -> tuple[type, ...]:
        return (QuadraticSurrogate,)

    def solve(
        self,
        surrogate: QuadraticSurrogate,
        score_map: ScoreMap,
        inputs: Any,
        true: ArrayLike,
        *,
        sample_weight: FloatArray | None = None,
        init: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> SolverResult:
        """Weights and the leave-one-out risks of every penalty that was compared."""
        require(self, surrogate, "use solver='lbfgs' or 'sgd' for other surrogates")
        n = inputs.shape[0]
        labels = np.asarray(true)
        weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
        space = surrogate.score_space
        penalty = (
            OutputPenalty.gram(space.width)
            if self.regularizer == "gram"
            else OutputPenalty.weights(space)
        )
        exact_kernel = isinstance(score_map.features, KernelFeatures)
        dual = exact_kernel or self.form == "dual"
        if self.form == "auto" and n < score_map.features.n_outputs:
            dual = True
        if dual:
            return self._dual(surrogate, score_map, inputs, labels, weight, penalty, rng)
        return self._primal(surrogate, score_map, inputs, labels, weight, penalty, rng)

    def _primal(
        self,
        surrogate: QuadraticSurrogate,
        score_map: ScoreMap,
        inputs: Any,
        true: LabelArray,
        weight: FloatArray,
        penalty: OutputPenalty,
        rng: np.random.Generator,
    ) -> SolverResult:
        if self._few_penalties(surrogate, score_map):
            return self._by_factors(surrogate, score_map, inputs, true, weight, rng)
        chosen = self._selection_rows(len(weight), rng)
        sums = accumulate(score_map, surrogate, inputs, true, weight, keep=chosen)
        values, vectors = symmetric_eigen(sums.second_moment)
        spectrum = Spectrum(
            np.maximum(values, 0.0),
            penalty.into(vectors.T @ sums.cross_moment),
            sums.total_weight,
            sums.mean_target,
            score_map.fit_intercept,
            penalty,
        )
        rows = None
        if chosen is not None:
            rows = np.asarray(sums.kept_rows @ vectors, dtype=np.float64)
        alpha, path = self._choose(
            spectrum, rows, chosen, weight, surrogate, true, sums.target_squares, sums.precision
        )
        coef = penalty.back(vectors @ spectrum.shrunk(alpha))
        intercept = sums.mean_target - sums.mean_feature @ coef
        return SolverResult(_with_intercept(score_map, coef, intercept), alpha, 1, path)

    def _few_penalties(self, surrogate: QuadraticSurrogate, score_map: ScoreMap) -> bool:
        """Whether there are so many outputs that the eigenbasis costs more than a few penalties."""
        size, width = score_map.features.n_outputs, surrogate.score_space.width
        searching = self.alpha == "auto" and self.selection != "gcv"
        return searching and self.regularizer == "gram" and size >= 256 and width >= size

    def _by_factors(
        self,
        surrogate: QuadraticSurrogate,
        score_map: ScoreMap,
        inputs: Any,
        true: LabelArray,
        weight: FloatArray,
        rng: np.random.Generator,
    ) -> SolverResult:
        """The same problem, with a search over penalties that are factored one by one."""
        size, width = score_map.features.n_outputs, surrogate.score_space.width
        limit = selection_rows(size, width, SELECTION_ROWS)
        chosen = self._selection_rows(len(weight), rng, limit)
        sums = accumulate(score_map, surrogate, inputs, true, weight, keep=chosen)
        ridge = FactoredRidge(sums, score_map.fit_intercept)
        trace = float(np.trace(sums.second_moment)) / sums.total_weight or 1.0
        grid = penalty_grid(trace, 10.0 * sums.precision * trace, KERNEL_DECADES)
        found = search_penalty(
            ridge,
            np.asarray(sums.kept_rows, dtype=np.float64),
            weight[chosen],
            left_out_share(weight)[chosen],
            surrogate,
            true[chosen],
            grid,
        )
        best = found.best(self.selection)
        alpha = float(found.alphas[best])
        logger.info(
            "closed form: alpha %.3g, %d of %d tried, leave-one-out task loss %.4f",
            alpha,
            len(found.alphas),
            len(grid),
            found.task_loss[best],
        )
        coef = ridge.coefficients(alpha)
        intercept = sums.mean_target - sums.mean_feature @ coef
        return SolverResult(_with_intercept(score_map, coef, intercept), alpha, 1, _path(found))

    def _dual(
        self,
        surrogate: QuadraticSurrogate,
        score_map: ScoreMap,
        inputs: Any,
        true: LabelArray,
        weight: FloatArray,
        penalty: OutputPenalty,
        rng: np.random.Generator,
    ) -> SolverResult:
        features = score_map.features.transform(inputs)
        exact_kernel = isinstance(score_map.features, KernelFeatures)
        kernel = features if exact_kernel else _inner_products(features)
        problem = DualRidge(
            kernel, surrogate.target(true), weight, penalty, fit_intercept=score_map.fit_intercept
        )
        chosen = self._selection_rows(len(weight), rng)
        rows = None if chosen is None else problem.rows[chosen]
        alpha, path = self._choose(
            problem.spectrum,
            rows,
            chosen,
            weight,
            surrogate,
            true,
            problem.target_squares,
            float(np.finfo(np.float64).eps),
        )
        expansion = problem.expansion(alpha)
        coef = expansion if exact_kernel else np.asarray(features.T @ expansion)
        return SolverResult(
            _with_intercept(score_map, coef, problem.intercept(kernel, expansion)), alpha, 1, path
        )

    def _selection_rows(self, n: int, rng: np.random.Generator, limit: int = SELECTION_ROWS) -> Any:
        """Sorted row numbers for the leave-one-out risks; None if there is nothing to compare."""
        one_candidate = isinstance(self.alpha, float | int)
        if one_candidate or self.selection == "gcv":
            return None
        if n <= limit:
            return np.arange(n)
        return np.sort(rng.choice(n, size=limit, replace=False))

    def _choose(
        self,
        spectrum: Spectrum,
        rows: FloatArray | None,
        chosen: Any,
        weight: FloatArray,
        surrogate: QuadraticSurrogate,
        true: LabelArray,
        target_squares: float,
        precision: float,
    ) -> tuple[float, dict[str, FloatArray]]:
        alphas = check_alpha(self.alpha)
        if isinstance(alphas, float):
            return alphas, {}
        if alphas is None:
            alphas = relative_grid(spectrum, precision, KERNEL_DECADES)
        if self.selection == "gcv":
            scores = _generalised_cross_validation(spectrum, target_squares, alphas)
            best = int(np.lexsort((-alphas, scores))[0])
            return float(alphas[best]), {"alphas": frozen_array(alphas), "gcv": scores}
        assert rows is not None
        found = evaluate_path(
            spectrum,
            rows,
            weight[chosen],
            left_out_share(weight)[chosen],
            surrogate,
            true[chosen],
            alphas,
        )
        best = found.best(self.selection)
        logger.info(
            "closed form: alpha %.3g of %d, leave-one-out task loss %.4f",
            alphas[best],
            len(alphas),
            found.task_loss[best],
        )
        return float(alphas[best]), _path(found)


class DualRidge:
    """The n × n form: K = ΦΦᵀ with the square roots of the weights on both sides, centred.

    K̃ = P W^{1/2} K W^{1/2} P with P projecting off √w (with an intercept) is decomposed as
    Q diag(s) Qᵀ; the coordinates of row i are z_i = √s ∘ Q_i / √w_i.
    """

    def __init__(
        self,
        kernel: FloatArray,  # (n, n)
        target: Target,  # (n, width): u, array or CSR
        weight: FloatArray,  # (n,), positive
        penalty: OutputPenalty,
        *,
        fit_intercept: bool,
    ) -> None:
        self.weight = weight
        self._root = np.sqrt(weight)
        total = float(weight.sum())
        centred = kernel * self._root[:, None] * self._root
        # rounding is relative to the kernel before centring, which may take most of it away
        noise = len(centred) * float(np.finfo(np.float64).eps) * float(np.trace(centred))
        unit = self._root / np.sqrt(total)
        if fit_intercept:
            image = centred @ unit
            centred -= unit[:, None] * image
            centred -= (image - (unit @ image) * unit)[:, None] * unit
        values, vectors = symmetric_eigen(centred)
        kept = values > noise
        self._values, self._vectors = values[kept], vectors[:, kept]
        if fit_intercept:  # √w has eigenvalue 0 and mixes with its small neighbours
            self._vectors -= np.outer(unit, unit @ self._vectors)
        mean = np.zeros(target.shape[1])
        if fit_intercept:
            mean = -np.asarray(target.T @ weight).ravel() / total
        # Qᵀ W^{1/2}(y − ȳ) with y = −u, without writing u densely
        weighted = self._vectors * self._root[:, None]
        self._moments = -np.asarray((target.T @ weighted).T) - np.outer(weighted.sum(axis=0), mean)
        squares = squared_entries(target)
        self.target_squares = float((squares.T @ weight).sum()) - total * float(mean @ mean)
        self.spectrum = Spectrum(
            self._values,
            np.sqrt(self._values)[:, None] * penalty.into(self._moments),
            total,
            mean,
            fit_intercept,
            penalty,
        )

    @property
    def rows(self) -> FloatArray:
        """z_i, (n, p)."""
        return self._vectors * np.sqrt(self._values) / self._root[:, None]

    def expansion(self, alpha: float) -> FloatArray:
        """Coefficients c (n, width) with θ(x) = Σ_i c_i k(x, x_i) + b."""
        spectrum = self.spectrum
        inner = self._vectors @ (spectrum.shrunk(alpha) / np.sqrt(self._values)[:, None])
        return self._root[:, None] * spectrum.penalty.back(inner)

    def intercept(self, kernel: FloatArray, expansion: FloatArray) -> FloatArray:
        if not self.spectrum.fit_intercept:
            return self.spectrum.mean_target
        share = self.weight / self.spectrum.total_weight
        return self.spectrum.mean_target - (share @ kernel) @ expansion


def left_out_share(weight: FloatArray) -> FloatArray:
    """Share of each row that leave-one-out leaves out.

    Weights that are all whole numbers count repetitions, and one of them is left out. Other
    weights say how much a row matters, and all of it is left out.
    """
    if np.array_equal(weight, np.rint(weight)):
        return 1.0 / weight
    return np.ones(len(weight))


def _inner_products(features: Any) -> FloatArray:
    product = features @ features.T
    return np.asarray(to_dense(product), dtype=np.float64)


def _with_intercept(score_map: ScoreMap, coef: FloatArray, intercept: FloatArray) -> FloatArray:
    return np.vstack([coef, intercept]) if score_map.fit_intercept else coef


def _generalised_cross_validation(
    spectrum: Spectrum, target_squares: float, alphas: FloatArray
) -> FloatArray:
    """N·RSS/(N − df)² of each penalty, summed over the outputs; needs no pass over the data."""
    values, total = spectrum.eigenvalues[:, None], spectrum.total_weight
    scores = np.empty(len(alphas))
    for position, alpha in enumerate(alphas):
        denominators = spectrum._denominators(float(alpha), spectrum.penalty.factor)
        explained = spectrum.moments**2 * (2.0 / denominators - values / denominators**2)
        freedom = float((values / denominators).sum(axis=0).mean()) + spectrum.fit_intercept
        remaining = max(1.0 - freedom / total, 1e-10)
        scores[position] = (target_squares - float(explained.sum())) / total / remaining**2
    return scores


def _path(found: PathScores) -> dict[str, FloatArray]:
    return {
        "alphas": found.alphas,
        "task_loss": found.task_loss,
        "surrogate_risk": found.surrogate_risk,
        "task_error": found.task_error,
    }


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
