"""Reports in plain language: one section per question, the answer before any formula."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["WORST_CASE", "Section"]

WORST_CASE = "Worst-case guarantee, over all distributions"


@dataclass(frozen=True)
class Section:
    """One question.

    Attributes
    ----------
    key : str
        consistency, hardness, curve, worst_case, sample_size, advice; or of a learning report.
    question, answer : str
        The answer is one sentence for a reader in a hurry.
    details : tuple of str
        What it means, and what it does not mean.
    facts : tuple of (name, value)
        Numbers, with their names.
    charts : tuple of str
        Keys of the charts that belong here.
    fold : str
        The title of the fold that hides all but the question and the answer; "" for no fold.
    """

    key: str
    question: str
    answer: str
    details: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    charts: tuple[str, ...] = ()
    fold: str = ""
