"""What a pass leaves of its rows, and the pass itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct._validation import check_csr, is_sparse
from consistruct.learning.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from consistruct.learning.models.ridge.moments import ARRAYS, NUMBERS, Moments, MomentSums
from consistruct.learning.streams.sample import RowSample, content_keys
from consistruct.learning.streams.source import Batch

if TYPE_CHECKING:
    from consistruct.learning.streams.plan import Plan

__all__ = ["Pass", "Summary"]


@dataclass(frozen=True, eq=False)
class Summary:
    """What a pass over some rows leaves: their moments, and a few of them to be left out in turn.

    ``a + b`` is the summary of both, ``a - b`` that of the rows of a without those of b.

    Attributes
    ----------
    moments : Moments
    sample : RowSample
        Inputs, codes and weights.
    """

    moments: Moments
    sample: RowSample

    def __add__(self, other: object) -> Summary:
        if not isinstance(other, Summary):
            return NotImplemented
        return Summary(self.moments + other.moments, self.sample + other.sample)

    def __radd__(self, other: object) -> Summary:
        return self if type(other) is int and other == 0 else NotImplemented

    def __sub__(self, other: object) -> Summary:
        if not isinstance(other, Summary):
            return NotImplemented
        return Summary(self.moments - other.moments, self.sample - other.sample)

    def save(self, path: str | Path) -> None:
        """Write to a file (safetensors with a checksum), whole or not at all."""
        moments, sample = self.moments, self.sample
        arrays = {name: getattr(moments, name) for name in ARRAYS}
        numbers = {name: getattr(moments, name) for name in NUMBERS}
        arrays |= sample_arrays(sample)
        numbers |= {"form": "summary", "sample_size": sample.size}
        write_checkpoint(path, Checkpoint(arrays, numbers, moments.key))

    @classmethod
    def load(cls, path: str | Path) -> Summary:
        """The summary in a file that `save` wrote; loading executes nothing."""
        found = read_checkpoint(path)
        if found is None or found.numbers.get("form") != "summary":
            raise ValueError(f"{str(path)!r} is not the summary of a pass")
        numbers = {name: found.numbers[name] for name in NUMBERS}
        arrays: dict[str, Any] = {name: found.arrays[name] for name in ARRAYS}
        sample = restored_sample(found.arrays, int(found.numbers["sample_size"]))
        return cls(Moments(**arrays, **numbers, key=found.fingerprint), sample)


class Pass:
    """Sums in the making: one batch after the other, bit by bit alike for the same batches."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sums = MomentSums(plan.features.n_sums, plan.statistic.width)
        self.sample: RowSample | None = None

    def add(self, given: Any) -> int:
        """Sum the rows of a batch; how many it had."""
        batch = Batch.of(given)
        plan = self.plan
        rows = plan.read(batch, checked=not plan.shows_faults)
        for part in self.sums.chunks(rows.inputs.shape[0]):
            self.sums.add(
                plan.features.summed(rows.inputs[part]),
                plan.statistic.values(rows.codes[part]),
                rows.weight[part],
            )
        if plan.shows_faults and not np.isfinite(self.sums.feature_sum).all():
            plan.inputs(batch.X)  # raises, and names the place
            raise ValueError("the sums of X are too large for float64; use other units")
        if len(rows.weight):
            if batch.keys is None:
                keys = content_keys(rows.inputs, rows.codes, plan.seed)
            else:  # rows of no weight were left out
                keys = batch.keys[plan.positive(batch)]
            entries = rows.inputs, rows.codes, rows.weight, keys
            if self.sample is None:
                self.sample = RowSample.of(*entries, plan.sample_size)
            else:
                self.sample = self.sample.with_rows(*entries)
        return len(rows.weight)

    def summary(self) -> Summary:
        """The result so far."""
        if self.sample is None:
            raise ValueError("there are no rows with a positive weight to learn from")
        return Summary(Moments.from_sums(self.sums, key=self.plan.key), self.sample)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state, for a checkpoint."""
        return self.sums.arrays() | ({} if self.sample is None else sample_arrays(self.sample))

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` gave."""
        self.sums.restore(arrays)
        if "sample.keys" in arrays:
            self.sample = restored_sample(arrays, self.plan.sample_size)


def sample_arrays(sample: RowSample) -> dict[str, NDArray[Any]]:
    """A sample of numbers as arrays by name."""
    arrays = {"sample.keys": sample.keys, "sample.y": sample.y, "sample.weight": sample.weight}
    if not is_sparse(sample.X):
        return arrays | {"sample.X": np.ascontiguousarray(sample.X)}
    X = sample.X
    shape = np.array(X.shape)
    return arrays | {
        "sample.data": X.data,
        "sample.indices": X.indices,
        "sample.indptr": X.indptr,
        "sample.shape": shape,
    }


def restored_sample(arrays: dict[str, NDArray[Any]], size: int) -> RowSample:
    """The inverse of `sample_arrays`."""
    part = {name.removeprefix("sample."): value for name, value in arrays.items()}
    if "X" in part:
        X: Any = part["X"]
    else:
        shape = tuple(part["shape"].tolist())
        check_csr(part["data"], part["indices"], part["indptr"], shape)
        X = sp.csr_array((part["data"], part["indices"], part["indptr"]), shape=shape)
    return RowSample(size, part["keys"], X, part["y"], part["weight"])
