"""What an audit of the paper is made of: claims, what was measured, and the verdict it implies.

A verdict is never stored: it follows from the measurements by one rule (`Evidence.verdict`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

T = TypeVar("T")

Kind = Literal[
    "definition",
    "assumption",
    "lemma",
    "theorem",
    "proposition",
    "formula",
    "proof step",
    "figure",
    "remark",
    "related work",
]
Verdict = Literal["holds", "imprecise", "misprint", "false", "not checked", "undecided"]


@dataclass(frozen=True)
class Deviation:
    """How far something is from what it should be, and how far it may be.

    Attributes
    ----------
    what : str
        What is compared with what.
    value : float
        The worst deviation over the cases; a count of failures where nothing else makes sense.
    tolerance : float
        The largest deviation that rounding (or sampling, where it is a statistic) explains.
    at : str
        The case that attains it.
    """

    what: str
    value: float
    tolerance: float
    at: str = ""

    @property
    def within(self) -> bool:
        """NaN is not within."""
        return self.value <= self.tolerance


@dataclass(frozen=True)
class Evidence:
    """What a check measured.

    Attributes
    ----------
    stated : tuple of Deviation
        The statement as printed, in cases that it is plainly about.
    edge : tuple of Deviation
        The statement as printed, in cases that its wording lets in and should not: a missing
        condition, a boundary, an equality sign too many.
    corrected : tuple of Deviation
        The corrected statement, in all those cases.
    correction : str
        The corrected statement in words, with the numbers computed in this run.
    right_at : str
        Where the paper itself has, uses or presupposes the corrected statement: what is printed is
        then a slip of the pen, not a mistake in the mathematics.
    grid : str
        The cases.
    """

    stated: tuple[Deviation, ...]
    grid: str
    edge: tuple[Deviation, ...] = ()
    corrected: tuple[Deviation, ...] = ()
    correction: str = ""
    right_at: str = ""

    @property
    def verdict(self) -> Verdict:
        """The rule: what fails must be mended by a correction that was itself checked.

        *imprecise* fails only in cases that its wording should have excluded; *misprint* and
        *false* fail in the cases that they are about, a misprint against the paper's own text.
        """
        if not self.stated:
            return "undecided"
        stated = all(one.within for one in self.stated)
        if stated and all(one.within for one in self.edge):
            return "holds"
        if not self.corrected or not all(one.within for one in self.corrected):
            return "undecided"
        if stated:
            return "imprecise"
        return "misprint" if self.right_at else "false"

    @property
    def worst(self) -> Deviation:
        """The measurement that decides: the largest ratio of a deviation to its tolerance."""
        deciding = (*self.stated, *self.edge)
        return max(deciding, key=_ratio)

    @property
    def worst_corrected(self) -> Deviation | None:
        """The same for the corrected statement; None if there is none."""
        return max(self.corrected, key=_ratio) if self.corrected else None


def _ratio(one: Deviation) -> float:
    if math.isnan(one.value):
        return math.inf
    if one.tolerance > 0:
        return one.value / one.tolerance
    return math.inf if one.value > 0 else 0.0


@dataclass(frozen=True)
class Effort:
    """How much a check may spend, and its own source of randomness."""

    quick: bool
    name: str = ""

    def pick(self, quick: T, full: T) -> T:
        """Choose the grid for this effort."""
        return quick if self.quick else full

    @property
    def rng(self) -> np.random.Generator:
        """The same numbers in every run of the entry."""
        return np.random.default_rng(zlib.crc32(self.name.encode()))


@dataclass(frozen=True)
class Entry:
    """One claim of the paper.

    Attributes
    ----------
    name : str
        Identifier, as in ``python -m paper audit --only NAME``.
    place : str
        Where it stands in the paper.
    kind : str
    statement : str
        In our words.
    method : str
        How it is checked.
    expected : str
        The verdict that the audit reached before; another one makes it fail.
    covers : tuple of str
        Labels of the paper's source that this entry answers for; ``label#2`` is the second
        displayed formula without a label after that label.
    check : callable or None
        From `Effort` to `Evidence`; None if it cannot be checked by computation.
    reason : str
        Why not.
    """

    name: str
    place: str
    kind: Kind
    statement: str
    method: str
    expected: Verdict
    covers: tuple[str, ...] = ()
    check: Callable[[Effort], Evidence] | None = None
    reason: str = ""


@dataclass(frozen=True)
class Result:
    """An entry and what its check measured now."""

    entry: Entry
    evidence: Evidence | None
    seconds: float

    @property
    def verdict(self) -> Verdict:
        return "not checked" if self.evidence is None else self.evidence.verdict

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.entry.expected


def claim(
    name: str,
    place: str,
    kind: Kind,
    statement: str,
    method: str,
    expected: Verdict = "holds",
    covers: tuple[str, ...] = (),
) -> Callable[[Callable[[Effort], Evidence]], Entry]:
    """Turn the check below it into an entry."""

    def made(check: Callable[[Effort], Evidence]) -> Entry:
        return Entry(name, place, kind, statement, method, expected, covers, check)

    return made
