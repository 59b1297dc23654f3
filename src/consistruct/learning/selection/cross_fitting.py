"""Estimates of rows by models that did not see them: one fit per fold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv

from consistruct._threads import at_most, each
from consistruct.decisions.statistics import Statistic
from consistruct.learning.encoding.kinds import Examples
from consistruct.learning.models.base import OutOfFold, TargetModel
from consistruct.protocols import IntArray
from consistruct.structures import Ragged

__all__ = [
    "Fold",
    "cross_fit",
    "few_threads",
    "fit_fold",
    "folds",
    "joined",
    "shuffled_folds",
    "without_rows",
]

SMALL_FIT = 3000  # rows

Fold = tuple[IntArray, IntArray]  # numbers of the rows to fit on, and of those left out


def folds(examples: Examples, cv: Any, rng: np.random.Generator) -> list[Fold]:
    """Rows to fit on and rows to leave out, for a number of folds or a splitter.

    A number gives shuffled folds with the classes spread evenly, or, with groups, folds that keep
    groups whole. A splitter (temporal, grouped, …) is used as it is.
    """
    n, codes = len(examples), examples.codes
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        return list(shuffled_folds(examples, int(cv), rng))
    splitter = check_cv(cv)
    plain = codes if not isinstance(codes, Ragged) and np.ndim(codes) == 1 else np.zeros(n)
    found = [
        (np.sort(fit), np.sort(left))
        for fit, left in splitter.split(np.zeros((n, 1)), plain, examples.groups)
    ]
    if not found or any(len(fit) == 0 or len(left) == 0 for fit, left in found):
        raise ValueError(f"cv={cv!r} leaves no rows to fit on, or none to hold out")
    return found


def without_rows(cv: Any, kept: IntArray, n: int) -> Any:
    """Folds that are given as row numbers, in the numbers of the `kept` ones of n rows.

    >>> without_rows([(np.array([0, 1, 2]), np.array([3]))], np.array([0, 2, 3]), 4)
    [(array([0, 1]), array([2]))]
    """
    if not isinstance(cv, list | tuple):
        return cv  # a number of folds or a splitter counts rows itself
    number = np.full(n, -1)
    number[kept] = np.arange(len(kept))
    pairs = [(number[np.asarray(fit)], number[np.asarray(left)]) for fit, left in cv]
    return [(fit[fit >= 0], left[left >= 0]) for fit, left in pairs if (left >= 0).any()]


def shuffled_folds(examples: Examples, n_folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Folds drawn at random, one after the other: with groups whole, or classes spread evenly."""
    n, codes = len(examples), examples.codes
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds or a splitter, got {n_folds}")
    if n < 2:
        raise ValueError(f"folds need at least 2 rows to hold some out, got n_samples={n}")
    n_folds = min(n_folds, n)
    seed = int(rng.integers(2**31))
    everyone = np.zeros((n, 1))
    if examples.groups is not None:
        n_groups = len(np.unique(np.asarray(examples.groups)))
        if n_groups < 2:
            raise ValueError(
                "all rows are of one group, so that none can be held out; pass at least 2 groups, "
                "or omit groups"
            )
        splits = GroupKFold(min(n_folds, n_groups), shuffle=True, random_state=seed).split(
            everyone, groups=examples.groups
        )
    elif not isinstance(codes, Ragged) and np.ndim(codes) == 1 and n_folds >= 2:
        strata = np.unique(codes, return_inverse=True)[1]
        if np.bincount(strata).max() >= n_folds:
            splits = _stratified(strata, n_folds, seed)
        else:
            splits = KFold(n_folds, shuffle=True, random_state=seed).split(everyone)
    else:
        splits = KFold(n_folds, shuffle=True, random_state=seed).split(everyone)
    yield from splits  # scikit-learn lists the rows in order


def _stratified(strata: IntArray, n_folds: int, seed: int) -> Iterator[Fold]:
    """Stratified folds; classes rarer than the folds share one stratum, so that none is refused."""
    rare = np.bincount(strata) < n_folds
    strata = np.where(rare[strata], len(rare), strata)
    if (strata == len(rare)).sum() < n_folds:  # too few even together: they join the largest
        strata = np.where(strata == len(rare), np.bincount(strata).argmax(), strata)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    yield from splitter.split(np.zeros((len(strata), 1)), strata)


def cross_fit(
    model: TargetModel,
    examples: Examples,
    statistic: Statistic,
    *,
    cv: Any,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> OutOfFold:
    """Each row's estimate by the model fitted without its fold; the same whatever `n_jobs`.

    A row that several folds leave out gets the mean of its estimates; one that no fold leaves out
    (temporal splitters) is not listed.
    """
    splits = folds(examples, cv, rng)
    seeds = rng.integers(2**63, size=len(splits))
    found = fit_fold(model, examples, statistic, splits, seeds, n_jobs)
    return joined([left for _, left in splits], [estimates for estimates, *_ in found])


def few_threads(model: TargetModel, n: int) -> Any:
    """One thread for small fits of models whose threads would wait for each other most of the time.

    Boosting passes a barrier for every node: on few rows more threads gain nothing, and on a busy
    machine they take ten times as long. Least squares is linear algebra and keeps its threads.
    """
    return at_most(1 if n <= SMALL_FIT and not model.shrinks else None)


def fit_fold(
    model: TargetModel,
    examples: Examples,
    statistic: Statistic,
    splits: list[Fold],
    seeds: IntArray,
    n_jobs: int | None,
) -> list[tuple[Any, Statistic, int]]:
    """For each fold the estimates of its out-of-fold rows, what they estimate the mean of, and how
    many rounds of boosting that took (0: it is none).
    """

    def estimate(fold: Fold, seed: int) -> tuple[Any, Statistic, int]:
        with few_threads(model, len(fold[0])):
            part, left = examples.take(fold[0]), examples.take(fold[1])
            fitted = clone(model).fit(
                part.inputs,
                part.codes,
                statistic,
                sample_weight=part.weight,
                groups=part.groups,
                rng=np.random.default_rng(seed),
            )
            rounds = int(getattr(fitted, "n_rounds_", 0))
            return fitted.expected(left.inputs), fitted.statistic_, rounds

    return each(estimate, zip(splits, seeds.tolist(), strict=True), n_jobs)


def joined(rows: list[IntArray], estimates: list[Any]) -> OutOfFold:
    """Out-of-fold estimates of all folds together, in the order of the rows."""
    every = np.concatenate(rows)
    distinct, place, count = np.unique(every, return_inverse=True, return_counts=True)
    if isinstance(estimates[0], Ragged):
        if (count > 1).any():
            raise ValueError(
                "folds of sequences or queries must leave out each of them at most once"
            )
        packed = Ragged.pack([row for part in estimates for row in part])
        return OutOfFold(distinct, packed.take(np.argsort(every, kind="stable")))
    total = np.zeros((len(distinct), estimates[0].shape[1]))
    np.add.at(total, place, np.concatenate(estimates))
    return OutOfFold(distinct, total / count[:, None])
