"""All entries in the order of the paper; run their checks and collect what they measure."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from rich.console import Console
from rich.progress import track

from consistruct.calibration import LabelOrderWarning
from paper.claims import (
    bounds,
    consistency,
    constants,
    exact,
    introduction,
    mixed,
    optimization,
    quadratic,
    related,
    setup,
    surrogates,
)
from paper.model import Deviation, Effort, Entry, Evidence, Result, Verdict

PARTS = (
    introduction,
    setup,
    consistency,
    optimization,
    quadratic,
    bounds,
    related,
    surrogates,
    exact,
    mixed,
    constants,
)

ENTRIES: dict[str, Entry] = {
    entry.name: entry for part in PARTS for entry in vars(part).values() if isinstance(entry, Entry)
}

# Labels of the paper's source that name no claim, with the reason.
NOT_CLAIMS: dict[str, str] = {
    "footnote:Iverson": "notation: the Iverson bracket",
    "sec:intro": "heading",
    "sec:notation": "heading",
    "sec:consistency": "heading",
    "sec:connection": "heading",
    "sec:quadrSurr": "heading",
    "sec:relatedworks": "heading",
    "sec:conclusion": "heading; the conclusion repeats earlier claims",
    "sec:Thm6Proof": "heading",
    "sec:techLemmas": "heading",
    "sec:specialLosses": "heading",
    "sec:boundscalibrationFunction": "heading",
    "sec:boundscalibrationFunction:lower": "heading",
    "sec:boundscalibrationFunction:upper": "heading",
    "sec:bounds:interpretations": "heading",
    "sec:exactTranferProofs": "heading",
    "sec:exactTranferProofs:01loss": "heading",
    "sec:exactTranferProofs:block01loss": "heading",
    "sec:exactTranferProofs:hamming": "heading",
    "sec:exactTranferProofs:mixedloss": "heading",
    "sec:tranferAndSgd": "heading",
    "sec:tranferAndSgd:constants": "heading",
    "sec:hammingLossProps": "heading",
}


@dataclass(frozen=True)
class AuditReport:
    """What the audit measured, entry by entry."""

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
        counts = Counter(one.verdict for one in self.results)
        return {verdict: counts[verdict] for verdict in get_args(Verdict) if counts[verdict]}

    @property
    def seconds(self) -> float:
        """Processor time."""
        return sum(one.seconds for one in self.results)


def run_audit(
    only: Sequence[str] | None = None,
    *,
    quick: bool = False,
) -> AuditReport:
    """Check the paper's claims now, by computation.

    Parameters
    ----------
    only : sequence of str, optional
        Names of entries; all of them if not given.
    quick : bool
        Smaller grids and fewer repetitions: under a minute.

    Returns
    -------
    AuditReport
        ``passed`` is False if a verdict differs from the expected one.

    Examples
    --------
    >>> report = run_audit(["prop-zero-one", "zero-one-remark"], quick=True)
    >>> [(one.entry.name, one.verdict) for one in report.results]
    [('prop-zero-one', 'holds'), ('zero-one-remark', 'misprint')]
    >>> report.passed
    True
    """
    names = list(ENTRIES) if only is None else list(dict.fromkeys(only))
    for name in names:
        if name not in ENTRIES:
            raise ValueError(
                f"unknown entry {name!r}; `python -m paper audit --list` names all {len(ENTRIES)}"
            )
    console = Console(stderr=True)
    bar = track(names, "claims", console=console, transient=True, disable=not console.is_terminal)
    return AuditReport(tuple(_run(ENTRIES[name], quick) for name in bar), quick)


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
