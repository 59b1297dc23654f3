"""Names of losses as people write them: other words for the same loss, and near misses."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["ALIASES", "loss_name", "unknown_loss"]

# what others call it: what it is called here
ALIASES = {
    "0-1": "zero-one",
    "accuracy": "zero-one",
    "error-rate": "zero-one",
    "hamming-loss": "hamming",
    "mae": "ordinal",
    "mean-average-precision": "map",
    "p-at": "precision-at",
    "spearman": "spearman-rho",
    "kendall-tau": "kendall",
}


def loss_name(head: str) -> str:
    """The name before the first colon of a spec, as the registry writes it.

    >>> loss_name("Zero_One"), loss_name("accuracy")
    ('zero-one', 'zero-one')
    """
    name = head.strip().lower().replace("_", "-").replace(" ", "-")
    return ALIASES.get(name, name)


def unknown_loss(head: str, spec: str, known: Iterable[str]) -> str:
    """What to say where there is no such loss: the nearest names, then all of them.

    >>> print(unknown_loss("zero-on", "zero-on:3", ["zero-one"]))
    unknown loss 'zero-on' in the spec 'zero-on:3'; did you mean zero-one? The losses are zero-one
    """
    names = sorted(known)
    near = get_close_matches(loss_name(head), [*names, *ALIASES], n=2, cutoff=0.7)
    meant = f"did you mean {' or '.join(near)}? The" if near else "the"
    return f"unknown loss {head!r} in the spec {spec!r}; {meant} losses are {', '.join(names)}"
