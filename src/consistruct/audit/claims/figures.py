"""Figure 1: what its captions say, on the data behind the library's version of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from consistruct.audit.model import Deviation, Effort, Evidence, claim
from consistruct.audit.numerics import Worst, certified, relative
from consistruct.calibration import calibration_function
from consistruct.guarantees import crossing_point, figure_data
from consistruct.losses import Hamming, Mixed
from consistruct.scores import Blocks, Full


@claim(
    "figure-1a",
    "Section 3.1, Figure 1a",
    "figure",
    "Hamming loss: the curve with free scores (red) can grow exponentially slower than the one "
    "with separable scores (blue), which implies consistency.",
    "the figure's data against certified programs; ratio of the curves at growing T; both positive",
    covers=("fig:exampleTranferFunctions",),
)
def figure_1a(effort: Effort) -> Evidence:
    figure = figure_data("figure_1a")
    eps = figure.columns["eps"]
    red, blue = figure.columns["full scores"], figure.columns["own scores"]
    positive = Deviation(
        "points ε > 0 with H = 0", float(np.sum((red[1:] <= 0) | (blue[1:] <= 0))), 0
    )
    order = Deviation("points where red exceeds blue", float(np.sum(red > blue * (1 + 1e-9))), 0)
    certain = Worst("relative deviation of both curves from certified programs, T = 3", 1e-6)
    loss = Hamming(3)
    for e in (0.2, 0.5, 0.7, 1.0):
        for scores in (Full(loss), loss.score_space):
            found = calibration_function(loss, scores)(e)
            certain.add(relative(found, certified(loss, scores, e)[0]), f"ε = {e}")
    slow = Worst("(2^T/4T)/(blue/red), ε = 1", 1.0)
    for T in effort.pick((4, 10), (4, 10, 30)):
        log_ratio = calibration_function(Hamming(T)).log(1.0) - calibration_function(
            Hamming(T), "full"
        ).log(1.0)
        slow.add(2.0**T / (4 * T) / float(np.exp(log_ratio)), f"T = {T}")
    return Evidence(
        (positive, order, certain.deviation, slow.deviation),
        f"{len(eps)} points, T = 6; T up to 30",
    )


@claim(
    "figure-1b",
    "Section 3.1, Figure 1b",
    "figure",
    "Mixed loss, η = 0.4: with block scores (blue) the curve is zero up to 0.2 (level-0.2 "
    "consistency), then grows exponentially faster than the red one, with free scores.",
    "the figure's data: zeros, the level by linear programs, the crossing of the curves, the ratio "
    "at ε = 1 for growing blocks; a small member against certified programs",
    covers=("fig:exampleTranferFunctions",),
)
def figure_1b(effort: Effort) -> Evidence:
    figure = figure_data("figure_1b")
    eps = figure.columns["eps"]
    red, blue = figure.columns["full scores"], figure.columns["block scores"]
    flat = Deviation("largest blue value up to ε = 0.2", float(blue[eps <= 0.2 + 1e-12].max()), 0)
    still = float(np.sum(blue[eps > 0.2 + 1e-9] <= 0))
    rising = Deviation("blue points above 0.2 that are not positive", still, 0)
    crosses = bool(blue[eps <= 0.2].max() < red[eps > 0.1].min() and blue[-1] > red[-1])
    crossing = Deviation("1 unless blue starts below red and ends above it", float(not crosses), 0)
    mixed = Mixed((25,) * 4, 0.4)
    level = calibration_function(mixed, Blocks((25,) * 4)).consistency_level
    exact = Deviation("|level − 0.2|", abs(level - 0.2), 1e-9)
    certain = Worst("relative deviation from certified programs, two blocks of 2", 1e-6)
    small = Mixed((2, 2), 0.4)
    for e in (0.3, 0.7, 1.0):
        for scores in (Full(small), Blocks((2, 2))):
            found = calibration_function(small, scores)(e)
            certain.add(relative(found, certified(small, scores, e)[0]), f"ε = {e}")
    return Evidence((flat, rising, crossing, exact, certain.deviation), "4 blocks of 25, η = 0.4")


@claim(
    "figure-1b-choice",
    "Section 3.1, Figure 1b",
    "figure",
    "The inconsistent choice could be better for small η.",
    "where the curve of block scores overtakes that of free scores, as η falls",
)
def figure_1b_choice(effort: Effort) -> Evidence:
    points = []
    for eta in (0.4, 0.2, 0.1, 0.05):
        loss = Mixed((25,) * 4, eta)
        free, blocks = (
            calibration_function(loss, scores) for scores in ("full", Blocks((25,) * 4))
        )
        points.append(crossing_point(free, blocks) or np.inf)
    rising = Worst("rise of the crossing point as η falls", 0)
    for before, after in pairwise(points):
        rising.add(after - before, f"crossings {', '.join(f'{p:.3g}' for p in points)}")
    late = Deviation("crossing over η at η = 0.05", points[-1] / 0.05, 1.0)
    return Evidence((rising.deviation, late), "4 blocks of 25; η = 0.4, 0.2, 0.1, 0.05")
