"""What a pass over very many rows costs, before it is started: time, memory, bytes moved.

With n rows, m features, w targets and p workers, each of which holds n/p rows:

    products   n/p · (m² + 2mw) operations       half of 2m², since Σφφᵀ is symmetric
    reading    n/p · 4m bytes                    float32 columns
    merging    8(m² + mw + m + w) bytes a sum    p − 1 sums move, in ⌈log_f p⌉ rounds of fan-in f
    solving    (4/3)m³ + 2m²w operations         once, by the client
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from consistruct._validation import check_count
from consistruct.protocols import FloatArray

__all__ = ["MergeTree", "PassCost", "Rates", "measured_rates", "pass_cost", "simulated_merges"]

CHUNK_BYTES = 2**23  # of the features that a worker multiplies at a time


@dataclass(frozen=True)
class Rates:
    """What one worker does in a second.

    Attributes
    ----------
    operations : float
        Floating point operations of products in float64.
    read_bytes : float
        Bytes of a data file that are decoded in a second.
    network_bytes : float
        Between two workers.
    """

    operations: float = 2e10
    read_bytes: float = 5e8
    network_bytes: float = 1e9


@dataclass(frozen=True)
class PassCost:
    """Seconds of each step, and what has to be held and moved.

    Attributes
    ----------
    products, reading, merging, solving : float
        Seconds.
    bytes_of_a_sum : int
        What one worker sends.
    bytes_moved : int
        By all of them.
    memory_of_a_worker : int
        Its sums, those it adds up, and a chunk of rows.
    """

    products: float
    reading: float
    merging: float
    solving: float
    bytes_of_a_sum: int
    bytes_moved: int
    memory_of_a_worker: int

    @property
    def seconds(self) -> float:
        """All steps one after the other; reading and products overlap in practice."""
        return self.products + self.reading + self.merging + self.solving


@dataclass(frozen=True)
class MergeTree:
    """What happened when sums were added up.

    Attributes
    ----------
    rounds : int
    bytes_moved : int
    most_received : int
        By one worker in one round.
    total : (…) array
        The sum.
    """

    rounds: int
    bytes_moved: int
    most_received: int
    total: FloatArray


def pass_cost(
    rows: int,
    features: int,
    targets: int,
    workers: int,
    *,
    rates: Rates | None = None,
    fan_in: int = 8,
) -> PassCost:
    """The cost of one pass.

    Examples
    --------
    >>> cost = pass_cost(10**9, 1000, 10, workers=100)
    >>> round(cost.products), round(cost.reading), round(cost.merging, 2)
    (510, 80, 0.17)
    >>> cost.bytes_of_a_sum
    8088080
    """
    for name, value in (
        ("rows", rows), ("features", features), ("targets", targets), ("workers", workers),
    ):  # fmt: skip
        check_count(value, name)
    rates = rates or Rates()
    share = rows / workers
    size = 8 * (features**2 + features * targets + features + targets)
    rounds = math.ceil(math.log(workers, fan_in) - 1e-12) if workers > 1 else 0
    received = (min(fan_in, workers) - 1) * size
    return PassCost(
        products=share * (features**2 + 2 * features * targets) / rates.operations,
        reading=share * 4 * features / rates.read_bytes,
        merging=rounds * received / rates.network_bytes,
        solving=(4 / 3 * features**3 + 2 * features**2 * targets) / rates.operations,
        bytes_of_a_sum=size,
        bytes_moved=(workers - 1) * size,
        memory_of_a_worker=min(fan_in, workers) * size + CHUNK_BYTES,
    )


def simulated_merges(sums: list[FloatArray], fan_in: int = 8) -> MergeTree:
    """Add up arrays as the workers of a tree do, and count what moves.

    In each round the first of every `fan_in` workers that still hold a sum receives those of the
    others.
    """
    holding = [array.copy() for array in sums]
    rounds = moved = most = 0
    while len(holding) > 1:
        left = []
        for start in range(0, len(holding), fan_in):
            own, *received = holding[start : start + fan_in]
            size = sum(array.nbytes for array in received)
            moved += size
            most = max(most, size)
            for array in received:
                own = own + array
            left.append(own)
        holding = left
        rounds += 1
    return MergeTree(rounds, moved, most, holding[0])


def measured_rates(features: int = 256, rows: int = 16_384, rounds: int = 3) -> Rates:
    """The rate of products on this machine, in processor time; the others as `Rates` has them."""
    block = np.random.default_rng(0).standard_normal((features, rows))
    second = np.zeros((features, features), order="F")
    best = math.inf
    for _ in range(rounds):
        start = time.process_time()
        blas.dsyrk(1.0, np.asfortranarray(block), beta=1.0, c=second, lower=1, overwrite_c=1)
        best = min(best, time.process_time() - start)
    return Rates(operations=rows * features**2 / max(best, 1e-9))
