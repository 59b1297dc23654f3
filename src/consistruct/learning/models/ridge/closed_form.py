"""The closed form: ridge regression of τ(y) on the features, for a whole path of penalties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from consistruct._members import Member
from consistruct._validation import check_alpha, to_dense
from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.base import OutOfFold
from consistruct.learning.models.features.feature_maps import (
    ScoreMap,
    symmetric_eigen,
)
from consistruct.learning.models.ridge.gcv_path import fit_from_moments
from consistruct.learning.models.ridge.kernel_cholesky import CholeskyRidge, choose_by_factors
from consistruct.learning.models.ridge.moments import Moments, accumulate
from consistruct.learning.models.ridge.penalty_search import fit_by_search, selection_rows
from consistruct.learning.models.ridge.selection import (
    SELECTION_ROWS,
    Choice,
    OutputPenalty,
    Selection,
    Spectrum,
    ValidationRows,
)
from consistruct.protocols import FloatArray, IntArray, LabelArray, Target

__all__ = ["ClosedForm", "DualRidge", "RidgeFit", "output_penalty"]

LEAVE_ONE_OUT_ROWS = 16_384  # above, and with ROWS_PER_FEATURE, "auto" selects by GCV
ROWS_PER_FEATURE = 32
OUT_OF_FOLD_ENTRIES = 2**25  # features of the rows whose out-of-fold estimates are kept
DOUBLE = float(np.finfo(np.float64).eps)
EIGEN_ROWS = 3072  # larger kernel matrices are factorized for few penalties instead of decomposed


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Weights of a score map, and how they were found.

    Attributes
    ----------
    weights : (n_weights, width) array
        One row per feature and, with an intercept, a last one for the constant.
    alpha : float
    path : dict
        The out-of-fold risks of every penalty that was compared.
    out_of_fold : OutOfFold
        Estimates of training rows by the fit without them, at this penalty.
    """

    weights: FloatArray
    alpha: float
    path: dict[str, FloatArray]
    out_of_fold: OutOfFold


@dataclass(frozen=True, eq=False, repr=False)
class ClosedForm(Member):
    """min_W (1/N) Σ_i w_i ‖Wᵀφ_i − τ(y_i)‖² + α‖W‖² for every column of τ, exactly.

    One factorization serves all columns and all α. The smaller of the primal (features × features)
    and the dual (examples × examples) problem is decomposed. The primal products are summed over
    chunks of rows, so memory is that of one chunk and of a features × features matrix, and inputs
    may be memory-mapped. float32 inputs on linear features are multiplied in float32 within chunks
    of a few thousand rows, and those partial sums are added in float64; everything else is float64.

    Parameters
    ----------
    selection : "auto", "task_loss", "surrogate" or "gcv"
        How one of several penalties is chosen: exact leave-one-out task loss (ties: surrogate
        risk), leave-one-out surrogate risk, or generalized cross-validation. The first two use at
        most 2048 rows, drawn at random, except for kernel matrices of more than 3072 rows, where
        all rows count. "auto" is "task_loss", and "gcv" for more than 16,384 rows that are also 32
        times as many as the features: the penalty hardly matters there, and generalized
        cross-validation needs no rows.
    form : "auto", "primal" or "dual"

    Examples
    --------
    >>> ClosedForm(selection="gcv")
    ClosedForm(selection='gcv')
    """

    selection: Literal["auto", "task_loss", "surrogate", "gcv"] = "auto"
    form: Literal["auto", "primal", "dual"] = "auto"

    def __post_init__(self) -> None:
        _one_of("selection", self.selection, ("auto", "task_loss", "surrogate", "gcv"))
        _one_of("form", self.form, ("auto", "primal", "dual"))

    def solve(
        self,
        statistic: Statistic,
        score_map: ScoreMap,
        inputs: Any,
        true: Any,
        *,
        alpha: Any = "auto",
        regularizer: str = "gram",
        sample_weight: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> RidgeFit:
        """Weights, what was compared, and estimates of out-of-fold rows.

        Parameters
        ----------
        statistic : Statistic
        score_map : ScoreMap
        inputs : (n, …)
        true : (n, …) codes
        alpha : "auto", float or sequence of float
            Penalty; of several ("auto": 21 between 1e-9 and 10 times the mean squared norm of the
            features) the best one. Where there are at least as many outputs as features, and 256
            of these, "auto" tries about eight of the 21.
        regularizer : "gram" or "weights"
            α‖W‖² in an orthonormal basis of the scores, which is tr(WᵀḠW) and free of the basis,
            or the paper's ‖W‖² in the coordinates of the score space (`TargetValues` only).
        """
        _one_of("regularizer", regularizer, ("gram", "weights"))
        n = inputs.shape[0]
        labels = np.asarray(true)
        weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
        problem = _Problem(
            statistic,
            score_map,
            inputs,
            labels,
            weight,
            output_penalty(statistic, regularizer),
            check_alpha(alpha),
            rng,
        )
        few_rows = self.form == "auto" and n < score_map.features.n_outputs
        if problem.score_map.features.expands or self.form == "dual" or few_rows:
            return self._dual(problem)
        return self._primal(problem)

    def _primal(self, problem: _Problem) -> RidgeFit:
        score_map, penalty = problem.score_map, problem.penalty
        n, size = len(problem.weight), score_map.features.n_outputs
        selection = self._selection(problem, n, size)
        if self._few_penalties(selection, problem):
            return self._by_factors(selection, problem)
        # many rows need no out-of-fold estimate of each, and must not fill memory
        room = OUT_OF_FOLD_ENTRIES // size if n <= LEAVE_ONE_OUT_ROWS else 0
        kept = problem.some_rows(max(SELECTION_ROWS, room))
        chosen = selection.rows(len(kept), problem.rng)  # positions in kept
        sums, kept_rows = problem.moments(kept)
        if not np.isfinite(sums.second_moment).all():
            raise ValueError(
                "the products of the features are too large for floating-point numbers; divide "
                "the columns of X by their largest values"
            )
        left = problem.validation(kept)
        if chosen is None and self._above_rounding(sums, problem):
            coef, choice, estimates = fit_from_moments(
                sums, score_map.fit_intercept, penalty, problem.alpha, left, kept_rows
            )
            return problem.from_moments(sums, coef, choice, OutOfFold(kept, estimates))
        values, vectors = symmetric_eigen(sums.second_moment)
        spectrum = Spectrum(
            np.maximum(values, 0.0),
            penalty.into(vectors.T @ sums.cross_moment),
            sums.total_weight,
            sums.mean_target,
            score_map.fit_intercept,
            penalty,
        )
        rows = np.asarray(kept_rows @ vectors, dtype=np.float64)
        some = slice(None) if chosen is None else chosen
        choice = selection.penalty(
            spectrum,
            rows[some],
            problem.validation(kept[some]),
            sums.target_squares,
            sums.precision,
        )
        coef = penalty.back(vectors @ spectrum.shrunk(choice.alpha))
        estimates = _out_of_fold(spectrum, rows, left, choice.alpha)
        return problem.from_moments(sums, coef, choice, OutOfFold(kept, estimates))

    def _few_penalties(self, selection: Selection, problem: _Problem) -> bool:
        """Whether there are so many outputs that the eigenbasis costs more than a few penalties."""
        size, width = problem.score_map.features.n_outputs, problem.statistic.width
        searching = problem.alpha is None and selection.criterion != "gcv"
        alike = problem.penalty.rotation is None
        return searching and alike and size >= 256 and width >= size

    def _by_factors(self, selection: Selection, problem: _Problem) -> RidgeFit:
        """The same problem, with a search over penalties that are factored one by one."""
        size, width = problem.score_map.features.n_outputs, problem.statistic.width
        kept = problem.some_rows(selection_rows(size, width, SELECTION_ROWS))
        sums, kept_rows = problem.moments(kept)
        coef, choice, estimates = fit_by_search(
            sums,
            problem.score_map.fit_intercept,
            problem.validation(kept),
            selection,
            kept_rows,
        )
        return problem.from_moments(sums, coef, choice, OutOfFold(kept, estimates))

    def _above_rounding(self, sums: Moments, problem: _Problem) -> bool:
        """Whether every given penalty keeps the normal equations clear of rounding."""
        if problem.alpha is None:  # the grid leaves out what drowns
            return True
        factor = problem.penalty.factor.min(initial=np.inf)
        strength = sums.total_weight * np.min(problem.alpha) * factor
        return bool(strength > 10.0 * sums.precision * np.trace(sums.second_moment))

    def _dual(self, problem: _Problem) -> RidgeFit:
        exact_kernel = problem.score_map.features.expands
        features = problem.score_map.features.transform(problem.inputs)
        kernel = features
        if not exact_kernel:
            kernel = np.asarray(to_dense(features @ features.T), dtype=np.float64)
        few_factors = len(problem.weight) > EIGEN_ROWS and np.ptp(problem.penalty.factor) == 0
        criterion = "task_loss" if self.selection == "auto" else self.selection
        selection = Selection(problem.alpha, criterion)
        solve = self._by_cholesky if few_factors else self._by_eigenvalues
        expansion, intercept, choice, estimates = solve(selection, kernel, problem)
        coef = (
            expansion if problem.score_map.features.expands else np.asarray(features.T @ expansion)
        )
        everyone = np.arange(len(problem.weight))
        return problem.result(coef, intercept, choice, OutOfFold(everyone, estimates))

    def _by_eigenvalues(
        self, selection: Selection, kernel: FloatArray, problem: _Problem
    ) -> tuple[FloatArray, FloatArray, Choice, FloatArray]:
        ridge = problem.dual_ridge(kernel)
        chosen = selection.rows(len(problem.weight), problem.rng)
        some = slice(None) if chosen is None else chosen
        rows = ridge.rows
        choice = selection.penalty(
            ridge.spectrum, rows[some], problem.validation(some), ridge.target_squares, DOUBLE
        )
        estimates = _out_of_fold(
            ridge.spectrum, rows, problem.validation(slice(None)), choice.alpha
        )
        expansion = ridge.expansion(choice.alpha)
        return expansion, ridge.intercept(kernel, expansion), choice, estimates

    def _by_cholesky(
        self, selection: Selection, kernel: FloatArray, problem: _Problem
    ) -> tuple[FloatArray, FloatArray, Choice, FloatArray]:
        """A path on some of the rows tells where to start; Nα, not α, is alike for more rows."""
        weight = problem.weight
        guess, largest_eigenvalue = 0.0, np.inf
        if not isinstance(problem.alpha, float):
            sample = problem.some_rows(SELECTION_ROWS)
            part = problem.dual_ridge(kernel[np.ix_(sample, sample)], sample)
            left = ValidationRows.of(problem.statistic, problem.true[sample], weight[sample])
            found = selection.penalty(part.spectrum, part.rows, left, part.target_squares, DOUBLE)
            share = part.spectrum.total_weight / float(weight.sum())
            guess = found.alpha * share
            largest_eigenvalue = float(part.spectrum.eigenvalues.max(initial=0.0)) / share
            del part
        ridge = CholeskyRidge(
            kernel,
            problem.statistic.values(problem.true),
            weight,
            problem.penalty,
            fit_intercept=problem.score_map.fit_intercept,
            largest_eigenvalue=largest_eigenvalue,
        )
        choice, estimates = choose_by_factors(
            ridge, selection, guess, problem.validation(slice(None))
        )
        expansion = ridge.expansion(choice.alpha)
        return expansion, ridge.intercept(expansion), choice, estimates

    def _selection(self, problem: _Problem, n: int, size: int) -> Selection:
        """How to choose, for n examples and `size` features."""
        criterion = self.selection
        if criterion == "auto":
            many = n > LEAVE_ONE_OUT_ROWS and n >= ROWS_PER_FEATURE * size
            criterion = "gcv" if many else "task_loss"
        return Selection(problem.alpha, criterion)


class DualRidge:
    """The n × n form: K = ΦΦᵀ with the square roots of the weights on both sides, centered.

    K̃ = P W^{1/2} K W^{1/2} P with P projecting off √w (with an intercept) is decomposed as
    Q diag(s) Qᵀ; the coordinates of row i are z_i = √s ∘ Q_i / √w_i.
    """

    def __init__(
        self,
        kernel: FloatArray,  # (n, n)
        target: Target,  # (n, width): τ, array or CSR
        weight: FloatArray,  # (n,), positive
        penalty: OutputPenalty,
        *,
        fit_intercept: bool,
    ) -> None:
        self.weight = weight
        self._root = np.sqrt(weight)
        total = float(weight.sum())
        centered = kernel * self._root[:, None] * self._root
        # rounding is relative to the kernel before centering, which may take most of it away
        noise = len(centered) * float(np.finfo(np.float64).eps) * float(np.trace(centered))
        unit = self._root / np.sqrt(total)
        if fit_intercept:
            image = centered @ unit
            centered -= unit[:, None] * image
            centered -= (image - (unit @ image) * unit)[:, None] * unit
        values, vectors = symmetric_eigen(centered)
        kept = values > noise
        self._values, self._vectors = values[kept], vectors[:, kept]
        if fit_intercept:  # √w has eigenvalue 0 and mixes with its small neighbors
            self._vectors -= np.outer(unit, unit @ self._vectors)
        mean = np.zeros(target.shape[1])
        if fit_intercept:
            mean = np.asarray(target.T @ weight).ravel() / total
        # Qᵀ W^{1/2}(y − ȳ) with y = τ, without writing τ densely
        weighted = self._vectors * self._root[:, None]
        self._moments = np.asarray((target.T @ weighted).T) - np.outer(weighted.sum(axis=0), mean)
        squares = float(((target * target).T @ weight).sum())
        self.target_squares = squares - total * float(mean @ mean)
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


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is to be solved, in any form."""

    statistic: Statistic
    score_map: ScoreMap
    inputs: Any  # (n, …)
    true: LabelArray  # (n, …)
    weight: FloatArray  # (n,)
    penalty: OutputPenalty
    alpha: float | FloatArray | None
    rng: np.random.Generator

    def some_rows(self, most: int) -> IntArray:
        """Sorted numbers of at most so many rows, drawn at random."""
        n = len(self.weight)
        if n <= most:
            return np.arange(n)
        return np.sort(self.rng.choice(n, size=most, replace=False))

    def moments(self, keep: IntArray) -> tuple[Moments, FloatArray]:
        """Sums over the examples, and the features of the rows in `keep`, about the same point."""
        sums, rows = accumulate(
            self.score_map, self.statistic, self.inputs, self.true, self.weight, keep=keep
        )
        found = Moments.from_sums(sums)
        if not self.score_map.fit_intercept:
            return found.about_zero(), rows + sums.shift.astype(rows.dtype)
        return found, rows - (found.mean_feature - sums.shift).astype(rows.dtype)

    def validation(self, chosen: Any) -> ValidationRows:
        """The chosen examples, to be left out in turn."""
        return ValidationRows.of(self.statistic, self.true, self.weight, chosen)

    def dual_ridge(self, kernel: FloatArray, rows: Any = slice(None)) -> DualRidge:
        """The dual problem of some rows, given their kernel matrix."""
        return DualRidge(
            kernel,
            self.statistic.values(self.true[rows]),
            self.weight[rows],
            self.penalty,
            fit_intercept=self.score_map.fit_intercept,
        )

    def from_moments(
        self, sums: Moments, coef: FloatArray, choice: Choice, left: OutOfFold
    ) -> RidgeFit:
        intercept = sums.mean_target - sums.mean_feature @ coef
        return self.result(coef, intercept, choice, left)

    def result(
        self, coef: FloatArray, intercept: FloatArray, choice: Choice, left: OutOfFold
    ) -> RidgeFit:
        weights = np.vstack([coef, intercept]) if self.score_map.fit_intercept else coef
        return RidgeFit(weights, choice.alpha, choice.path, left)


def _out_of_fold(
    spectrum: Spectrum, rows: FloatArray, left: ValidationRows, alpha: float
) -> FloatArray:
    """Estimates of all validation rows at one penalty."""
    return spectrum.leave_one_out(rows, left.weight, left.share, left.target(slice(None)), alpha)


def output_penalty(statistic: Statistic, regularizer: str) -> OutputPenalty:
    """How a regularizer weighs the outputs."""
    if regularizer == "gram":
        return OutputPenalty.gram(statistic.width)
    if statistic.score_space is None or statistic.open_offset:
        raise ValueError(
            f"regularizer='weights' penalizes weights in the coordinates of a score space, which "
            f"{statistic!r} does not have; use regularizer='gram'"
        )
    return OutputPenalty.weights(statistic.score_space)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
