"""Which columns the predictions rest on: what shuffling each of them costs in task loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from consistruct._frames import is_frame, is_table
from consistruct._threads import each
from consistruct._validation import check_count
from consistruct.learning.encoding.frames import column_names
from consistruct.learning.encoding.kinds import generator
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Importance", "permutation_importance"]


@dataclass(frozen=True, eq=False)
class Importance:
    """How much the mean task loss rises when a column is shuffled.

    Attributes
    ----------
    columns : list
        Names of the columns, or their numbers.
    increase : (d,) array
        Mean task loss with the column shuffled, less that with the column as it is.
    error : (d,) array
        Standard error of the increase, from the spread over examples.
    baseline : float
        Mean task loss with all columns as they are.
    """

    columns: list[Any]
    increase: FloatArray
    error: FloatArray
    baseline: float

    def ranked(self) -> list[tuple[Any, float, float]]:
        """(column, increase, standard error), the largest increase first."""
        order = np.argsort(-self.increase, kind="stable")
        return [(self.columns[j], float(self.increase[j]), float(self.error[j])) for j in order]

    def __str__(self) -> str:
        width = max(6, *(len(str(name)) for name in self.columns))
        lines = [f"{'column':{width}}  increase in the mean loss of {self.baseline:.4g}"]
        lines += [
            f"{name!s:{width}}  {rise:+.4g} ± {error:.2g}" for name, rise, error in self.ranked()
        ]
        return "\n".join(lines)


def permutation_importance(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    costs: Any = None,
    n_repeats: int = 5,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Importance:
    """Shuffle one column at a time and see what it costs, by the loss the model is judged by.

    Use rows that the model was not fitted on. A column that repeats what another one holds looks
    unimportant, because the other one still holds it.

    Parameters
    ----------
    estimator : fitted TaskLossClassifier or StructuredPredictor
    X, y, groups
        As in the estimator's `task_losses`: a table, a list of sequences or queries, or rows with
        `groups`. Columns of tokens and items are shuffled over all of them.
    costs : (n, k) or (n, k, m) array, optional
        For a model that was fitted with costs of each example; (n, k) in place of y.
    n_repeats : int
        Shuffles of each column.
    sample_weight : (n,) array, optional
        Of the rows, sequences or queries.
    random_state : int, Generator or None
    n_jobs : int, optional
        Columns at a time; the result does not depend on it.

    Returns
    -------
    Importance

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> data = load_iris(as_frame=True)
    >>> model = cs.TaskLossClassifier(model=cs.models.Ridge("linear")).fit(data.data, data.target)
    >>> found = cs.metrics.permutation_importance(model, data.data, data.target, random_state=0)
    >>> found.ranked()[0][0]
    'petal length (cm)'
    """
    check_count(n_repeats, "n_repeats")
    inputs = _columns_of(X)
    seeds = generator(random_state).integers(2**63, size=len(inputs.names))
    given = {"groups": groups, "costs": costs}
    settings = {name: value for name, value in given.items() if value is not None}
    before = estimator.task_losses(X, y, **settings)
    share = np.ones(len(before)) if sample_weight is None else np.asarray(sample_weight, float)
    share = share / share.sum()

    def rises(column: int, seed: int) -> tuple[float, float]:
        rng = np.random.default_rng(seed)
        after = [
            estimator.task_losses(inputs.shuffled(column, rng), y, **settings)
            for _ in range(n_repeats)
        ]
        rise = np.mean(after, axis=0) - before
        mean = float(share @ rise)
        return mean, float(np.sqrt(share**2 @ (rise - mean) ** 2))

    calls = [(column, int(seed)) for column, seed in enumerate(seeds)]
    found = np.array(each(rises, calls, n_jobs)).reshape(-1, 2)
    return Importance(inputs.names, found[:, 0], found[:, 1], float(share @ before))


@dataclass(frozen=True, eq=False)
class _Inputs:
    """Names of the columns, and X with one of them in another order."""

    names: list[Any]
    shuffled: Callable[[int, np.random.Generator], Any]


def _columns_of(X: Any) -> _Inputs:
    if hasattr(X, "columns") and hasattr(X, "assign"):  # a DataFrame, of any types

        def of_table(column: int, rng: np.random.Generator) -> Any:
            changed = X.copy()
            order = rng.permutation(len(X))
            values = X.iloc[:, column].take(order).set_axis(X.index)
            changed.isetitem(column, values)
            return changed

        return _Inputs(list(X.columns), of_table)
    if is_table(X):
        frame = nw.from_native(X, eager_only=True) if is_frame(X) else None
        names = list(column_names(X))

        def of_columns(column: int, rng: np.random.Generator) -> Any:
            order, name = rng.permutation(len(X)).tolist(), names[column]
            if frame is not None:
                return frame.with_columns(frame[name][order].alias(name)).to_native()
            cells = [X[row].get(name) for row in order]
            return [{**record, name: cell} for record, cell in zip(X, cells, strict=True)]

        return _Inputs(names, of_columns)
    if sp.issparse(X):
        by_column: Any = sp.csc_array(X)  # type: ignore[call-overload]

        def of_sparse(column: int, rng: np.random.Generator) -> Any:
            changed = by_column.copy()
            start, end = by_column.indptr[column : column + 2]
            place: IntArray = rng.permutation(by_column.shape[0])
            changed.indices[start:end] = place[by_column.indices[start:end]]
            changed.has_sorted_indices = False
            return sp.csr_array(changed)

        return _Inputs(list(range(by_column.shape[1])), of_sparse)
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:  # sequences, queries
        rows = np.concatenate([np.asarray(part) for part in X])
        ends = np.cumsum([len(part) for part in X])[:-1]
        packed = _columns_of(rows)

        def of_list(column: int, rng: np.random.Generator) -> Any:
            return np.split(packed.shuffled(column, rng), ends)

        return _Inputs(packed.names, of_list)
    table = np.asarray(X)
    if table.ndim != 2:
        raise ValueError(
            f"X must be a table of shape (n, d) or a list of such tables, got shape {table.shape}"
        )

    def of_array(column: int, rng: np.random.Generator) -> Any:
        changed = table.copy()
        changed[:, column] = table[rng.permutation(len(table)), column]
        return changed

    return _Inputs(list(range(table.shape[1])), of_array)
