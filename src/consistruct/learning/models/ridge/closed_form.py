"""The closed form: ridge regression of −u_y on the features, for a whole path of penalties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_number
from consistruct.learning.contrast import with_contrast
from consistruct.learning.models.features.eigen import symmetric_eigen
from consistruct.learning.models.features.feature_maps import KernelFeatures
from consistruct.learning.models.ridge.dual_ridge import DualRidge, inner_products
from consistruct.learning.models.ridge.gcv_path import fit_from_moments
from consistruct.learning.models.ridge.kernel_cholesky import CholeskyRidge, choose_by_factors
from consistruct.learning.models.ridge.moments import Moments, accumulate
from consistruct.learning.models.ridge.penalty_search import fit_by_search, selection_rows
from consistruct.learning.models.ridge.ridge_path import LeftOut, OutputPenalty, Spectrum
from consistruct.learning.models.ridge.selection import SELECTION_ROWS, Choice, Selection
from consistruct.learning.models.solvers.base import BaseSolver, SolverResult, check_alpha, require
from consistruct.learning.models.solvers.score_map import ScoreMap
from consistruct.protocols import FloatArray, LabelArray
from consistruct.surrogates import QuadraticSurrogate

__all__ = ["ClosedForm"]

# expansion (n, width), intercept, what was chosen, mean score
_DualSolution = tuple[FloatArray, FloatArray, Choice, FloatArray]

LEAVE_ONE_OUT_ROWS = 16_384  # above, and with ROWS_PER_FEATURE, "auto" selects by GCV
ROWS_PER_FEATURE = 32
DOUBLE = float(np.finfo(np.float64).eps)
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
        problem = _Problem(surrogate, score_map, inputs, labels, weight, penalty, rng)
        few_rows = self.form == "auto" and n < score_map.features.n_outputs
        if problem.exact_kernel or self.form == "dual" or few_rows:
            return self._dual(problem)
        return self._primal(problem)

    def _primal(self, problem: _Problem) -> SolverResult:
        score_map, penalty = problem.score_map, problem.penalty
        selection = self._selection(len(problem.weight), score_map.features.n_outputs)
        if self._few_penalties(selection, problem):
            return self._by_factors(selection, problem)
        chosen = selection.rows(len(problem.weight), problem.rng)
        sums = problem.moments(chosen)
        if chosen is None and self._above_rounding(sums, penalty):
            coef, alpha, path = fit_from_moments(
                sums, score_map.fit_intercept, penalty, check_alpha(self.alpha)
            )
            return problem.from_moments(sums, coef, selection.with_contrast(Choice(alpha, path)))
        values, vectors = symmetric_eigen(sums.second_moment)
        spectrum = Spectrum(
            np.maximum(values, 0.0),
            penalty.into(vectors.T @ sums.cross_moment),
            sums.total_weight,
            sums.mean_target,
            score_map.fit_intercept,
            penalty,
        )
        rows = np.asarray(sums.kept_rows @ vectors, dtype=np.float64)
        left = problem.left_out(chosen)
        choice = selection.penalty(spectrum, rows, left, sums.target_squares, sums.precision)
        choice = selection.contrast_after(choice, spectrum, rows, left)
        coef = penalty.back(vectors @ spectrum.shrunk(choice.alpha))
        return problem.from_moments(sums, coef, choice)

    def _few_penalties(self, selection: Selection, problem: _Problem) -> bool:
        """Whether there are so many outputs that the eigenbasis costs more than a few penalties."""
        size, width = problem.score_map.features.n_outputs, problem.surrogate.score_space.width
        searching = self.alpha == "auto" and selection.criterion != "gcv"
        return searching and self.regularizer == "gram" and size >= 256 and width >= size

    def _by_factors(self, selection: Selection, problem: _Problem) -> SolverResult:
        """The same problem, with a search over penalties that are factored one by one."""
        size, width = problem.score_map.features.n_outputs, problem.surrogate.score_space.width
        limit = selection_rows(size, width, SELECTION_ROWS)
        chosen = selection.rows(len(problem.weight), problem.rng, limit)
        sums = problem.moments(chosen)
        coef, choice = fit_by_search(
            sums, problem.score_map.fit_intercept, problem.left_out(chosen), selection
        )
        return problem.from_moments(sums, coef, choice)

    def _above_rounding(self, sums: Moments, penalty: OutputPenalty) -> bool:
        """Whether every given penalty keeps the normal equations clear of rounding."""
        alphas = check_alpha(self.alpha)
        if alphas is None:  # the grid leaves out what drowns
            return True
        strength = sums.total_weight * np.min(alphas) * penalty.factor.min(initial=np.inf)
        return bool(strength > 10.0 * sums.precision * np.trace(sums.second_moment))

    def _dual(self, problem: _Problem) -> SolverResult:
        features = problem.score_map.features.transform(problem.inputs)
        kernel = features if problem.exact_kernel else inner_products(features)
        few_factors = len(problem.weight) > EIGEN_ROWS and np.ptp(problem.penalty.factor) == 0
        criterion = "task_loss" if self.selection == "auto" else self.selection
        selection = Selection(self.alpha, criterion, self.contrast)
        solve = self._by_cholesky if few_factors else self._by_eigenvalues
        expansion, intercept, choice, centre = solve(selection, kernel, problem)
        coef = expansion if problem.exact_kernel else np.asarray(features.T @ expansion)
        return problem.result(coef, intercept, choice, centre)

    def _by_eigenvalues(
        self, selection: Selection, kernel: FloatArray, problem: _Problem
    ) -> _DualSolution:
        ridge = problem.dual_ridge(kernel)
        chosen = selection.rows(len(problem.weight), problem.rng)
        rows = ridge.rows if chosen is None else ridge.rows[chosen]
        left = problem.left_out(chosen)
        choice = selection.penalty(ridge.spectrum, rows, left, ridge.target_squares, DOUBLE)
        choice = selection.contrast_after(choice, ridge.spectrum, rows, left)
        expansion = ridge.expansion(choice.alpha)
        intercept = ridge.intercept(kernel, expansion)
        return expansion, intercept, choice, ridge.spectrum.mean_target

    def _by_cholesky(
        self, selection: Selection, kernel: FloatArray, problem: _Problem
    ) -> _DualSolution:
        """A path on some of the rows tells where to start; Nα, not α, is alike for more rows."""
        weight = problem.weight
        guess, largest_eigenvalue = 0.0, np.inf
        if not isinstance(check_alpha(self.alpha), float):
            n = len(weight)
            sample = np.sort(problem.rng.choice(n, min(n, SELECTION_ROWS), replace=False))
            part = problem.dual_ridge(kernel[np.ix_(sample, sample)], sample)
            left = LeftOut.of(problem.surrogate, problem.true[sample], weight[sample])
            found = selection.penalty(part.spectrum, part.rows, left, part.target_squares, DOUBLE)
            share = part.spectrum.total_weight / float(weight.sum())
            guess = found.alpha * share
            largest_eigenvalue = float(part.spectrum.eigenvalues.max(initial=0.0)) / share
            del part
        ridge = CholeskyRidge(
            kernel,
            problem.surrogate.target(problem.true),
            weight,
            problem.penalty,
            fit_intercept=problem.score_map.fit_intercept,
            largest_eigenvalue=largest_eigenvalue,
        )
        choice = choose_by_factors(ridge, selection, guess, problem.left_out(None))
        expansion = ridge.expansion(choice.alpha)
        return expansion, ridge.intercept(expansion), choice, ridge.mean_target

    def _selection(self, n: int, size: int) -> Selection:
        """How to choose, for n examples and `size` features."""
        criterion = self.selection
        if criterion == "auto":
            many = n > LEAVE_ONE_OUT_ROWS and n >= ROWS_PER_FEATURE * size
            criterion = "gcv" if many else "task_loss"
        return Selection(self.alpha, criterion, self.contrast)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is to be solved, in any form."""

    surrogate: QuadraticSurrogate
    score_map: ScoreMap
    inputs: Any  # (n, …)
    true: LabelArray  # (n, …)
    weight: FloatArray  # (n,)
    penalty: OutputPenalty
    rng: np.random.Generator

    @property
    def exact_kernel(self) -> bool:
        return isinstance(self.score_map.features, KernelFeatures)

    def moments(self, keep: Any) -> Moments:
        """Sums over the examples, with the features of the rows in `keep`."""
        return accumulate(
            self.score_map, self.surrogate, self.inputs, self.true, self.weight, keep=keep
        )

    def left_out(self, chosen: Any) -> LeftOut:
        """The chosen examples, None for all of them."""
        rows = slice(None) if chosen is None else chosen
        return LeftOut.of(self.surrogate, self.true, self.weight, rows)

    def dual_ridge(self, kernel: FloatArray, rows: Any = slice(None)) -> DualRidge:
        """The dual problem of some rows, given their kernel matrix."""
        return DualRidge(
            kernel,
            self.surrogate.target(self.true[rows]),
            self.weight[rows],
            self.penalty,
            fit_intercept=self.score_map.fit_intercept,
        )

    def from_moments(self, sums: Moments, coef: FloatArray, choice: Choice) -> SolverResult:
        intercept = sums.mean_target - sums.mean_feature @ coef
        return self.result(coef, intercept, choice, sums.mean_target)

    def result(
        self, coef: FloatArray, intercept: FloatArray, choice: Choice, centre: FloatArray
    ) -> SolverResult:
        """The contrast goes into the weights: θ̄ + c(Wᵀφ + b − θ̄) = (cW)ᵀφ + θ̄ + c(b − θ̄)."""
        weights = coef * choice.contrast if choice.contrast != 1.0 else coef
        if self.score_map.fit_intercept:
            weights = np.vstack([weights, with_contrast(intercept, centre, choice.contrast)])
        return SolverResult(weights, choice.alpha, 1, choice.path, choice.contrast, centre)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
