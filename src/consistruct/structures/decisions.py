"""Decisions of an optimization oracle, scored by their own entries: ⟨z, θ⟩.

An oracle finds argmin ⟨c, z⟩ over feasible z for each row of costs c: the shortest path, the best
knapsack, whatever a solver can do. Its decisions are a structure whose decoder is the oracle itself
for the costs −θ. They have no order and mostly no size, so all that they need to do goes
through the oracle. The ready-made ones stand in `paths`, `trees` and `selections`; here are the
base class and any function of your own (`Custom`).

The true label of such a loss is a vector of costs, one per entry; of a loss with a cost per
prediction it is one too (`CostVectorSet`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct._threads import each
from consistruct._validation import check_count, check_loss_matrix, check_number, check_rows
from consistruct.exceptions import (
    CapabilityError,
    ConsistructError,
    LossSpecError,
    TooManyLabelsError,
)
from consistruct.protocols import FloatArray, LinearMap
from consistruct.structures.base import (
    ENUMERATION_LIMIT,
    VECTOR_LIMIT,
    InfiniteLabels,
    Predictable,
    Structure,
)
from consistruct.structures.operators import BaseGram, DiagonalGram, SpectralGram, identity_map

__all__ = [
    "CallCount",
    "CostVectorSet",
    "Counts",
    "Custom",
    "Decisions",
    "Feasible",
    "Oracle",
    "are_binary",
    "check_costs",
    "counted_calls",
    "sizes_from_spec",
]


class CallCount:
    """Count the problems that oracles solved inside `counted_calls`, in ``n``."""

    def __init__(self) -> None:
        self.n = 0


# Counters of the blocks that are open in this thread, innermost last: blocks may be nested, and a
# counter must not see the calls of other threads.
_counters: ContextVar[tuple[CallCount, ...]] = ContextVar("counters", default=())


@contextmanager
def counted_calls() -> Iterator[CallCount]:
    """Count the problems (rows of costs) that oracles solve inside the block, in this thread.

    Calls are what training with SPO+ or perturbed surrogates costs, whatever the machine.

    Examples
    --------
    >>> from consistruct.structures import GridPath
    >>> with counted_calls() as calls:
    ...     decisions = GridPath(2, 2)([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]])
    >>> calls.n
    2
    """
    count = CallCount()
    token = _counters.set((*_counters.get(), count))
    try:
        yield count
    finally:
        _counters.reset(token)


class Counts:
    """Hold moments of a uniformly drawn decision, counted exactly without listing decisions.

    Attributes
    ----------
    size : int
        Number of feasible decisions.
    mean : (d,) array
        Share of the decisions that use each entry.
    second : (d, d) array
        Share that use both of two entries.
    """

    def __init__(self, size: int, mean: FloatArray, second: FloatArray) -> None:
        self.size, self.mean, self.second = size, mean, second


class Oracle(Member, ABC):
    """Find argmin ⟨c, z⟩ over feasible decisions z for each row of costs c.

    Write `name`, `n_costs`, `_solve` and `feasible`. Decisions are vectors of `n_costs` numbers, 0
    or 1 unless ``binary`` is False. Among decisions of equal cost the result is always the same, by
    a rule that is the algorithm's own. What may be written: `counts` (for the uniform measure),
    `diameter_squared` (a tighter bound on hardness than the number of entries), `listed` and
    `from_spec`.

    Examples
    --------
    An oracle of one's own, the cheapest of three offers:

    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from consistruct.losses import Decision
    >>> from consistruct.structures import Oracle
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class Offers(Oracle):
    ...     name = "offers"
    ...     n_costs = 3
    ...
    ...     def _solve(self, costs):
    ...         return np.eye(3)[costs.argmin(axis=1)]
    ...
    ...     def feasible(self, decisions):
    ...         return (np.sort(decisions, axis=1) == [0, 0, 1]).all(axis=1)
    >>> Decision(Offers())([[0.0, 1.0, 0.0]], [[3.0, 5.0, 2.0]])  # regret of the second offer
    array([3.])
    """

    name: ClassVar[str]
    exact: ClassVar[bool] = True
    fast: ClassVar[bool] = True  # compiled: microseconds per row rather than milliseconds
    non_negative: ClassVar[bool] = False  # whether costs below 0 are refused
    sense: ClassVar[str] = "min"  # what users do with it: values of a knapsack are maximized
    binary: ClassVar[bool] = True  # whether decisions hold 0 and 1 only

    @property
    @abstractmethod
    def n_costs(self) -> int:
        """Count the costs, d, and so the entries of a decision."""

    @abstractmethod
    def _solve(self, costs: FloatArray) -> FloatArray:
        """Return the best decisions, (n, d), for checked costs, (n, d)."""

    @abstractmethod
    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Say which rows of (n, d) are feasible decisions, (n,) bool."""

    def __call__(self, costs: ArrayLike) -> FloatArray:
        """Return the feasible decision of least cost for each row of costs, (n, d) -> (n, d)."""
        checked = check_costs(costs, self.n_costs)
        # Dijkstra would return wrong paths rather than fail
        if self.non_negative and checked.size and checked.min() < 0.0:
            row, column = (int(index) for index in np.argwhere(checked < 0)[0])
            raise ValueError(
                f"{type(self).__name__} accepts only costs of at least 0, got "
                f"{checked[row, column]:g} at row {row}, column {column}; use a directed graph "
                "without cycles for such costs"
            )
        # problems are counted before they are solved: a solver that fails was called all the same
        for counter in _counters.get():
            counter.n += len(checked)
        return self._solve(checked)

    # --- with a default ---

    def counts(self) -> Counts:
        """Count decisions, with the moments of a uniform one; raises where nobody knows how."""
        raise CapabilityError(
            self, "counts", "the uniform measure on decisions", "use the identity Gram instead"
        )

    def listed(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        """List candidates feasible decision, (k, d), among all 0/1 vectors; slow, for checks."""
        # 2^20 candidates of 20 entries fill 160 MB; a subclass that can list them writes `listed`
        if self.n_costs > 20:
            raise TooManyLabelsError(
                None, limit, f"listing decisions of {self.n_costs} entries", "count them instead"
            )
        bits = np.arange(2**self.n_costs)[:, None] >> np.arange(self.n_costs)[::-1] & 1
        candidates = bits.astype(np.float64)
        rows = candidates[self.feasible(candidates)]
        if len(rows) > limit:
            raise TooManyLabelsError(
                len(rows), limit, "listing decisions", "count them instead, or raise the limit"
            )
        return rows

    def diameter_squared(self) -> tuple[float, bool]:
        """Return max ‖z − z'‖² over feasible pairs or a bound on it, and whether it is attained."""
        # two 0/1 vectors differ in at most all of their entries
        return float(self.n_costs), False

    def largest_regret(self) -> float:
        """Return a bound on the regret where costs are at most 1 in size: max ‖z − z'‖₁."""
        # for 0/1 vectors ‖·‖₁ = ‖·‖²; in general ‖·‖₁ ≤ √d ‖·‖
        square = self.diameter_squared()[0]
        return square if self.binary else float(np.sqrt(self.n_costs * square))

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Oracle:
        """Build the oracle from the fields of a spec such as ``path:5x5``."""
        raise LossSpecError(f"{cls.__name__} cannot be written as a spec; build it in Python")


def sizes_from_spec(
    name: str, arguments: tuple[str, ...], example: str, most: int
) -> tuple[int, ...]:
    """Read the sizes of a spec, as many as its example has: ``tsp:5``, ``top-k:20:3``."""
    count = example.count(":")
    if len(arguments) != count or not all(text.isascii() and text.isdigit() for text in arguments):
        fields = "one size" if count == 1 else f"{count} sizes"
        raise LossSpecError(f"the spec of {name} has {fields}; write for example {example}")
    sizes = tuple(int(text[:10]) for text in arguments)
    if max(sizes) > most:
        raise LossSpecError(f"a size in a spec of {name} may be at most {most}, got {max(sizes)}")
    return sizes


def check_costs(costs: ArrayLike, width: int, name: str = "costs") -> FloatArray:
    """Return costs as contiguous float64, (n, width), or raise unless all are finite."""
    checked = check_rows(costs, width, name)
    if not np.isfinite(checked).all():
        row, column = (int(index) for index in np.argwhere(~np.isfinite(checked))[0])
        raise ValueError(
            f"{name} must be finite, got {checked[row, column]} at row {row}, column {column}; "
            f"forbid an entry by a large cost"
        )
    return np.ascontiguousarray(checked)


def are_binary(decisions: FloatArray) -> np.ndarray:
    """Say which rows hold only 0 and 1, (n,) bool."""
    return np.asarray(((decisions == 0.0) | (decisions == 1.0)).all(axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class CostVectorSet(InfiniteLabels):
    """Take all vectors of n_costs costs: an infinite set, without index or enumeration.

    True labels of losses that know no label: the cost of every prediction is given, or of every
    entry of a decision.

    Parameters
    ----------
    n_costs : int
    signed : bool
        Whether costs may be negative (of parts of a decision); of predictions they may not.
    """

    n_costs: int
    signed: bool = False
    noun: ClassVar[str] = "cost vector"
    instead: ClassVar[str] = "use the cost vectors of your data instead"

    def __post_init__(self) -> None:
        self._set(n_costs=check_count(self.n_costs, "n_costs"), signed=bool(self.signed))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_costs,)

    @property
    def measure(self) -> str:
        return "uniform on [−1, 1] for each cost" if self.signed else "uniform on the unit cube"

    def check(self, labels: ArrayLike, name: str = "labels") -> FloatArray:
        """Return costs as float64, (n, n_costs): the given array itself where it is one already."""
        # an empty batch has no cost to check, and the checks below request one
        array = np.asarray(labels)
        if array.ndim == 2 and array.shape[0] == 0 and array.shape[1] == self.n_costs:
            return array.astype(np.float64)
        array = (
            _signed(labels, name)
            if self.signed
            else check_loss_matrix(labels, name, copy=False, true_labels="row")
        )
        if array.shape[1] != self.n_costs:
            raise ValueError(
                f"{name} must have shape (n, {self.n_costs}), one cost per "
                f"{'entry of a decision' if self.signed else 'prediction'}, got {array.shape}"
            )
        return array

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw costs uniform on [0, 1], or on [−1, 1] if they are signed, (n, n_costs)."""
        # a loss over 2^200 predictions has no vector of their costs; the error names what has
        if self.n_costs > VECTOR_LIMIT:
            raise TooManyLabelsError(
                self.n_costs,
                VECTOR_LIMIT,
                "a vector with one cost per prediction",
                "use a loss with structure such as Block or Hamming",
            )
        costs = rng.random((n, self.n_costs))
        return 2.0 * costs - 1.0 if self.signed else costs


def _signed(values: ArrayLike, name: str) -> FloatArray:
    """Return a finite matrix of numbers of either sign, or raise with one clear line."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a matrix of costs; its rows differ in length") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must contain real numbers, got dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional (rows x costs), got shape {array.shape}")
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        row, column = (int(position) for position in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"{name} must be finite, got {array[row, column]} at row {row}, column {column}; fill "
            f"or drop the missing costs"
        )
    return array


@dataclass(frozen=True, eq=False, repr=False)
class Feasible(InfiniteLabels):
    """Take the decisions that an oracle chooses from, vectors of `n_costs` numbers.

    A label set that only the oracle reaches: membership can be checked, samples are best decisions
    of random costs, and there is neither a size nor an order.

    Parameters
    ----------
    oracle : Oracle
    """

    oracle: Oracle
    noun: ClassVar[str] = "decision"
    instead: ClassVar[str] = "decisions can be reached only through their oracle"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.oracle.n_costs,)

    @property
    def measure(self) -> str:
        return "best decisions of random costs"

    def check(self, labels: ArrayLike, name: str = "labels") -> FloatArray:
        """Return decisions that the oracle could have chosen, (n, d), or raise."""
        array = check_rows(labels, self.oracle.n_costs, name)
        good = self.oracle.feasible(array)
        if not good.all():
            raise ValueError(
                f"{name} must contain feasible decisions of {self.oracle!r}, but row "
                f"{int(np.argmin(good))} is not one"
            )
        return array

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw best decisions of random costs, (n, d)."""
        # not uniform over decisions, which few oracles could draw: vertices win by their cones
        costs = rng.random((n, self.oracle.n_costs))
        if not self.oracle.non_negative:
            costs = 2.0 * costs - 1.0
        return self.oracle(costs)


@dataclass(frozen=True, eq=False, repr=False)
class Custom(Oracle):
    """Wrap a function of your own that returns the best decisions for given costs.

    Parameters
    ----------
    function : callable
        (n, d) costs -> (n, d) decisions; or one row (d,) -> (d,) with ``batch=False``.
    width : int
        d, the number of costs.
    sense : {"min", "max"}
        What the function does with the numbers that it gets.
    exact : bool
        Whether its decisions are always best; regrets of a heuristic may be negative.
    check : callable, optional
        (n, d) decisions -> (n,) bool; decisions that it does not accept are refused.
    diameter : float, optional
        max ‖z − z'‖ over decisions, which analysis needs.
    batch : bool
        Whether the function takes many rows at once.
    n_jobs : int, optional
        Rows solved at a time, where the function takes one; the decisions do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> cheapest = Custom(lambda cost: np.eye(len(cost))[np.argmin(cost)], 3, batch=False)
    >>> cheapest([[3.0, 1.0, 2.0]])
    array([[0., 1., 0.]])
    """

    function: Callable[..., Any]
    width: int
    sense: str = "min"  # type: ignore[misc]
    exact: bool = True  # type: ignore[misc]
    check: Callable[..., Any] | None = None
    diameter: float | None = None
    batch: bool = True
    n_jobs: int | None = None
    name: ClassVar[str] = "custom"
    fast: ClassVar[bool] = False
    binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"an oracle must be a function of costs or one of consistruct.structures, got "
                f"{type(self.function).__name__}"
            )
        if self.check is not None and not callable(self.check):
            raise TypeError(f"check must be a function of decisions, got {self.check!r}")
        if self.sense not in ("min", "max"):
            raise ValueError(f"sense must be 'min' or 'max', got {self.sense!r}")
        self._set(width=check_count(self.width, "n_costs"), exact=bool(self.exact))
        if self.diameter is not None:
            self._set(diameter=check_number(self.diameter, "diameter", low=0.0))

    @property
    def n_costs(self) -> int:
        return self.width

    def _solve(self, costs: FloatArray) -> FloatArray:
        """Call the function, on all rows or row by row, and check what it returns."""
        # the function gets a copy: a solver that writes into its input must not change the costs
        given = -costs if self.sense == "max" else costs
        if self.batch:
            returned = self.function(given.copy())
        else:
            returned = each(self.function, [(row,) for row in given], self.n_jobs)
        try:
            decisions = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError):
            decisions = np.empty(0)
        if len(costs) == 0:
            return np.zeros(costs.shape)
        if decisions.shape != costs.shape or not np.isfinite(decisions).all():
            raise ConsistructError(
                f"the oracle must return finite decisions of shape {costs.shape} for costs of that "
                f"shape, got shape {decisions.shape}; with batch=False it gets one row at a time"
            )
        accepted = self.feasible(decisions)
        if not accepted.all():
            raise ConsistructError(
                f"the oracle's decision for row {int(np.argmin(accepted))} is refused by the "
                "check; correct the oracle, or the check"
            )
        return decisions

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Ask the given check; without one every finite vector counts as feasible."""
        # without a check nothing is known about what is feasible, and nothing is refused
        if self.check is None:
            return np.asarray(np.isfinite(decisions).all(axis=1))
        good = np.asarray(self.check(decisions), dtype=bool)
        if good.shape != (len(decisions),):
            raise ConsistructError(
                f"check must say yes or no for each of {len(decisions)} decisions, got shape "
                f"{good.shape}"
            )
        return good

    def diameter_squared(self) -> tuple[float, bool]:
        if self.diameter is None:
            raise CapabilityError(
                self,
                "diameter",
                "how hard these decisions are",
                "pass diameter=, the largest distance between two decisions, to Decision",
            )
        return self.diameter**2, True

    def largest_regret(self) -> float:
        """Bound the regret by √d · diameter, or by d for entries in [0, 1]."""
        if self.diameter is None:  # decisions of entries in [0, 1]
            return float(self.n_costs)
        return float(np.sqrt(self.n_costs) * self.diameter) or 1.0


MEASURES = ("identity", "uniform")


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Structure):
    """Score decisions of an oracle by their own entries: F_z = z, f(z) = ⟨z, θ⟩.

    The structure of predicted costs: θ is minus the cost of each entry, and decoding is one call of
    the oracle. Regret is linear in the costs, so these scores express it for every oracle.

    Parameters
    ----------
    oracle : Oracle
    measure : {"identity", "uniform"}
        What the quadratic surrogate averages over. "identity": Ḡ = I, plain least squares on the
        costs, which needs nothing of the oracle; Theorem 7 then reads H(ε) ≥ ε²/(2D²) with D the
        diameter of the decisions. "uniform": all decisions alike, Ḡ by counting (paths of graphs
        without cycles, knapsacks).

    Examples
    --------
    >>> from consistruct.structures import GridPath
    >>> Decisions(GridPath(5, 5)).effective_classes()
    8.0
    >>> round(Decisions(GridPath(5, 5), "uniform").effective_classes(), 6)
    70.0

    References
    ----------
    Elmachtoub and Grigas, *Smart "predict, then optimize"*, 2022: regret of decisions as a loss.
    """

    oracle: Oracle
    measure: str = "identity"
    tie_rule = "deterministic: that of the oracle"
    forbids: ClassVar[bool] = False  # an infinite cost is refused: oracles compute with it

    def __post_init__(self) -> None:
        if not isinstance(self.oracle, Oracle):
            raise TypeError(f"oracle must be one of consistruct.structures, got {self.oracle!r}")
        if self.measure not in MEASURES:
            raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {self.measure!r}")

    @property
    def predictions(self) -> Feasible:
        return Feasible(self.oracle)

    @property
    def width(self) -> int:
        return self.oracle.n_costs

    @cached_property
    def rank(self) -> int:
        """Return d for the identity measure, otherwise the rank of the counted moments."""
        if self.measure == "identity":
            return self.width
        return sum(self.gram().eigenvalues()[1])

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return the decisions themselves, (n, d)."""
        return self.predictions.check(labels)

    @cached_property
    def _counts(self) -> Counts:
        return self.oracle.counts()

    @cached_property
    def _gram(self) -> BaseGram:
        """Return the identity, or E[z zᵀ] over uniform decisions from exact counts."""
        if self.measure == "identity":
            return DiagonalGram(np.ones(self.width))
        # E[z zᵀ] comes from exact counts and is rounded once: below d·eps·λ_max is zero
        values, vectors = np.linalg.eigh(self._counts.second)
        kept = values > len(values) * float(np.finfo(np.float64).eps) * values[-1]
        return SpectralGram(values[kept], vectors[:, kept])

    def gram(self) -> BaseGram:
        return self._gram

    @property
    def decoding_is_exact(self) -> bool:
        return self.oracle.exact

    def decode(self, theta: ArrayLike) -> FloatArray:
        """Return argmax ⟨z, θ⟩ over decisions: the oracle for the costs −θ.

        Scores are estimates: where an oracle takes costs of at least 0, smaller ones count as 0.
        """
        costs = -check_rows(theta, self.width)
        return self.oracle(np.maximum(costs, 0.0) if self.oracle.non_negative else costs)

    @property
    def n_decisions(self) -> int | None:
        """Count the decisions exactly where that can be done, else return None."""
        try:
            return self._counts.size
        except CapabilityError:
            return None

    def predictable(self) -> Predictable:
        """Return every decision: one of 0 and 1 is a vertex and wins outright for some costs."""
        return Predictable(self.n_decisions or 0, None, False)

    def mean_embedding(self) -> FloatArray:
        """Return E z over uniform decisions, (d,)."""
        if self.measure == "identity":
            raise TooManyLabelsError(
                None,
                ENUMERATION_LIMIT,
                "a mean over decisions",
                "use measure='uniform', which counts them",
            )
        return self._counts.mean

    @property
    def contains_constant(self) -> bool:
        """Say whether some θ gives every decision the score 1."""
        if self.measure == "uniform":
            return super().contains_constant
        return False  # not known of an oracle

    def map_into(self, space: Structure) -> LinearMap | None:
        """Return the identity between two measures of one oracle: parameters are the same."""
        alike = isinstance(space, Decisions) and space.oracle == self.oracle
        return identity_map() if alike else None

    @cached_property
    def _diameter(self) -> tuple[float, bool]:
        """Return the squared diameter in the norm of Ḡ⁺, and whether it is attained."""
        plain, exact = self.oracle.diameter_squared()
        if self.measure == "identity":
            return plain, exact
        # in the norm of Ḡ⁺ pairs have to be compared, which takes a list
        try:
            rows = self.oracle.listed(limit=ENUMERATION_LIMIT)
        except TooManyLabelsError:
            least = float(self.gram().eigenvalues()[0][-1])
            return plain / least, False  # ‖Ḡ^{−1/2}(z − z')‖² ≤ ‖z − z'‖²/λ_min
        kernel = rows @ self.gram().solve(rows).T
        leverage = np.diag(kernel)
        return float((leverage[:, None] + leverage - 2.0 * kernel).max()), True

    def diameter_squared(self) -> float:
        return self._diameter[0]

    @property
    def diameter_is_exact(self) -> bool:
        return self._diameter[1]
