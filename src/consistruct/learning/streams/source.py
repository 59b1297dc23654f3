"""Where batches come from: a list, a function that starts over, or an iterator that does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._frames import as_array, refuse_missing_labels
from consistruct._validation import is_sparse, to_dense

__all__ = ["Batch", "Source"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows.

    Attributes
    ----------
    X : (n, d) array, CSR or DataFrame
    y : (n,) or (n, …) labels, as the user writes them
    sample_weight : (n,) array, or None
    keys : (n,) array of uint64, or None
        Numbers that tell rows apart whatever batch they come in (file and position); without them
        rows are distinguished by what they hold.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    keys: Any = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    @property
    def labels(self) -> Any:
        """The labels as an array, (n,) or (n, …); a missing one is refused with its row."""
        labels = np.asarray(as_array(to_dense(self.y) if is_sparse(self.y) else self.y))
        refuse_missing_labels(labels)
        return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels

    @classmethod
    def of(cls, given: Any) -> Batch:
        """From (X, y), (X, y, sample_weight) or a mapping with these names."""
        if isinstance(given, Batch):
            return given
        if isinstance(given, Mapping):
            unknown = sorted(set(given) - {"X", "y", "sample_weight"})
            if unknown or "X" not in given or "y" not in given:
                raise ValueError(
                    f"a batch must have the entries X and y, and may have sample_weight; got "
                    f"{', '.join(map(repr, given))}"
                )
            return cls(**given)
        if isinstance(given, tuple | list) and len(given) in (2, 3):
            return cls(*given)
        raise TypeError(
            f"a batch must be (X, y), (X, y, sample_weight) or a mapping with these names, got "
            f"{type(given).__name__}"
        )


class Source:
    """Batches that are read one after the other, once or several times.

    Parameters
    ----------
    batches : sequence, iterable, or function without arguments that returns an iterator
    """

    def __init__(self, batches: Any) -> None:
        if isinstance(batches, Source):
            batches = batches.batches
        if isinstance(batches, Mapping | str | bytes) or not (
            callable(batches) or isinstance(batches, Iterable)
        ):
            raise TypeError(
                f"batches must be a list of (X, y), or a function that returns an iterator over "
                f"them, got {type(batches).__name__}"
            )
        self.batches: Sequence[Any] | Iterable[Any] | Callable[[], Iterator[Any]] = batches

    @property
    def repeats(self) -> bool:
        """Whether the batches can be read again."""
        return not isinstance(self.batches, Iterator)

    def __iter__(self) -> Iterator[Batch]:
        batches = self.batches
        for given in batches() if callable(batches) else batches:
            yield Batch.of(given)

    def shuffled(self, rng: np.random.Generator) -> Iterator[Batch]:
        """The batches in random order where there are numbers to draw from, else as they come."""
        batches = self.batches
        if hasattr(batches, "shuffled"):
            yield from map(Batch.of, batches.shuffled(rng))
        elif isinstance(batches, Sequence):
            for position in rng.permutation(len(batches)):
                yield Batch.of(batches[int(position)])
        else:
            yield from self
