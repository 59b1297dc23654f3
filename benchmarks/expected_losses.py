"""Expected losses against the losses that occurred, on real data small and large.

    python -m benchmarks.expected_losses --write [--jobs 8]

Each case is fitted once by `model="auto"`; `predict_expected_loss` on the rows tested, less the
losses that their true labels then cause, has to be at most 5 % of what occurred plus two standard
errors. ``--held-out`` cuts the training part of every case again, in place of its test part.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

from benchmarks import data as sources
from benchmarks.measure import RESULTS, machine, table
from benchmarks.sequence_data import (
    chunking_features,
    entity_features,
    load_chunking,
    load_entities,
    load_letters,
)
from consistruct import StructuredPredictor, TaskLossClassifier

PAGE = RESULTS / "expected_losses.md"
SHARE, ERRORS = 0.05, 2.0  # what may be missed: of what occurred, and in standard errors
TEST_SHARE = 0.3  # of the rows of data without a test part
FEWEST = 10  # rows of a class: with fewer, a part would lack it

Parts = tuple[Any, Any, Any, Any]  # X, y, X_test, y_test
Read = Callable[[bool], Parts]
Costs = dict[Any, dict[Any, float]]


@dataclass(frozen=True)
class Case:
    """One fit: the loss of the decisions, the rows of both parts, and who predicts."""

    name: str
    loss: Any
    read: Read
    structured: bool = False


@dataclass(frozen=True)
class Found:
    """What was expected of the rows tested, and what occurred."""

    name: str
    loss: str
    fitted: int
    tested: int
    expected: float
    occurred: float
    error: float  # standard error of the difference
    seconds: float

    @property
    def gap(self) -> float:
        return abs(self.expected - self.occurred)

    @property
    def allowed(self) -> float:
        return SHARE * self.occurred + ERRORS * self.error

    @property
    def met(self) -> bool:
        return self.gap <= self.allowed


# --- what is read ---


def _cut(X: Any, y: Any, share: float, seed: int) -> Parts:
    """Rows to fit on and rows to test on, drawn at random."""
    if isinstance(X, list):
        order = np.random.default_rng(seed).permutation(len(X))
        last = len(X) - round(share * len(X))
        first, second = order[:last], order[last:]
        return ([X[i] for i in first], [y[i] for i in first],
                [X[i] for i in second], [y[i] for i in second])  # fmt: skip
    first, second = train_test_split(np.arange(len(y)), test_size=share, random_state=seed)
    rows = X.iloc if isinstance(X, pd.DataFrame) else X
    return rows[first], y[first], rows[second], y[second]


def _parts(X: Any, y: Any, held_out: bool) -> Parts:
    """Parts of data without a test part of its own."""
    parts = _cut(X, y, TEST_SHARE, 0)
    return _cut(parts[0], parts[1], TEST_SHARE, 1) if held_out else parts


def _given(train: Sequence[Any], test: Callable[[], Sequence[Any]], held_out: bool) -> Parts:
    """The parts that data comes with; the test part is not even read if `held_out`."""
    if held_out:
        return _cut(train[0], train[1], TEST_SHARE, 1)
    X, y = test()
    return train[0], train[1], X, y


def _npz_table(name: str, held_out: bool) -> Parts:
    with np.load(sources.data_file(f"tab_{name}")) as archive:
        columns = {}
        for place, column in enumerate(archive["feature_names"]):
            values = archive["X"][:, place].astype(np.float64)
            columns[str(column)] = (
                pd.Categorical(values) if archive["categorical"][place] else values
            )
        y = archive["y"].astype(np.int64)
    keep = np.bincount(y)[y] >= FEWEST
    y = np.unique(y[keep], return_inverse=True)[1]
    return _parts(pd.DataFrame(columns)[keep], y, held_out)


def _csv_table(name: str, target: str, leaks: str, fewest: int, held_out: bool) -> Parts:
    frame = pd.read_csv(sources.data_folder() / "tables" / f"{name}.csv.gz", low_memory=False)
    frame = frame.drop(columns=["rownames", *leaks.split()]).dropna(subset=[target])
    counts = frame[target].value_counts()
    frame = frame[frame[target].isin(counts.index[counts >= fewest])]
    return _parts(frame.drop(columns=target), frame[target].to_numpy(), held_out)


def _leaves(held_out: bool) -> Parts:
    return sources.tree_parts(sources.label_tree(), held_out=held_out)


def _label_sets(name: str, held_out: bool) -> Parts:
    train = sources.load(name, "train")

    def test() -> tuple[Any, Any]:
        part = sources.load(name, "test")
        return part.X, part.y

    return _given((train.X, train.y), test, held_out)


def _nodes(held_out: bool) -> Parts:
    """The inner nodes above each leaf of ImCLEF07A: a set of labels per image."""
    with np.load(sources.data_file("imclef07a")) as archive:
        inner = np.unique(archive["parent"][archive["parent"] >= 0])

        def part(which: str) -> tuple[Any, Any]:
            nodes = np.unpackbits(archive[f"Y_{which}_packed"], axis=1)[:, inner]
            return archive[f"X_{which}"].astype(np.float64), nodes.astype(np.int64)

        found = part("train"), None if held_out else part("test")
    train, test = found
    return _given(train, lambda: test or (), held_out)


def _letters(first_fold: bool, held_out: bool) -> Parts:
    """Words of handwritten letters: fold 1 against the others, or the others against fold 0."""
    letters = load_letters()
    chosen = letters.folds == 1 if first_fold else letters.folds != 0
    train = letters.split(np.flatnonzero(chosen))
    return _given(train, lambda: letters.split(np.flatnonzero(~chosen)), held_out)


def _sentences(load: Any, features: Any, test: str, most: int | None, held_out: bool) -> Parts:
    def read(part: str) -> tuple[list[Any], list[Any]]:
        found = load(part)
        return [features(sentence) for sentence in found.sentences], found.tags

    X, y = read("train")
    if most is not None:  # a part of the training sentences, drawn at random
        some = np.random.default_rng(0).permutation(len(X))[:most]
        X, y = [X[i] for i in some], [y[i] for i in some]
    return _given((X, y), lambda: read(test), held_out)


def _costs(usual: Any, rare: Any, missed: float, alarm: float = 1.0) -> Costs:
    """Costs by prediction and true label: of missing the rare class, and of a false alarm."""
    return {usual: {usual: 0.0, rare: missed}, rare: {usual: alarm, rare: 0.0}}


def _file(name: str, target: str, leaks: str = "", fewest: int = FEWEST) -> Read:
    return partial(_csv_table, name, target, leaks, fewest)


def _npz(name: str) -> Read:
    return partial(_npz_table, name)


JOBS = ("VF", "F", "M", "L")  # how long they ran, from very fast to long
QUEUES = [[0, 1, 5, 10], [1, 0, 5, 5], [1, 1, 0, 1], [1, 1, 1, 0]]  # rows are predictions
HPC = {p: dict(zip(JOBS, row, strict=True)) for p, row in zip(JOBS, QUEUES, strict=True)}
LOAN_LEAKS = "sub_grade interest_rate installment paid_interest paid_principal paid_total balance"
CHUNKS = partial(_sentences, load_chunking, chunking_features, "test")
ENTITIES = partial(_sentences, load_entities, entity_features, "testa")
GRADES = "ordinal:A,B,C,D,E,F,G"
CASES = [
    Case("german", _costs(0, 1, 5.0), _npz("german")),
    Case("contraceptive", "zero_one", _npz("contraceptive")),
    Case("yeast, ten classes", "zero_one", _npz("yeast")),
    Case("attrition", _costs("No", "Yes", 5.0), _file("modeldata_attrition", "Attrition")),
    Case("email", _costs(0, 1, 1.0, 10.0), _file("openintro_email", "spam")),
    Case("high-performance computing", HPC, _file("modeldata_hpc_data", "class")),
    Case("credit", _costs("good", "bad", 5.0),
         _file("modeldata_credit_data", "Status")),
    Case("white wine", "ordinal", _npz("wine_white")),
    Case("stroke", _costs(0, 1, 20.0), _file("MLDataR_stroke_classification", "stroke", "pat_id")),
    Case("page-blocks", "zero_one", _npz("page_blocks")),
    Case("loans", GRADES, _file("openintro_loans_full_schema", "grade", LOAN_LEAKS)),
    Case("storms", "zero_one", _file("dplyr_storms", "status", "category")),
    Case("comics", "zero_one", _file("openintro_comics", "align")),
    Case("accidents", "ordinal", _file("DAAG_nassCDS", "injSeverity", "caseid dead")),
    Case("vocabulary", "ordinal", _file("carData_GSSvocab", "vocab")),
    Case("adult", "zero_one", _npz("adult")),
    Case("adult", _costs(0, 1, 10.0), _npz("adult")),
    Case("rodents", "zero_one",
         _file("ratdat_complete", "species_id", "genus species taxa record_id", 100)),
    Case("ImCLEF07A, leaves", "tree", _leaves),
    Case("yeast", "hamming", partial(_label_sets, "yeast"), True),
    Case("yeast", "fbeta", partial(_label_sets, "yeast"), True),
    Case("scene", "hamming", partial(_label_sets, "scene"), True),
    Case("scene", "fbeta", partial(_label_sets, "scene"), True),
    Case("bibtex", "fbeta", partial(_label_sets, "bibtex"), True),
    Case("ImCLEF07A, inner nodes", "hamming", _nodes, True),
    Case("ImCLEF07A, inner nodes", "fbeta", _nodes, True),
    Case("letters, one fold", "hamming", partial(_letters, True), True),
    Case("letters, nine folds", "hamming", partial(_letters, False), True),
    Case("chunks, 500 sentences", "hamming", partial(CHUNKS, 500), True),
    Case("chunks", "hamming", partial(CHUNKS, None), True),
    Case("entities, 2,000 sentences", "hamming", partial(ENTITIES, 2000), True),
    Case("entities", "hamming", partial(ENTITIES, None), True),
]  # fmt: skip


# --- what is measured ---


def measure(case: Case, held_out: bool) -> Found:
    """Fit once, and compare what was expected of the rows tested with what occurred."""
    X, y, X_test, y_test = case.read(held_out)
    loss = sources.label_tree() if case.loss == "tree" else case.loss
    estimator = StructuredPredictor if case.structured else TaskLossClassifier
    begun = time.process_time()
    axis: dict[str, Any] = {"rows": "pred"} if isinstance(loss, dict) else {}
    model = estimator(loss, random_state=0, n_jobs=1, **axis).fit(X, y)
    seconds = time.process_time() - begun
    expected = model.predict_expected_loss(X_test)
    occurred = model.task_losses(X_test, y_test)
    n = len(occurred)
    return Found(
        case.name,
        case.loss.split(":")[0] if isinstance(case.loss, str) else "costs",
        len(y),
        n,
        float(expected.mean()),
        float(occurred.mean()),
        float((expected - occurred).std(ddof=1) / np.sqrt(n)),
        seconds,
    )


def page(rows: Sequence[Found]) -> str:
    """The page of all cases."""
    cells = [
        (
            row.name,
            row.loss,
            f"{row.fitted:,}",
            f"{row.tested:,}",
            f"{row.expected:.4g}",
            f"{row.occurred:.4g}",
            f"{100 * (row.expected / row.occurred - 1):+.1f} %",
            f"{100 * row.allowed / row.occurred:.1f} %",
            "yes" if row.met else "**no**",
            f"{row.seconds:.0f}",
        )
        for row in rows
    ]
    header = ("data", "loss", "rows fitted", "rows tested", "expected", "occurred",
              "difference", "allowed", "met", "processor s")  # fmt: skip
    return f"""# Expected and occurred losses

Made by `python -m benchmarks.expected_losses --write` on {machine()}.

Each case is fitted once by `model="auto"` with seed 0. *Expected* is the mean of
`predict_expected_loss` on rows that took no part in the fit, *occurred* the mean loss that their
true labels then cause. Allowed: {100 * SHARE:.0f} % of what occurred and {ERRORS:g} standard errors of the
mean difference. Met in {sum(row.met for row in rows)} of {len(rows)} cases. Data without a test part: 30 % of the
rows, drawn at random, are the test part. Sequences are compared by the share of wrong tags in each.

{table(header, cells)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--held-out", action="store_true", dest="held_out")
    parser.add_argument("--jobs", type=int, default=1, help="cases that are fitted at a time")
    parser.add_argument("--only", default="", help="cases whose name holds this word")
    options = parser.parse_args()
    if options.write and (options.held_out or options.only):
        parser.error("--write is for all cases and their test parts")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # of the processes that fit
    cases = [case for case in CASES if options.only in case.name]
    found: Iterable[Found] = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(measure)(case, options.held_out) for case in cases
    )
    rows = []
    for one in found:
        print(f"{one.name}, {one.loss}: {one.expected:.4g} for {one.occurred:.4g}", flush=True)
        rows.append(one)
    text = page(rows)
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
