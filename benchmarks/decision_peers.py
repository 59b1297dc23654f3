"""PyEPO's optimization models over our compiled oracles, and OR-Tools as an oracle of ours."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from pyepo import EPO
from pyepo.model.opt import optModel

from benchmarks.decision_cells import CAPACITY, Task
from consistruct.losses import Decision


class CompiledModel(optModel):  # type: ignore[misc]  # no stubs
    """One problem at a time, as PyEPO requests them."""

    def __init__(self, oracle: Any, maximize: bool) -> None:
        self.oracle, self.sign = oracle, -1.0 if maximize else 1.0
        super().__init__()
        self.modelSense = EPO.MAXIMIZE if maximize else EPO.MINIMIZE

    def _getModel(self) -> Any:  # noqa: N802
        return None, {i: i for i in range(self.oracle.n_costs)}

    @property
    def num_cost(self) -> int:
        return int(self.oracle.n_costs)

    def setObj(self, c: Any) -> None:  # noqa: N802
        self.costs = np.asarray(c, dtype=np.float64)

    def solve(self) -> Any:
        decision = self.oracle(self.sign * self.costs[None])[0]
        return decision, float(decision @ self.costs)


def compiled_model(task: Task) -> CompiledModel:
    return CompiledModel(task.loss.solver, task.loss.sense == "max")


def ortools_task(task: Task, cell: str, seed: int) -> Task:
    """The same task with PyEPO's OR-Tools model as the oracle, one row at a time."""
    import pyepo
    from pyepo.model.ort import knapsackModel, shortestPathModel

    if cell.startswith("path"):
        model = shortestPathModel((5, 5))
    else:
        weights, _, _ = pyepo.data.knapsack.genData(2, 5, 32, dim=1, seed=seed)
        model = knapsackModel(weights, [CAPACITY])

    def solve(costs: np.ndarray) -> np.ndarray:
        model.setObj(costs)
        return np.asarray(model.solve()[0], dtype=np.float64)

    loss = Decision(solve, task.C.shape[1], sense=task.loss.sense, batch=False)
    return dataclasses.replace(task, loss=loss)
