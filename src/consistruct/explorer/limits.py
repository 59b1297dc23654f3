"""What one visitor may ask of the explorer: within the budgets of all specs, and narrower."""

from __future__ import annotations

from dataclasses import dataclass, field

from consistruct._budgets import SPECS
from consistruct._threads import cores

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Bounds on input, work and memory; each refusal names the one that was passed.

    Attributes
    ----------
    upload_bytes, request_bytes : int
        Size of a CSV file and of any other request.
    labels : int
        Rows and columns of an uploaded matrix.
    name_characters : int
        Length of a label name in it.
    shared_bytes : int
        Matrices up to this size are part of the address that is shared.
    spec_characters, spec_integer : int
        Length of a loss or score spec, and the largest integer in it.
    log2_labels : int
        log₂ of the number of predictions that a spec may name.
    seconds : float
        Time of one computation.
    memory_bytes : int
        Address space of one worker process, where the system can limit it.
    workers, waiting : int
        Computations at a time, and how many more may wait.
    matrices, results : int
        How many uploads and results are remembered; the oldest go first.
    patience : float
        Seconds without a sign of life from the page after which its computation is cancelled.
    request_seconds : float
        Time for a whole request to arrive after its connection was opened, and for a reader who
        does not read to go on; the connection is closed then.
    connections : int
        Open at a time; further requests are answered with 503.
    """

    upload_bytes: int = 500_000
    request_bytes: int = 20_000
    labels: int = 200
    name_characters: int = 200
    shared_bytes: int = 6_000
    spec_characters: int = SPECS.page_characters
    spec_integer: int = SPECS.page_integer
    log2_labels: int = 4096
    seconds: float = 120.0
    memory_bytes: int = 4 * 2**30
    workers: int = field(default_factory=lambda: min(3, cores()))
    waiting: int = 16
    matrices: int = 64
    results: int = 64
    patience: float = 45.0
    request_seconds: float = 20.0
    connections: int = 100
