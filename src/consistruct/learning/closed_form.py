"""The closed form: ridge regression of −u_y on the features, for a whole path of penalties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_number
from consistruct.learning.contrast import with_contrast
from consistruct.learning.dual_ridge import DualRidge, inner_products
from consistruct.learning.eigen import symmetric_eigen
from consistruct.learning.feature_maps import KernelFeatures
from consistruct.learning.gcv_path import fit_from_moments
from consistruct.learning.kernel_cholesky import CholeskyRidge, choose_by_factors
from consistruct.learning.normal_equations import Moments, accumulate
from consistruct.learning.penalty_search import fit_by_search, selection_rows
from consistruct.learning.ridge_path import OutputPenalty, Spectrum, left_out_share
from consistruct.learning.score_map import ScoreMap
from consistruct.learning.selection import SELECTION_ROWS, Choice, Selection
from consistruct.learning.solver import BaseSolver, SolverResult, check_alpha, require
from consistruct.protocols import FloatArray, LabelArray
from consistruct.surrogates import QuadraticSurrogate

__all__ = ["ClosedForm"]

# expansion (n, width), intercept, what was chosen, mean score
_DualSolution = tuple[FloatArray, FloatArray, Choice, FloatArray]

LEAVE_ONE_OUT_ROWS = 16_384  # above, and with ROWS_PER_FEATURE, "auto" selects by GCV
ROWS_PER_FEATURE = 32
EIGEN_ROWS = 3072  # larger kernel matrices are factorised for few penalties instead of decomposed


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
        features) the one with the least leave-one-out risk. Where there are at least as many
        outputs as features, and 256 of these, "auto" tries about eight of the 21.
    selection : "auto", "task_loss", "surrogate" or "gcv"
        Exact leave-one-out task loss (ties: surrogate risk), leave-one-out surrogate risk, or
        generalised cross-validation. The first two use at most 2048 rows, drawn at random, except
        for kernel matrices of more than 3072 rows, where all rows count. "auto" is "task_loss",
        and "gcv" for more than 16,384 rows that are also 32 times as many as the features: the
        penalty hardly matters there, and generalised cross-validation needs no rows.
    regularizer : "gram" or "weights"
        tr(WᵀḠW), free of the basis of the scores, or the paper's ‖W‖².
    form : "auto", "primal" or "dual"
    contrast : "auto" or float
        Decisions use θ̄ + c(θ − θ̄), θ̄ the mean target (0 without intercept): c > 1 undoes the
        shrinkage of the penalty.
        "auto" takes the c of 1, 1.25, 1.5, 2, 3 and 5 with the least leave-one-out task loss, and 1
        where no task loss was compared (one penalty given as a number, or another selection).

    Examples
    --------
    >>> ClosedForm(alpha=0.1)
    ClosedForm(alpha=0.1)
    """

    alpha: Any = "auto"
    selection: Literal["auto", "task_loss", "surrogate", "gcv"] = "auto"
    regularizer: Literal["gram", "weights"] = "gram"
    form: Literal["auto", "primal", "dual"] = "auto"
    contrast: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        alpha = check_alpha(self.alpha)
        if isinstance(alpha, np.ndarray):
            self._set(alpha=tuple(alpha.tolist()))
        _one_of("selection", self.selection, ("auto", "task_loss", "surrogate", "gcv"))
        _one_of("regularizer", self.regularizer, ("gram", "weights"))
        _one_of("form", self.form, ("auto", "primal", "dual"))
        if not isinstance(self.contrast, str) or self.contrast != "auto":
            self._set(contrast=check_number(self.contrast, "contrast", low=0.0, open_low=True))

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
        selection = self._selection(len(weight), score_map.features.n_outputs)
        if self._few_penalties(selection, surrogate, score_map):
            return self._by_factors(selection, surrogate, score_map, inputs, true, weight, rng)
        chosen = selection.rows(len(weight), rng)
        sums = accumulate(score_map, surrogate, inputs, true, weight, keep=chosen)
        if chosen is None and self._above_rounding(sums, penalty):
            coef, alpha, path = fit_from_moments(
                sums, score_map.fit_intercept, penalty, check_alpha(self.alpha)
            )
            choice = selection.with_contrast(Choice(alpha, path))
            return _primal_result(score_map, sums, coef, choice)
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
        choice = selection.choose(
            spectrum,
            rows,
            chosen,
            weight,
            surrogate,
            true,
            sums.target_squares,
            sums.precision,
        )
        coef = penalty.back(vectors @ spectrum.shrunk(choice.alpha))
        return _primal_result(score_map, sums, coef, choice)

    def _few_penalties(
        self, selection: Selection, surrogate: QuadraticSurrogate, score_map: ScoreMap
    ) -> bool:
        """Whether there are so many outputs that the eigenbasis costs more than a few penalties."""
        size, width = score_map.features.n_outputs, surrogate.score_space.width
        searching = self.alpha == "auto" and selection.criterion != "gcv"
        return searching and self.regularizer == "gram" and size >= 256 and width >= size

    def _by_factors(
        self,
        selection: Selection,
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
        chosen = selection.rows(len(weight), rng, limit)
        sums = accumulate(score_map, surrogate, inputs, true, weight, keep=chosen)
        share = left_out_share(weight)[chosen]
        coef, choice = fit_by_search(
            surrogate, score_map, sums, weight[chosen], share, true[chosen], selection
        )
        return _primal_result(score_map, sums, coef, choice)

    def _above_rounding(self, sums: Moments, penalty: OutputPenalty) -> bool:
        """Whether every given penalty keeps the normal equations clear of rounding."""
        alphas = check_alpha(self.alpha)
        if alphas is None:  # the grid leaves out what drowns
            return True
        strength = sums.total_weight * np.min(alphas) * penalty.factor.min(initial=np.inf)
        return bool(strength > 10.0 * sums.precision * np.trace(sums.second_moment))

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
        kernel = features if exact_kernel else inner_products(features)
        few_factors = len(weight) > EIGEN_ROWS and np.ptp(penalty.factor) == 0
        criterion = "task_loss" if self.selection == "auto" else self.selection
        expansion, intercept, choice, centre = (
            self._by_cholesky if few_factors else self._by_eigenvalues
        )(
            Selection(self.alpha, criterion, self.contrast),
            kernel,
            surrogate,
            true,
            weight,
            penalty,
            score_map.fit_intercept,
            rng,
        )
        coef = expansion if exact_kernel else np.asarray(features.T @ expansion)
        return _result(score_map, coef, intercept, choice, centre)

    def _by_eigenvalues(
        self,
        selection: Selection,
        kernel: FloatArray,
        surrogate: QuadraticSurrogate,
        true: LabelArray,
        weight: FloatArray,
        penalty: OutputPenalty,
        fit_intercept: bool,
        rng: np.random.Generator,
    ) -> _DualSolution:
        problem = DualRidge(
            kernel, surrogate.target(true), weight, penalty, fit_intercept=fit_intercept
        )
        chosen = selection.rows(len(weight), rng)
        choice = selection.choose(
            problem.spectrum,
            None if chosen is None else problem.rows[chosen],
            chosen,
            weight,
            surrogate,
            true,
            problem.target_squares,
            float(np.finfo(np.float64).eps),
        )
        expansion = problem.expansion(choice.alpha)
        intercept = problem.intercept(kernel, expansion)
        return expansion, intercept, choice, problem.spectrum.mean_target

    def _by_cholesky(
        self,
        selection: Selection,
        kernel: FloatArray,
        surrogate: QuadraticSurrogate,
        true: LabelArray,
        weight: FloatArray,
        penalty: OutputPenalty,
        fit_intercept: bool,
        rng: np.random.Generator,
    ) -> _DualSolution:
        """A path on some of the rows tells where to start; Nα, not α, is alike for more rows."""
        alphas = check_alpha(self.alpha)
        guess, largest_eigenvalue = 0.0, np.inf
        if not isinstance(alphas, float):
            sample = np.sort(rng.choice(len(weight), min(len(weight), SELECTION_ROWS), False))
            part = DualRidge(
                kernel[np.ix_(sample, sample)],
                surrogate.target(true[sample]),
                weight[sample],
                penalty,
                fit_intercept=fit_intercept,
            )
            found = selection.penalty(
                part.spectrum,
                part.rows,
                np.arange(len(sample)),
                weight[sample],
                surrogate,
                true[sample],
                part.target_squares,
                float(np.finfo(np.float64).eps),
            )
            share = part.spectrum.total_weight / float(weight.sum())
            guess = found.alpha * share
            largest_eigenvalue = float(part.spectrum.eigenvalues.max(initial=0.0)) / share
            del part
        problem = CholeskyRidge(
            kernel,
            surrogate.target(true),
            weight,
            penalty,
            fit_intercept=fit_intercept,
            largest_eigenvalue=largest_eigenvalue,
        )
        choice = choose_by_factors(problem, selection, guess, surrogate, true)
        expansion = problem.expansion(choice.alpha)
        return expansion, problem.intercept(expansion), choice, problem.mean_target

    def _selection(self, n: int, size: int) -> Selection:
        """How to choose, for n examples and `size` features."""
        criterion = self.selection
        if criterion == "auto":
            many = n > LEAVE_ONE_OUT_ROWS and n >= ROWS_PER_FEATURE * size
            criterion = "gcv" if many else "task_loss"
        return Selection(self.alpha, criterion, self.contrast)


def _primal_result(
    score_map: ScoreMap, sums: Moments, coef: FloatArray, choice: Choice
) -> SolverResult:
    intercept = sums.mean_target - sums.mean_feature @ coef
    return _result(score_map, coef, intercept, choice, sums.mean_target)


def _result(
    score_map: ScoreMap, coef: FloatArray, intercept: FloatArray, choice: Choice, centre: FloatArray
) -> SolverResult:
    """The contrast goes into the weights: θ̄ + c(Wᵀφ + b − θ̄) = (cW)ᵀφ + θ̄ + c(b − θ̄)."""
    weights = coef * choice.contrast if choice.contrast != 1.0 else coef
    if score_map.fit_intercept:
        weights = np.vstack([weights, with_contrast(intercept, centre, choice.contrast)])
    return SolverResult(weights, choice.alpha, 1, choice.path, choice.contrast, centre)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
