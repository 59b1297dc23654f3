"""Run the checks and collect what they found."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from consistruct.audit.inventory import ENTRIES
from consistruct.audit.model import Deviation, Effort, Entry, Evidence, Result, Verdict
from consistruct.audit.symbolic import sympy
from consistruct.calibration import LabelOrderWarning
from consistruct.exceptions import ConsistructError

__all__ = ["AuditReport", "run_audit"]


@dataclass(frozen=True)
class AuditReport:
    """What the audit found, entry by entry."""

    results: tuple[Result, ...]
    quick: bool

    @property
    def passed(self) -> bool:
        """Whether every entry was decided, and as expected."""
        return all(one.as_expected and one.verdict != "undecided" for one in self.results)

    @property
    def surprises(self) -> tuple[Result, ...]:
        """Entries whose verdict is not the expected one."""
        return tuple(one for one in self.results if not one.as_expected)

    @property
    def counts(self) -> dict[Verdict, int]:
        """Number of entries by verdict."""
        return dict(Counter(one.verdict for one in self.results))

    @property
    def seconds(self) -> float:
        """Processor time."""
        return sum(one.seconds for one in self.results)


def run_audit(
    only: Sequence[str] | None = None,
    *,
    quick: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> AuditReport:
    """Check the paper's claims now, by computation.

    Parameters
    ----------
    only : sequence of str, optional
        Names of entries; all of them if not given.
    quick : bool
        Smaller grids and fewer repetitions: under a minute.
    progress : callable, optional
        Called with (done, total) after each entry.

    Returns
    -------
    AuditReport
        ``passed`` is False if a verdict differs from the expected one.

    Examples
    --------
    >>> from consistruct.audit import run_audit
    >>> report = run_audit(["prop-zero-one", "zero-one-remark"], quick=True)
    >>> [(one.entry.name, one.verdict) for one in report.results]
    [('prop-zero-one', 'holds'), ('zero-one-remark', 'false as stated')]
    >>> report.passed
    True
    """
    sympy()  # say now that it is missing, not after minutes
    names = list(ENTRIES) if only is None else list(dict.fromkeys(only))
    for name in names:
        if name not in ENTRIES:
            raise ConsistructError(
                f"unknown audit entry {name!r}; `consistruct audit --list` names all {len(ENTRIES)}"
            )
    results = []
    for done, name in enumerate(names, 1):
        results.append(_run(ENTRIES[name], quick))
        if progress is not None:
            progress(done, len(names))
    return AuditReport(tuple(results), quick)


def _run(entry: Entry, quick: bool) -> Result:
    if entry.check is None:
        return Result(entry, None, 0.0)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelOrderWarning)  # random scores merge labels on purpose
        try:
            evidence = entry.check(Effort(quick, entry.name))
        except (
            Exception
        ) as error:  # a check that stops decides nothing, and must not stop the others
            text = f"the check stopped: {type(error).__name__}: {' '.join(str(error).split())}"
            evidence = Evidence((Deviation(text, math.inf, 0.0),), "—")
    return Result(entry, evidence, time.process_time() - start)
