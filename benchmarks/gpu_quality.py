"""Networks trained for the loss, beside the same ones with cross-entropy and Bayes decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import consistruct as cs
from benchmarks import data
from benchmarks.measure import table
from consistruct.learning.models import Torch
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray

TITLE = "Quality: the same network, epochs and seeds"
SEEDS = (0, 1, 2)
SETS = ("scene", "bibtex", "imclef07a")
NETWORK = {"module_factory": (256,), "learning_rate": 1e-3, "batch_size": 64, "patience": 10}


def estimates(loss: Loss | str, surrogate: str, X: Any, y: Any, seed: int, epochs: int) -> Any:
    """The trained network; "auto" is the default of `Torch`."""
    model = Torch(surrogate=surrogate, max_epochs=epochs, **NETWORK)  # type: ignore[arg-type]
    return cs.TaskLossClassifier(loss, model, random_state=seed).fit(X, y)


def best_threshold(p: FloatArray, Y: np.ndarray) -> float:
    """The threshold on probabilities of labels with the best mean example-F1."""
    grid = np.linspace(0.05, 0.95, 37)
    return float(grid[np.argmax([example_f1(p > cut, Y).mean() for cut in grid])])


def example_f1(pred: np.ndarray, Y: np.ndarray) -> FloatArray:
    pred, Y = pred.astype(bool), Y.astype(bool)
    total = pred.sum(1) + Y.sum(1)
    return np.where(total > 0, 2 * (pred & Y).sum(1) / np.maximum(total, 1), 1.0)


def sets(name: str, seed: int, epochs: int, held_out: bool) -> tuple[float, float]:
    """Mean example-F1 of ours and of cross-entropy with a threshold tuned on training rows."""
    X, Y, X_test, Y_test = data.train_and_test(name, held_out=held_out)
    ours = estimates("fbeta", "auto", X, Y, seed, epochs).predict(X_test)
    peer = estimates("hamming", "log", X, Y, seed, epochs)
    rows = np.random.default_rng(seed).permutation(X.shape[0])
    cut = len(rows) // 5
    # the threshold comes from rows that a second network did not see
    tuner = estimates("hamming", "log", X[rows[cut:]], Y[rows[cut:]], seed, epochs)
    threshold = best_threshold(probabilities(tuner, X[rows[:cut]]), Y[rows[:cut]])
    theirs = probabilities(peer, X_test) > threshold
    return float(example_f1(ours, Y_test).mean()), float(example_f1(theirs, Y_test).mean())


def probabilities(model: Any, X: Any) -> FloatArray:
    """P(y_t = 1) of a network trained by the log loss of each label."""
    target = model.expected_target(X)
    return -target.reshape(len(target), -1, 2)[:, :, 1] * (target.shape[1] // 2)


def tree(seed: int, epochs: int, held_out: bool) -> tuple[float, float]:
    """Mean tree loss of ours and of cross-entropy with Bayes decisions."""
    loss = data.label_tree()
    X, y, X_test, y_test = data.tree_parts(loss, held_out=held_out)
    found = []
    for surrogate in ("quadratic", "log"):
        model = estimates(loss, surrogate, X, y, seed, epochs)
        found.append(float(loss(model.predict(X_test), y_test).mean()))
    return found[0], found[1]


def quality(quick: bool, held_out: bool, names: Sequence[str] = SETS) -> str:
    """Three data sets, three seeds."""
    epochs, seeds = (2, SEEDS[:1]) if quick else (60, SEEDS)
    held_out = held_out or quick
    rows = []
    for name in names:
        if quick and name == "bibtex":
            continue
        found = np.array(
            [
                tree(seed, epochs, held_out)
                if name == "imclef07a"
                else sets(name, seed, epochs, held_out)
                for seed in seeds
            ]
        )
        ours, theirs = found.mean(0)
        better = ours < theirs if name == "imclef07a" else ours > theirs
        spread = (found[:, 0] - found[:, 1]).std(ddof=1) if len(seeds) > 1 else 0.0
        what = "tree loss, lower" if name == "imclef07a" else "example-F1, higher"
        rows.append(
            [name, what, f"{ours:.4f}", f"{theirs:.4f}", f"{ours - theirs:+.4f} (sd {spread:.4f})",
             "yes" if better else "no"]
        )  # fmt: skip
    header = ["data", "metric", "ours", "cross-entropy", "difference", "better"]
    part = "test parts"
    if held_out:
        part = "a quarter of the training part in place of the test part"
    return (
        f"One hidden layer of 256, AdamW, at most {epochs} epochs with early stopping on the "
        f"out-of-fold task loss, {len(seeds)} seeds, {part}. Ours: the default surrogate for F1 "
        f'(log loss of label sets, or of each label and the size of its set), "quadratic" for the '
        f"tree loss; there the default is cross-entropy with Bayes decisions, the peer itself. "
        f"Cross-entropy has the strongest usual decisions: a threshold tuned for F1 on rows that "
        f"its network did not see, and Bayes decisions for the tree loss."
        f"\n\n{table(header, rows)}"
    )
