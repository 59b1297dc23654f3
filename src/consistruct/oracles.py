"""Ready-made optimisation oracles, for `consistruct.losses.Decision`."""

from consistruct.decoding.oracles import (
    ORACLES,
    Arborescence,
    Assignments,
    GraphPath,
    GridPath,
    Intervals,
    Knapsack,
    MixedInteger,
    Oracle,
    Path,
    SpanningTree,
    TopK,
    Tour,
    counted_calls,
)

__all__ = [
    "ORACLES",
    "Arborescence",
    "Assignments",
    "GraphPath",
    "GridPath",
    "Intervals",
    "Knapsack",
    "MixedInteger",
    "Oracle",
    "Path",
    "SpanningTree",
    "TopK",
    "Tour",
    "counted_calls",
]
