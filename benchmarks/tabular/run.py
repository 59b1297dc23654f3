"""Which fits a page needs, and the cells that they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.tabular.costs import Cell
from benchmarks.tabular.measured import (
    Job,
    Measured,
    data_key,
    measure_all,
    package_digest,
    probabilities,
    versions,
)
from benchmarks.tabular.peers import PEERS, Peer, all_peers, bayes_decisions
from benchmarks.tabular.tables import Split, Table, costs_of, read_table, splits_of
from consistruct.learning import TaskLossClassifier
from consistruct.losses import CostMatrix

__all__ = ["ARGMAX", "BAYES", "MODELS", "OURS", "Run"]

OURS = ("consistruct", "consistruct, categories marked")
BAYES = tuple(peer.name for peer in all_peers())
ARGMAX = tuple(f"{peer.name}, argmax" for peer in PEERS)
MODELS = (*OURS, *BAYES, *ARGMAX)


def peer_probabilities(peer: Peer, table: Table, split: Split) -> np.ndarray:
    model = peer.make(table.categorical)
    model.fit(table.X[split.train], table.y[split.train])
    return probabilities(model, table.X[split.test], table.n_classes)


def our_decisions(table: Table, split: Split, costs: np.ndarray, marked: bool) -> np.ndarray:
    """By defaults, on the raw numbers or on a DataFrame that states which columns are categories."""
    X: Any = marked_categories(table) if marked else table.X
    take = X.iloc.__getitem__ if marked else X.__getitem__
    ours: Any = TaskLossClassifier(
        CostMatrix(costs, rows="pred"), model="auto", random_state=0, n_jobs=1
    )
    ours.fit(take(split.train), table.y[split.train])
    return np.asarray(ours.predict(take(split.test)))


def marked_categories(table: Table) -> Any:
    """A DataFrame with columns of strings where the numbers are codes; missing stays missing."""
    from pandas import DataFrame

    frame = DataFrame(table.X, columns=[f"x{j}" for j in range(table.X.shape[1])])
    for j in np.flatnonzero(table.categorical):
        codes = table.X[:, j]
        frame[f"x{j}"] = [None if np.isnan(code) else f"c{code:.0f}" for code in codes]
    return frame


@dataclass(frozen=True, eq=False)
class Run:
    """One table and its splits; requests the fits and puts their results together."""

    table: Table
    splits: list[Split]
    held_out: bool
    n_jobs: int

    @classmethod
    def of(cls, name: str, *, n_splits: int, held_out: bool, n_jobs: int) -> Run:
        table = read_table(name)
        return cls(table, splits_of(table, n_splits, held_out=held_out), held_out, n_jobs)

    def _job(self, label: str, depends: str, split: Split, work: Callable[[], np.ndarray]) -> Job:
        name = self.table.name
        place = f"{data_key(f'tab_{name}')} held_out={self.held_out} {split.number}"
        title = f"{name} {split.number} {label}"
        return Job(title, f"{place} {label} {depends}", work)

    def peers(self) -> dict[str, list[Measured]]:
        """Probabilities of each peer for each split."""
        jobs = [
            self._job(
                peer.name,
                f"{peer.make(self.table.categorical)!r} {versions()}",
                split,
                partial(peer_probabilities, peer, self.table, split),
            )
            for peer in all_peers()
            for split in self.splits
        ]
        return self._by_model(BAYES, jobs)

    def ours(self, kind: str) -> dict[str, list[Measured]]:
        """Decisions of ours for each split under one kind of costs.

        Without categories there is nothing to mark, and both rows are the same fit.
        """
        rows = OURS if self.table.categorical.any() else OURS[:1]
        jobs = []
        for row in rows:
            for split in self.splits:
                matrix = costs_of(self.table, split)[kind]
                work = partial(our_decisions, self.table, split, matrix, row == OURS[1])
                depends = f"{package_digest()} {matrix.tobytes().hex()}"
                jobs.append(self._job(f"{row} {kind}", depends, split, work))
        found = self._by_model(rows, jobs)
        return {row: found.get(row, found[OURS[0]]) for row in OURS}

    def _by_model(self, names: tuple[str, ...], jobs: list[Job]) -> dict[str, list[Measured]]:
        found, size = measure_all(jobs, self.n_jobs), len(self.splits)
        return {name: found[i * size : (i + 1) * size] for i, name in enumerate(names)}

    def cells(self) -> list[Cell]:
        """All kinds of costs of the table."""
        peers = self.peers()
        kinds = costs_of(self.table, self.splits[0])
        return [self._cell(kind, peers | self.ours(kind)) for kind in kinds]

    def _cell(self, kind: str, fits: dict[str, list[Measured]]) -> Cell:
        matrices = [costs_of(self.table, split)[kind] for split in self.splits]
        y_true = [self.table.y[split.test] for split in self.splits]
        columns, processor, wall, machines = [], [], [], []
        for name in MODELS:
            parts = fits[name.removesuffix(", argmax")]
            columns.append(
                np.concatenate(
                    [
                        matrix[_decisions(name, fit.values, matrix), true]
                        for fit, matrix, true in zip(parts, matrices, y_true, strict=True)
                    ]
                )
            )
            processor.append(sum(fit.processor for fit in parts))
            wall.append(sum(fit.wall for fit in parts))
            machines.append("; ".join(sorted({fit.machine for fit in parts})))
        losses, times = np.stack(columns, axis=1), (np.array(processor), np.array(wall))
        return Cell(self.table.name, kind, losses, *times, tuple(machines))


def _decisions(name: str, values: np.ndarray, costs: np.ndarray) -> np.ndarray:
    if name in OURS:
        return values
    return values.argmax(axis=1) if name in ARGMAX else bayes_decisions(values, costs)
