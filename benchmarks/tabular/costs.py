"""From decisions to figures: cost of every row, means with a paired bootstrap, ratios."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Cell", "Figures", "figures", "geometric_mean", "with_interval"]

ROUNDS = 2000
CHUNK = 100  # rounds whose counts are held at a time


@dataclass(frozen=True, eq=False)
class Cell:
    """One data set under one kind of costs: what every row cost each model.

    Attributes
    ----------
    losses : (n, models) array
        Rows in the order in which the splits tested them, so that cells of a table are paired.
    processor, wall : (models,) arrays
        Seconds of fitting and predicting, summed over splits.
    machines : tuple of str
        Where each model was measured.
    """

    data: str
    costs: str
    losses: np.ndarray
    processor: np.ndarray
    wall: np.ndarray
    machines: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Figures:
    """Mean cost of each cell and model, and the same of resampled rows.

    Attributes
    ----------
    means : (cells, models) array
    resampled : (rounds, cells, models) array
    """

    means: np.ndarray
    resampled: np.ndarray


def figures(cells: list[Cell], rounds: int = ROUNDS, seed: int = 0) -> Figures:
    """Rows of a table are resampled together for all its costs and all models."""
    means = np.stack([cell.losses.mean(axis=0) for cell in cells])
    resampled = np.empty((rounds, *means.shape))
    rng = np.random.default_rng(seed)
    for data in dict.fromkeys(cell.data for cell in cells):
        places = [i for i, cell in enumerate(cells) if cell.data == data]
        stacked = np.hstack([cells[i].losses for i in places])  # (n, cells of the table · models)
        n = len(stacked)
        for start in range(0, rounds, CHUNK):
            part = slice(start, min(start + CHUNK, rounds))
            counts = rng.multinomial(n, np.full(n, 1.0 / n), size=part.stop - start)
            drawn = counts.astype(np.float64) @ stacked / n
            resampled[part, places] = drawn.reshape(len(counts), len(places), -1)
    return Figures(means, resampled)


def geometric_mean(ratios: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    return np.asarray(np.exp(np.log(ratios).mean(axis=-1)))


def with_interval(value: float, drawn: np.ndarray, digits: int = 3) -> str:
    """A figure and its 95 % interval as a cell of a table."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
