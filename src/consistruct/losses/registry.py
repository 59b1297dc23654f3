"""One line per loss: what spec strings, tests, docs and scorers know them by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from consistruct.exceptions import LossSpecError
from consistruct.losses.abstain import Abstain
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.block import Block, Mixed
from consistruct.losses.cost_matrix import CostMatrix
from consistruct.losses.cost_vectors import CostVectors
from consistruct.losses.files import read_cost_csv
from consistruct.losses.hamming import Hamming
from consistruct.losses.ordinal import Ordinal
from consistruct.losses.tree import Tree
from consistruct.losses.zero_one import ZeroOne

__all__ = ["LOSSES", "LossEntry", "parse_loss"]


@dataclass(frozen=True)
class LossEntry:
    """A registered loss.

    Attributes
    ----------
    cls : type
        The class.
    spec : str
        How it is written as a string.
    examples : tuple of Loss
        Members that the conformance checks run on; include the awkward ones.
    huge : Loss or None
        A member with more than 2^200 predictions, if the class has one.
    """

    cls: type[Loss]
    spec: str
    examples: tuple[Loss, ...]
    huge: Loss | None = None


_KDD = [[0, 1, 2, 3, 4], [1, 0, 1, 2, 2], [2, 2, 0, 2, 2], [2, 2, 2, 0, 2], [2, 2, 2, 2, 0]]
_FOREST = (-1, -1, 0, 0, 1, 2, 2)

# fmt: off
LOSSES: dict[str, LossEntry] = {
    "zero-one": LossEntry(ZeroOne, "zero-one:10", (ZeroOne(1), ZeroOne(2), ZeroOne(7)), ZeroOne(2**300)),
    "block": LossEntry(Block, "block:3,5,2 or block:4x25", (Block((4,)), Block((2, 2, 2)), Block((1, 5, 3)), Block(assignment=(2, 0, 1, 0, 2))), Block((2**250, 3, 2**201))),
    "mixed": LossEntry(Mixed, "mixed:4x25:0.4", (Mixed((2, 2, 2), 0.4), Mixed((1, 4), 1.0), Mixed((3, 2), 0.0), Mixed(None, 0.1, assignment=(1, 0, 1))), Mixed((2**250, 2**250), 0.4)),
    "hamming": LossEntry(Hamming, "hamming:10 or hamming:10x26", (Hamming(1), Hamming(4), Hamming(3, 3), Hamming(2, 5)), Hamming(1000)),
    "ordinal": LossEntry(Ordinal, "ordinal:5 or ordinal:5:2", (Ordinal(1), Ordinal(5), Ordinal(6, 2.0), Ordinal(4, 0.5)), Ordinal(2**300)),
    "abstain": LossEntry(Abstain, "abstain:5:0.3", (Abstain(1, 0.2), Abstain(4, 0.3), Abstain(4, 0.75)), Abstain(2**300, 0.3)),
    "cost": LossEntry(CostMatrix, "cost:FILE.csv", (CostMatrix(_KDD), CostMatrix([[0, 1, 2]]), CostMatrix([[0], [1], [0]]), CostMatrix([[1, 1], [1, 1]]), CostMatrix([[0, 1], [1, 0], [0, 1], [0.3, 0.4]]))),
    "cost-vectors": LossEntry(CostVectors, "cost-vectors:5", (CostVectors(1), CostVectors(4, 2.0)), CostVectors(2**300)),
    "tree": LossEntry(Tree, "tree:FILE.csv", (Tree((-1, 0, 0, 1, 1, 2)), Tree((-1, 0, 0, 1, 1), predict="nodes"), Tree(_FOREST, kind="level"), Tree(_FOREST, (1.0, 0.5, 0.25), kind="level", predict="nodes"), Tree((-1, 0, 0, 1, 1), (0, 1, 2, 0, 0)), Tree((-1,)))),
}
# fmt: on


def parse_loss(
    spec: str, *, sizes: Sizes | None = None, rows: Literal["pred", "true"] | None = None
) -> Loss:
    """Build a loss from a string such as ``hamming:10x26``, ``block:4x25`` or ``cost:FILE.csv``.

    Parameters
    ----------
    spec : str
        Name and fields, separated by colons; ``_`` and ``-`` in names are alike.
    sizes : Sizes, optional
        What data tell about sizes that the spec leaves out.
    rows : "pred" or "true", optional
        Orientation of a cost file.

    Examples
    --------
    >>> from consistruct.losses import parse_loss
    >>> parse_loss("mixed:2x3:0.4"), parse_loss("zero_one:4")
    (Mixed((3, 3), 0.4), ZeroOne(4))
    """
    if not isinstance(spec, str):
        raise TypeError(f"a loss spec must be a string, got {type(spec).__name__}")
    head, _, tail = spec.partition(":")
    name = head.strip().lower().replace("_", "-")
    if name not in LOSSES:
        raise LossSpecError(
            f"unknown loss {head!r} in the spec {spec!r}; known are {', '.join(sorted(LOSSES))}"
        )
    if rows is not None and name != "cost":
        raise LossSpecError(f"rows={rows!r} says how to read a cost file; {spec!r} names none")
    if name == "cost":
        if not tail:
            raise LossSpecError("the spec of cost names a CSV file; write cost:FILE.csv")
        return read_cost_csv(tail, rows=rows)
    # a file name may hold colons; everything else is split at them
    arguments = (tail,) if name == "tree" else tuple(tail.split(":")) if tail else ()
    try:
        return LOSSES[name].cls.from_spec(arguments, sizes or Sizes())
    except LossSpecError:
        raise
    except (TypeError, ValueError) as error:
        raise LossSpecError(f"{spec!r}: {error}") from None
