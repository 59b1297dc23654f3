"""Score families as strings: ``own``, ``full``, ``blocks:4x25``, ``separable``, ``chain``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from consistruct._budgets import SPECS, unreadable_table
from consistruct._validation import read_integer
from consistruct.exceptions import LossSpecError
from consistruct.labels import Product
from consistruct.protocols import TaskLoss
from consistruct.scores.base import BaseScoreSpace
from consistruct.scores.blocks import Blocks
from consistruct.scores.chain import Chain
from consistruct.scores.decisions import Decisions
from consistruct.scores.dense import Dense
from consistruct.scores.full import Full
from consistruct.scores.separable import Separable

__all__ = ["parse_scores"]

KNOWN = "own, full, blocks:3,5,2 or blocks:4x25, separable, chain, sortable, matrix:FILE.csv"


def parse_scores(spec: str, loss: TaskLoss) -> BaseScoreSpace:
    """The score space that a string names, over the predictions of a loss.

    Examples
    --------
    >>> from consistruct.losses import Hamming
    >>> from consistruct.scores.spec import parse_scores
    >>> parse_scores("chain", Hamming(5, 3))
    Chain(5, 3)
    """
    if len(spec) > SPECS.characters:
        raise LossSpecError(
            f"a spec of scores may have at most {SPECS.characters} characters, got {len(spec)}"
        )
    name, _, tail = spec.partition(":")
    name = name.strip().lower()
    predictions = loss.score_space.predictions
    if name == "own" and not tail:
        own = loss.score_space
        assert isinstance(own, BaseScoreSpace)
        return own
    if isinstance(loss.score_space, Decisions):
        if name == "uniform" and not tail:
            return Decisions(loss.score_space.oracle, "uniform")
        raise LossSpecError(
            f"decisions have scores own (any oracle) or uniform (paths, knapsacks), not {spec!r}"
        )
    if name == "full" and not tail:
        return Full(loss)
    if name in ("separable", "chain") and not tail:
        if not isinstance(predictions, Product):
            raise LossSpecError(f"{name} scores need labels made of parts, such as hamming:10x26")
        if name == "chain":
            return Chain(predictions.n_parts, predictions.n_states)
        return Separable(predictions.n_parts, predictions.n_states)
    if name == "sortable" and not tail:
        # an easier space that a loss offers besides its own
        offered = getattr(loss, "sortable_scores", None)
        if offered is None:
            raise LossSpecError(
                "sortable scores are an alternative that only map offers; use own, which is "
                "sortable where that is consistent"
            )
        space = offered()
        assert isinstance(space, BaseScoreSpace)
        return space
    if name == "blocks" and tail:
        return Blocks(block_sizes(tail))
    if name == "matrix" and tail:
        return Dense(_read_matrix(tail), over=predictions)
    raise LossSpecError(f"unknown scores {spec!r}; the known ones are {KNOWN}")


def block_sizes(text: str) -> tuple[int, ...]:
    """Block sizes: ``3,5,2``, or ``4x25`` for four blocks of 25.

    >>> block_sizes("4x2"), block_sizes("3,5")
    ((2, 2, 2, 2), (3, 5))
    """
    try:
        if "x" in text:
            number, size = (read_integer(part, SPECS.digits) for part in text.split("x"))
            _check_blocks(number)
            sizes = (size,) * number
        else:
            sizes = tuple(read_integer(part, SPECS.digits) for part in text.split(","))
    except LossSpecError:
        raise
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise LossSpecError(
            f"block sizes must be written as 3,5,2 or as 4x25 (four blocks of 25), got "
            f"{text[:40]!r}"
        )
    return sizes


def _check_blocks(number: int) -> None:
    if number > SPECS.blocks:
        raise LossSpecError(
            f"a spec may name at most {SPECS.blocks} blocks, got {str(number)[:24]}; "
            f"choose fewer, or build the loss in Python"
        )


def _read_matrix(path: str) -> np.ndarray:
    fault = unreadable_table(path)
    if fault is not None:
        raise LossSpecError(f"{path} could not be read as a matrix of numbers: {fault}")
    try:
        return np.loadtxt(Path(path), delimiter=",", ndmin=2, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise LossSpecError(f"{path} could not be read as a matrix of numbers: {error}") from None
