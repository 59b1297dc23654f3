"""Which labels can be predicted, decided exactly, and parameters that show it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.certificates.exact import (
    combination_or_direction,
    independent_columns,
    integer_rows,
)
from consistruct.certificates.listed import Problem
from consistruct.protocols import FloatArray

__all__ = ["Winners", "basis_columns"]


class Winners:
    """The labels of a problem that win for some θ, ties to the smallest index.

    `predictable` are labels that are known to; the others are decided by a linear program over the
    integers.
    """

    def __init__(self, problem: Problem, predictable: list[int] | None) -> None:
        self.problem = problem
        self.excluded: dict[int, dict[int, Fraction]] = {}
        self._wins: dict[int, list[Fraction]] = {}
        self._interior: dict[int, list[Fraction] | None] = {}
        if predictable is not None:
            for label in sorted(set(range(problem.k)) - set(predictable)):
                self._decide(label)
        self.rows = [c for c in range(problem.k) if c not in self.excluded]

    def _differences(self, label: int) -> list[list[int]]:
        rows, _ = integer_rows(self.problem.scores)
        return [
            [a - b for a, b in zip(row, rows[label], strict=True)]
            for c, row in enumerate(rows)
            if c != label
        ]

    def _decide(self, label: int) -> None:
        """Parameters under which the label wins, or the mixture that keeps it from winning."""
        others = [c for c in range(self.problem.k) if c != label]
        mixture, theta = combination_or_direction(
            self._differences(label), [c < label for c in others]
        )
        if mixture is None:
            assert theta is not None
            self._wins[label] = theta
        else:
            total = sum(mixture, Fraction(0))
            self.excluded[label] = {c: x / total for c, x in zip(others, mixture, strict=True) if x}

    def wins(self, label: int) -> list[Fraction]:
        """Parameters θ under which the label is predicted."""
        if label not in self._wins:
            column = [row[label] for row in self.problem.kernel]
            top = column[label]
            if all(x < top if c < label else x <= top for c, x in enumerate(column) if c != label):
                self._wins[label] = [row[label] for row in self.problem.dual]
            else:
                self._decide(label)
        return self._wins[label]

    def inside(self, label: int) -> list[Fraction] | None:
        """θ that puts the label at least one above every label of another row; None: no such θ."""
        if label not in self._interior:
            rows = [row for row in self._differences(label) if any(row)]
            unit = integer_rows(self.problem.scores)[1]
            found = combination_or_direction(rows, [True] * len(rows))[1] if rows else []
            self._interior[label] = None if found is None else [x * unit for x in found]
        return self._interior[label]


def basis_columns(
    embedding: FloatArray, measure: FloatArray | None, rank: int | None
) -> list[list[float]]:
    """The columns that carry the scores.

    An exact basis; where the floats have more exact rank than `rank`, their numerical one, the
    columns that a pivoted factorization takes first.
    """
    rows, _ = integer_rows([[Fraction(x) for x in row] for row in embedding.tolist()])
    kept = independent_columns(rows)
    if rank is not None and len(kept) > rank:  # more than the floats can tell apart
        root = np.ones(len(rows)) if measure is None else np.sqrt(measure)
        order = scipy.linalg.qr(root[:, None] * embedding, mode="r", pivoting=True)[1]
        kept = sorted(order[:rank].tolist())
    return [[float(row[column]) for column in kept] for row in embedding.tolist()]
