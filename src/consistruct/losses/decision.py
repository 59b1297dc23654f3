"""Decisions by an optimization oracle, judged by their regret."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_choice, check_count
from consistruct.exceptions import CapabilityError, LossSpecError
from consistruct.losses.base import Loss, Sizes, WorstCase
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import Decisions, Oracle
from consistruct.structures.decisions import CostVectorSet, Custom, Feasible
from consistruct.structures.registry import ORACLES

__all__ = ["Decision"]

# rows whose best value is kept: some tens of MB, and more rows than most tables have
REMEMBERED = 200_000


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Loss):
    """Charge what a decision costs more than the best one would have: predict, then optimize.

    Formula: L(z, c) = ⟨c, z⟩ − min_z' ⟨c, z'⟩ over feasible z', with sense="max" the values that
    were missed. Scores: one per entry of a decision. Decoder: the oracle.

    A true label is the vector of costs (values) that came true; a prediction is a decision. Least
    squares on the costs is consistent for it, whatever the oracle.

    Parameters
    ----------
    oracle : Oracle or callable
        One of `consistruct.structures`, or a function (n, d) costs -> (n, d) decisions.
    n_costs : int, optional
        d; the ready-made oracles know it.
    sense : {"min", "max"}
        Whether costs are minimized or values maximized. A function of your own gets the numbers
        as you write them, and must do what `sense` states.
    name : str, optional
        For reports.
    exact : bool
        Whether a function of your own always finds the best decision; regrets against a heuristic
        may be negative.
    check : callable, optional
        (n, d) decisions -> (n,) bool: what your function must return. Other results are refused.
    diameter : float, optional
        Largest distance between two decisions of your function, for analysis.
    batch : bool
        Whether your function takes many rows; else it gets one (d,) row at a time.
    n_jobs : int, optional
        Rows that such a function solves at a time (joblib).

    Notes
    -----
    How much worse may a decision be for a given error of the costs? H(ε) ≥ ε²/(2D²), D the
    diameter of the decisions.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import Decision
    >>> from consistruct.structures import GridPath, Knapsack
    >>> loss = Decision(GridPath(2, 2))        # columns: right, down, down, right
    >>> loss([[1, 0, 1, 0]], [[1.0, 2.0, 2.0, 0.5]])
    array([0.5])
    >>> Decision(Knapsack([2, 3, 4], 5), sense="max")([[0, 0, 1]], [[3.0, 4.0, 5.0]])
    array([2.])
    >>> own = Decision(lambda c: np.eye(3)[np.argmin(c, axis=1)], 3)
    >>> own([[1, 0, 0]], [[3.0, 1.0, 2.0]])
    array([2.])

    References
    ----------
    Elmachtoub and Grigas, *Smart "predict, then optimize"*, 2022.
    """

    labels_as: ClassVar[str] = "codes"  # true labels are vectors of costs

    oracle: Oracle | Callable[..., Any]
    n_costs: int | None = None
    sense: str = "min"
    name: str | None = None
    exact: bool = True
    check: Callable[..., Any] | None = None
    diameter: float | None = None
    batch: bool = True
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        check_choice(self.sense, "sense", ("min", "max"))
        if not isinstance(self.oracle, Oracle):
            if self.n_costs is None:
                raise TypeError(
                    "n_costs must be set for a function of your own: how many costs it takes"
                )
            _ = self.solver  # checks the rest
            return
        given = None if self.n_costs is None else check_count(self.n_costs, "n_costs")
        if given not in (None, self.oracle.n_costs):
            raise ValueError(
                f"{self.oracle!r} has {self.oracle.n_costs} costs, got n_costs={given}"
            )
        defaults = {"exact": True, "check": None, "diameter": None, "batch": True, "n_jobs": None}
        for field, usual in defaults.items():
            if getattr(self, field) != usual:
                raise ValueError(
                    f"{field} is for a function of your own; {self.oracle!r} has it built in"
                )
        if self.oracle.non_negative and self.sense == "max":
            raise ValueError(f"{self.oracle!r} accepts only costs of at least 0 and only minimizes")
        self._set(n_costs=self.oracle.n_costs)

    @cached_property
    def solver(self) -> Oracle:
        """Return the oracle, which minimizes."""
        if isinstance(self.oracle, Oracle):
            return self.oracle
        return Custom(
            self.oracle,
            self.n_costs,  # type: ignore[arg-type]
            self.sense,
            self.exact,
            self.check,
            self.diameter,
            self.batch,
            self.n_jobs,
        )

    @property
    def is_exact(self) -> bool:
        """Tell whether the oracle always finds the best decision."""
        return self.solver.exact

    @cached_property
    def score_space(self) -> Decisions:
        return Decisions(self.solver)

    @property
    def predictions(self) -> Feasible:
        return self.score_space.predictions

    @cached_property
    def true_labels(self) -> CostVectorSet:
        return CostVectorSet(self.solver.n_costs, signed=not self.solver.non_negative)

    @property
    def max_value(self) -> float:
        """Return a bound for costs of at most 1 in size; costs themselves are not limited."""
        return self.solver.largest_regret() or 1.0

    @property
    def value_range(self) -> tuple[float, float]:
        return (0.0 if self.is_exact else -math.inf), math.inf

    def signed(self, true: ArrayLike) -> FloatArray:
        """Return true labels as costs to be minimized, (n, d)."""
        checked = self.true_labels.check(true, "true")
        return -checked if self.sense == "max" else checked

    def best(self, true: ArrayLike) -> FloatArray:
        """Return the best decision for each true label, (n, d)."""
        return self.solver(self.signed(true))

    def best_values(self, true: ArrayLike) -> FloatArray:
        """Return ⟨c, z*⟩ in the user's own sign, (n,); each row is solved once and remembered."""
        signed = self.signed(true)
        least = self._least(signed)
        return -least if self.sense == "max" else least

    @cached_property
    def _known(self) -> OrderedDict[bytes, float]:
        return OrderedDict()

    def _least(self, signed: FloatArray) -> FloatArray:
        """Return min_z ⟨c, z⟩ of each row, (n,)."""
        rows = np.ascontiguousarray(signed)
        # regret needs the best value of the same row again in every fold, score and report: one
        # oracle call may take seconds, a digest of 16 bytes takes a microsecond
        keys = [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]
        new = {key: row for row, key in enumerate(keys) if key not in self._known}
        rows_to_solve = list(new.values())
        solved = {}
        if rows_to_solve:
            values = np.einsum("nd,nd->n", self.solver(rows[rows_to_solve]), rows[rows_to_solve])
            solved = dict(zip(new, values.tolist(), strict=True))
        decisions = np.array([solved[key] if key in solved else self._known[key] for key in keys])
        self._known.update(solved)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return decisions.reshape(len(rows))

    def cost(self, pred: ArrayLike, true: ArrayLike) -> FloatArray:
        """Return ⟨c, z⟩ of each decision in the user's own sign, (n,); no oracle is called."""
        decisions = self.predictions.check(pred, "pred")
        return np.einsum("nd,nd->n", decisions, self.true_labels.check(true, "true"))

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        missed = np.einsum("nd,nd->n", pred, true) - self.best_values(true)
        regret = -missed if self.sense == "max" else missed
        # ties: the oracle may find another best decision than the one that is judged, whose value
        # differs in the last place
        return np.maximum(regret, 0.0) if self.is_exact else regret

    def target(self, true: ArrayLike) -> Target:
        return self.signed(true)

    def offset(self, true: ArrayLike) -> FloatArray:
        return -self._least(self.signed(true))

    def true_label_as_prediction(self, true: ArrayLike) -> LabelArray:
        """Return the best decision under the costs that came true."""
        return self.best(true)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        raise CapabilityError(
            self, "worst_true_label", "the worst costs for a decision", "costs are not a finite set"
        )

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        """Read the name of a ready-made oracle and its fields: path:5x5, top-k:20:3."""
        if not arguments or arguments[0] not in ORACLES:
            raise LossSpecError(
                f"the spec of decision names a built-in oracle ({', '.join(sorted(ORACLES))}); "
                "write for example path:5x5"
            )
        oracle = ORACLES[arguments[0]].from_spec(arguments[1:])
        return cls(oracle, sense=oracle.sense)
