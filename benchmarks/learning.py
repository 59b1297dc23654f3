"""Learning against peers: task losses by defaults, speed of the closed form, speed of sparse SGD.

    python -m benchmarks.learning --quick      # small data, a check that everything runs
    python -m benchmarks.learning --held-out   # full size, test parts replaced: for development
    python -m benchmarks.learning --write      # the real run; writes benchmarks/results/learning.md

Peers are tuned on training data only, by the task loss; ours run with their defaults. Test parts
are read by the run without --quick and --held-out, and by nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks import data as sources
from benchmarks.measure import RESULTS, interval, machine, seconds, table, taking_turns
from consistruct.learning import TaskLossClassifier
from consistruct.learning.models.ridge.model import Ridge
from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD
from consistruct.losses import Hamming
from consistruct.losses.base import Loss

SVC_GRID = {"svc__C": [1.0, 10.0, 100.0], "svc__gamma": ["scale", 0.003, 0.01, 0.03]}
LOGISTIC_GRID = {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]}


def rbf_svc() -> Any:
    return make_pipeline(StandardScaler(), SVC(cache_size=500))


def logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))


def task_scorer(loss: Loss) -> Any:
    """Minus the mean task loss of predicted classes 0..k−1."""

    def mean_loss(y_true: Any, y_pred: Any) -> float:
        return float(loss(np.asarray(y_pred), np.asarray(y_true)).mean())

    return make_scorer(mean_loss, greater_is_better=False)


def tuned(model: Any, grid: dict[str, Any], loss: Loss, folds: int = 3) -> GridSearchCV:
    split = StratifiedKFold(folds, shuffle=True, random_state=0)
    return GridSearchCV(model, grid, scoring=task_scorer(loss), cv=split)


def quiet(work: Callable[[], Any]) -> Any:
    """Peers warn about classes with few members and about iterations; the figures stand."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


# --- (a) a label tree ----------------------------------------------------------------------------


def tree_benchmark(quick: bool, held_out: bool) -> str:
    tree = sources.label_tree()
    X, y, X_test, y_test = sources.tree_parts(tree, held_out=held_out)
    if quick:
        X, y, X_test, y_test = X[:1000], y[:1000], X_test[:500], y_test[:500]
    fitted: dict[str, tuple[float, Any]] = {}
    ours = TaskLossClassifier(tree, random_state=0)
    fitted["consistruct, defaults"] = seconds(lambda: ours.fit(X, y))
    ridge = TaskLossClassifier(tree, Ridge(), random_state=0)
    fitted["consistruct, models.Ridge()"] = seconds(lambda: ridge.fit(X, y))
    svc = tuned(rbf_svc(), SVC_GRID, tree)
    fitted["RBF SVC, tuned"] = seconds(lambda: quiet(lambda: svc.fit(X, y)))
    regression = tuned(logistic(), LOGISTIC_GRID, tree)
    fitted["logistic regression, tuned"] = seconds(lambda: quiet(lambda: regression.fit(X, y)))

    predictions = {name: np.asarray(model.predict(X_test)) for name, (_, model) in fitted.items()}
    best = regression.best_estimator_
    # Bayes decision: the leaf with the least expected path length under the class probabilities
    expected = best.predict_proba(X_test) @ tree.matrix()[:, best.classes_].T
    predictions["logistic regression, Bayes decisions"] = expected.argmin(axis=1)
    losses = {name: tree(pred, y_test) for name, pred in predictions.items()}
    reference = losses["consistruct, defaults"]
    rows = [
        (
            name,
            f"{values.mean():.4f}",
            f"{(predictions[name] != y_test).mean():.4f}",
            "" if values is reference else interval(reference, values),
            f"{fitted[name][0]:.1f}" if name in fitted else "",
        )
        for name, values in losses.items()
    ]
    header = (
        "model",
        "path length",
        "0-1 error",
        "defaults − this [95 %]",
        "seconds, tuning included",
    )
    return (
        "## (a) ImCLEF07A, path length in the label tree\n\n"
        f"{len(X)} training and {len(X_test)} test examples, 63 leaves. Defaults are "
        '`TaskLossClassifier(tree)`, with `model="auto"`; the second row is one of the models that '
        "it tries, alone. Peers: grids over C (and gamma), three folds of the training part, chosen "
        "by the path length.\n\n" + table(header, rows)
    )


# --- (b) classic small data ----------------------------------------------------------------------


def classic_benchmark(quick: bool, held_out: bool) -> str:
    rows = []
    for name, loader, repeats in (("digits", load_digits, 1), ("wine", load_wine, 5)):
        X, y = loader(return_X_y=True)
        if quick:
            X, y = X[:300], y[:300]
        errors: dict[str, Any] = {"ours": [], "svc": []}
        times = {"ours": 0.0, "svc": 0.0}
        for repeat in range(1 if quick else repeats):
            folds = StratifiedKFold(5, shuffle=True, random_state=repeat)
            models = {
                "ours": TaskLossClassifier(random_state=0),
                # tuned anew inside every training fold
                "svc": GridSearchCV(rbf_svc(), SVC_GRID, cv=3),
            }
            for key, model in models.items():
                work = partial(cross_val_predict, model, X, y, cv=folds)
                spent, pred = seconds(partial(quiet, work))
                errors[key].append(pred != y)
                times[key] += spent
        ours, svc = (np.mean(errors[key], axis=0) for key in ("ours", "svc"))
        rows.append(
            (
                name,
                f"{ours.mean():.4f}",
                f"{svc.mean():.4f}",
                interval(ours, svc),
                f"{times['ours']:.1f}",
                f"{times['svc']:.1f}",
            )
        )
    header = ("data", "ours, defaults", "RBF SVC, tuned", "ours − theirs [95 %]", "s ours", "s SVC")
    return (
        "## (b) Digits and wine, 0-1 error by cross-validation\n\n"
        "Five folds, once for digits and five times for wine; the SVC is tuned inside each "
        "training fold.\n\n" + table(header, rows)
    )


# --- (c) the closed form on a large dense matrix -------------------------------------------------


def closed_form_benchmark(quick: bool, held_out: bool) -> str:
    n, d, k = (20_000, 200, 100) if quick else (200_000, 1_000, 100)
    command = [sys.executable, "-m", "benchmarks.closed_form_job", str(n), str(d), str(k)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    rows = [
        (
            what,
            *(f"{result[job][clock]:.2f}" for clock in (0, 1) for job in ("fit", "products")),
            *(f"{result['fit'][clock] / result['products'][clock]:.2f}" for clock in (0, 1)),
            f"{result['peak']:.2f}",
        )
        for what, result in found.items()
    ]
    header = (
        "targets",
        "fit, s",
        "bare products, s",
        "fit, processor s",
        "products, processor s",
        "ratio",
        "ratio of processor time",
        "peak memory / input",
    )
    return (
        f"## (c) Closed form on {n:,} x {d:,} float32, {k} targets\n\n"
        "Linear features, default choice of the penalty (generalized cross-validation at this "
        "size). Bare products: XᵀX and XᵀU in float32, one call each, the first with half of the "
        "operations (NumPy calls syrk), best of five, taking turns with the fit. Peak memory: the "
        "resident set of a process of its own after the fit, less that before X was made, over the "
        "bytes of X.\n\n" + table(header, rows)
    )


# --- (d) sparse averaged SGD ---------------------------------------------------------------------


def sparse_sgd_benchmark(quick: bool, held_out: bool) -> str:
    X, Y, X_test, Y_test = sources.train_and_test("bibtex", held_out=held_out)
    if quick:
        X, Y, X_test, Y_test = X[:800], Y[:800, :20], X_test, Y_test[:, :20]
    loss = Hamming(Y.shape[1])
    epochs = 3 if quick else 20
    strengths = (1e-4,) if quick else (1e-5, 1e-4, 1e-3, 1e-2)
    X_fit, X_held, Y_fit, Y_held = train_test_split(X, Y, test_size=0.25, random_state=0)
    our_held = {
        alpha: held_out_loss(
            sgd_classifier(loss, alpha, epochs).fit(X_fit, Y_fit).predict(X_held), Y_held
        )
        for alpha in strengths  # the peer's grid
    }
    peer_held = {
        (kind, alpha): held_out_loss(
            columns(one_label_at_a_time(X_fit, Y_fit, kind, alpha, epochs), X_held), Y_held
        )
        for kind in ("hinge", "log_loss")
        for alpha in strengths
    }
    our_alpha = min(our_held, key=lambda alpha: our_held[alpha])
    kind, alpha = min(peer_held, key=lambda key: peer_held[key])

    models: dict[str, Any] = {
        "consistruct averaged SGD, defaults": sgd_classifier(loss, "auto", epochs),
        f"consistruct averaged SGD, alpha={our_alpha:g}, tuned": sgd_classifier(
            loss, our_alpha, epochs
        ),
    }
    jobs = [partial(model.fit, X, Y) for model in models.values()]
    losses = {}
    for (name, model), job in zip(models.items(), jobs, strict=True):
        job()
        losses[name] = loss(model.predict(X_test), Y_test)
    for name, settings in (
        ("hinge, alpha=0.0001: its defaults", ("hinge", 1e-4)),
        (f"{kind}, alpha={alpha:g}, tuned", (kind, alpha)),
    ):
        jobs.append(partial(one_label_at_a_time, X, Y, *settings, epochs))
        key = f"SGDClassifier ({name}), averaged, one label at a time"
        losses[key] = loss(columns(jobs[-1](), X_test), Y_test)
    times = dict(zip(losses, taking_turns(jobs, rounds=3) / epochs, strict=True))
    defaults, tuned_ours, peer_defaults, tuned_peer = losses
    rivals = {peer_defaults: defaults, tuned_peer: tuned_ours}
    rows = [
        (
            name,
            *(f"{clock:.3f}" for clock in times[name]),
            f"{values.mean():.5f}",
            interval(losses[rivals[name]], values) if name in rivals else "",
        )
        for name, values in losses.items()
    ]
    header = ("model", "s per epoch", "processor s", "Hamming loss", "ours − theirs [95 %]")
    wall, processor = times[tuned_peer] / times[tuned_ours]
    return (
        "## (d) Sparse averaged SGD on bibtex, Hamming loss\n\n"
        f"{epochs} epochs each, {X.shape[0]} x {X.shape[1]} sparse inputs, {Y.shape[1]} labels. "
        "Tuned: alpha (and the peer's loss) by the Hamming loss on a quarter of the training "
        "part. Our defaults choose alpha themselves, which their time includes. "
        "Differences compare defaults with defaults and tuned with tuned. "
        f"**An epoch is {wall:.1f} times faster by the clock, {processor:.1f} times in processor "
        "time** (tuned models; whole fit over epochs, best of three that take turns).\n\n"
        + table(header, rows)
    )


def held_out_loss(pred: np.ndarray, true: np.ndarray) -> float:
    return float((pred != true).mean())


def sgd_classifier(loss: Loss, alpha: Any, epochs: int) -> TaskLossClassifier:
    solver = AveragedSGD(max_epochs=epochs, patience=epochs)
    return TaskLossClassifier(loss, Ridge(alpha=alpha, solver=solver), random_state=0)


def one_label_at_a_time(
    X: Any, Y: np.ndarray, kind: str, strength: float, epochs: int
) -> list[Any]:
    """One model per label; a label that never or always occurs gets its constant."""
    models: list[Any] = []
    for y_true in Y.T:
        if y_true.min() == y_true.max():
            models.append(int(y_true[0]))
            continue
        model = SGDClassifier(
            loss=kind, alpha=strength, average=True, max_iter=epochs, tol=None, random_state=0
        )
        models.append(quiet(partial(model.fit, X, y_true)))
    return models


def columns(models: list[Any], X: Any) -> np.ndarray:
    """Predictions of one model per label, (n, T)."""
    return np.column_stack(
        [
            np.full(X.shape[0], model) if isinstance(model, int) else model.predict(X)
            for model in models
        ]
    )


PARTS: dict[str, Callable[[bool, bool], str]] = {
    "tree": tree_benchmark,
    "classic": classic_benchmark,
    "closed-form": closed_form_benchmark,
    "sparse-sgd": sparse_sgd_benchmark,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, one repeat")
    parser.add_argument(
        "--held-out", action="store_true", help="leave test parts unread: training data only"
    )
    parser.add_argument("--write", action="store_true", help="write results/learning.md")
    parser.add_argument("--only", choices=PARTS, help="one part")
    options = parser.parse_args()
    held_out = options.held_out or options.quick
    if options.write and (held_out or options.only):
        parser.error("--write needs the full run: no --quick, no --held-out, no --only")
    sections = []
    for name, part in PARTS.items():
        if options.only in (None, name):
            sections.append(part(options.quick, held_out))
            print(sections[-1] + "\n", flush=True)
    if options.write:
        used = ", ".join(
            f"{name} (SHA-256 {sources.SOURCES[name].sha256[:16]}…, {sources.SOURCES[name].origin})"
            for name in ("imclef07a", "bibtex")
        )
        page = [
            "# Learning: task losses and speed against peers",
            "Made by `python -m benchmarks.learning --write`; do not edit.",
            f"Machine: {machine()}.\n\nData: {used}; digits and wine from scikit-learn.",
            *sections,
        ]
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "learning.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
