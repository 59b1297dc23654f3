"""Ready-made optimisation oracles: the cheapest path, tree, tour, set, … for each row of costs."""

from consistruct.decoding.oracles.base import CallCount, Counts, Oracle, counted_calls
from consistruct.decoding.oracles.custom import Custom
from consistruct.decoding.oracles.feasible import BestDecision, Feasible
from consistruct.decoding.oracles.packing import Intervals, Knapsack, TopK
from consistruct.decoding.oracles.paths import GraphPath, GridPath, Path
from consistruct.decoding.oracles.programs import MixedInteger
from consistruct.decoding.oracles.tours import Tour
from consistruct.decoding.oracles.trees import Arborescence, Assignments, SpanningTree

__all__ = [
    "ORACLES",
    "Arborescence",
    "Assignments",
    "BestDecision",
    "CallCount",
    "Counts",
    "Custom",
    "Feasible",
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

# by the name that specs and files use
ORACLES: dict[str, type[Oracle]] = {
    cls.name: cls
    for cls in (
        GridPath,
        Path,
        GraphPath,
        Assignments,
        SpanningTree,
        Arborescence,
        Knapsack,
        TopK,
        Intervals,
        MixedInteger,
        Tour,
    )
}
