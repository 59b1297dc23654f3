"""The same guarantees by MAPIE, on the same probabilities and rows."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import consistruct as cs
from benchmarks.measure import table
from benchmarks.risk_control.common import CONFIDENCE, both_parts, forest, logistic, parts
from benchmarks.tabular.tables import read_table
from consistruct.exceptions import RiskLevelError
from consistruct.guarantees.risk import RiskControl


def label_chances(estimator: Any) -> Callable[[Any], np.ndarray]:
    return lambda X: estimator.loss_.label_probabilities(estimator.expected_target(X))


def set_quality(sets: np.ndarray, y_true: np.ndarray) -> tuple[float, float, float]:
    """Mean recall, mean precision (0 for an empty set) and mean size of label sets."""
    shared = (sets * y_true).sum(axis=1)
    recall = np.where(y_true.any(axis=1), shared / np.maximum(y_true.sum(axis=1), 1), 1.0)
    precision = shared / np.maximum(sets.sum(axis=1), 1)
    return float(recall.mean()), float(precision.mean()), float(sets.sum(axis=1).mean())


def peers(splits: int, held_out: bool) -> Iterator[str]:
    """All guarantees that both make, longer by one data set each time."""
    warnings.simplefilter("ignore", UserWarning)  # of thresholds that MAPIE does not find
    header = ["data", "guarantee", "who", "measure guaranteed", "splits below", "kept", "seconds"]
    rows: list[list[str]] = []
    for name in ("yeast", "scene"):
        X, Y = both_parts(name, held_out)
        rows += label_peers(name, X, Y.astype(np.int64), splits)
        yield table(header, rows)
    rows += binary_peers(splits)
    yield table(header, rows)


def label_peers(name: str, X: Any, Y: np.ndarray, splits: int) -> list[list[str]]:
    from mapie.risk_control import MultiLabelClassificationController as Controller

    T = Y.shape[1]
    least_precision = 0.55 if name == "yeast" else 0.5
    recall = cs.losses.FBeta(T, 1e6)
    precision = cs.losses.FBeta(T, 1e-6, empty=0.0)
    fine = np.linspace(0.0, 0.999, 300)

    def ours(loss: Any, level: float, policy: str, confidence: float | None) -> Any:
        def run(estimator: Any, X: Any, Y: Any, seed: int) -> Any:
            control = RiskControl(
                estimator, level, loss=loss, policy=policy, confidence=confidence,
                random_state=seed,
            )  # fmt: skip
            return control.fit(X, Y).predict

        return run

    def theirs(**settings: Any) -> Any:
        def run(estimator: Any, X: Any, Y: Any, seed: int) -> Any:
            control = Controller(label_chances(estimator), random_state=seed, **settings)
            control.calibrate(X, Y)
            return lambda new: control.predict(new)[:, :, 0]

        return run

    conditions = {
        "recall ≥ 0.9 on average": (
            0,
            0.9,
            {
                "ours, conformal": ours(recall, 0.1, "grow", None),
                "MAPIE, CRC, 300 thresholds": theirs(
                    risk="recall", method="crc", target_level=0.9, predict_params=fine
                ),
                "MAPIE, CRC, its 100 thresholds": theirs(
                    risk="recall", method="crc", target_level=0.9
                ),
            },
        ),
        "recall ≥ 0.9 with 90 %": (
            0,
            0.9,
            {
                "ours, betting": ours(recall, 0.1, "grow", CONFIDENCE),
                **{
                    f"MAPIE, RCPS, {bound}": theirs(
                        risk="recall", method="rcps", target_level=0.9, rcps_bound=bound,
                        confidence_level=CONFIDENCE,
                    )
                    for bound in ("hoeffding", "bernstein", "wsr")
                },
            },
        ),
        f"precision ≥ {least_precision} with 90 %": (
            1,
            least_precision,
            {
                "ours, betting": ours(
                    precision, 1.0 - least_precision, "threshold", CONFIDENCE
                ),
                "MAPIE, LTT": theirs(
                    risk="precision", method="ltt", confidence_level=CONFIDENCE,
                    target_level=least_precision,
                ),
            },
        ),
    }  # fmt: skip
    found: dict[tuple[str, str], list[Any]] = {}
    for seed in range(splits):
        fit, calibrate, test = parts(len(Y), seed)
        estimator = logistic("hamming").fit(X[fit], Y[fit])
        for condition, (_, _, runs) in conditions.items():
            for who, run in runs.items():
                start = time.perf_counter()
                try:
                    predict = run(estimator, X[calibrate], Y[calibrate], seed)
                    seconds = time.perf_counter() - start
                    quality = set_quality(np.asarray(predict(X[test])), Y[test])
                except RiskLevelError:
                    quality, seconds = (np.nan, np.nan, 0.0), time.perf_counter() - start
                found.setdefault((condition, who), []).append((*quality, seconds))
    rows = []
    for (condition, who), values in found.items():
        column, target, _ = conditions[condition]
        numbers = np.array(values)
        guaranteed = numbers[:, column]
        rows.append(
            [
                name, condition, who, f"{np.nanmean(guaranteed):.4f}",
                f"{int((guaranteed < target).sum())} of {splits}",
                f"{numbers[:, 2].mean():.3f} labels" + kept(column), f"{numbers[:, 3].mean():.3f}",
            ]
        )  # fmt: skip
    return rows


def kept(column: int) -> str:
    return " (fewer is better)" if column == 0 else " (more is better)"


TARGETS = {"precision": 0.75, "recall": 0.85}  # of the two classes
TEST_ROWS = 6000


def binary_peers(splits: int) -> list[list[str]]:
    """Adult: precision and recall of "earns more", on the same probabilities.

    Ours: a decision problem with one answer. Precision: the answer is "1", wrong if the true label
    is 0, and the loss of the answers is guaranteed. Recall: the answer is "0", wrong if the true
    label is 1; of rows with true label 1 at most so many may be answered.
    """
    from mapie.risk_control import BinaryClassificationController as Controller

    source = read_table("adult")
    X, y = np.nan_to_num(source.X, nan=-1.0), source.y
    found: dict[tuple[str, str], list[Any]] = {}
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(y))
        fit, calibrate, test = order[:3000], order[3000:5000], order[5000 : 5000 + TEST_ROWS]
        both = forest("zero_one").fit(X[fit], y[fit])
        probabilities = both.predict_proba

        def ours(risk: str, both: Any = both, rows: Any = calibrate, new: Any = test) -> Any:
            precise = risk == "precision"
            answer = copy.copy(both).set_loss(
                cs.losses.CostMatrix([[1.0, 0.0]] if precise else [[0.0, 1.0]], rows="pred")
            )
            control = RiskControl(
                answer, 1.0 - TARGETS[risk], policy="abstain", confidence=CONFIDENCE,
                risk="selective" if precise else "marginal", random_state=0,
            )  # fmt: skip
            if not precise:
                rows = rows[y[rows] == 1]
            answers = control.fit(X[rows], y[rows]).predict(X[new])
            silent = np.array([one is None for one in answers])
            return (~silent if precise else silent).astype(np.int64)

        def theirs(
            risk: str,
            method: str,
            both: Any = probabilities,
            rows: Any = calibrate,
            new: Any = test,
        ) -> Any:
            # a threshold that calls nothing positive has no precision, and MAPIE then finds none;
            # sequences go from the safest threshold on
            tried = np.arange(0.9, -0.005, -0.01) if risk == "precision" else np.arange(0, 1, 0.01)
            control = Controller(
                both, risk, TARGETS[risk], CONFIDENCE, list_predict_params=np.maximum(tried, 0.0),
                fwer_method=method,
            )  # fmt: skip
            if method == "split_fixed_sequence":
                learn, rows = rows[: len(rows) // 5], rows[len(rows) // 5 :]
                control.learn_fixed_sequence_order(X[learn], y[learn])
            control.calibrate(X[rows], y[rows])
            return np.asarray(control.predict(X[new]))

        for risk in ("precision", "recall"):
            jobs: dict[str, Callable[[], Any]] = {"ours": partial(ours, risk)}
            for method in ("bonferroni_holm", "fixed_sequence", "split_fixed_sequence"):
                jobs[f"MAPIE, {method}"] = partial(theirs, risk, method)
            for who, job in jobs.items():
                start = time.perf_counter()
                try:
                    answers = job()
                except ValueError as error:  # no threshold was found: nothing is called positive
                    print("adult", risk, who, error, flush=True)
                    answers = np.zeros(len(test), dtype=np.int64)
                seconds = time.perf_counter() - start
                right = float((answers * y[test]).sum())
                precision = right / max(float(answers.sum()), 1.0)
                recall = right / float(y[test].sum())
                key = (f"{risk} ≥ {TARGETS[risk]} with 90 %", who)
                found.setdefault(key, []).append((precision, recall, seconds))
    rows = []
    for (condition, who), values in found.items():
        numbers = np.array(values)
        guaranteed, other = (0, 1) if condition.startswith("precision") else (1, 0)
        target, name = TARGETS[("precision", "recall")[guaranteed]], ("precision", "recall")[other]
        rows.append(
            [
                "adult", condition, who, f"{numbers[:, guaranteed].mean():.4f}",
                f"{int((numbers[:, guaranteed] < target).sum())} of {len(values)}",
                f"{name} {numbers[:, other].mean():.4f} (more is better)",
                f"{numbers[:, 2].mean():.3f}",
            ]
        )  # fmt: skip
    return rows
