"""Five tasks from the README alone: its commands, run as they stand there and timed.

    python -m benchmarks.tasks --write

Costs on a CSV file and "how hard is this loss" use what the README itself writes; the other three
get real files under the names that its commands have, from training parts only (three quarters to
fit, a quarter to evaluate). Each task must take less than five minutes on two cores.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.page_blocks import COMMANDS, Block, blocks, commands, run_command  # noqa: E402

from benchmarks import measure  # noqa: E402

README = ROOT / "README.md"
LIMIT = 300.0  # seconds
PATIENCE = 3600.0  # for one command, on a machine where others work
SENTENCES = 5000  # of the 15,806 of CoNLL-2002, Dutch
PAGE = measure.RESULTS / "tasks.md"


@dataclass(frozen=True)
class Task:
    """What a reader wants, the word by which its blocks are found, and who writes its files.

    `files` takes a folder and whether a small made-up set will do.
    """

    title: str
    word: str
    files: Callable[[Path, bool], str]


@dataclass(frozen=True)
class Timing:
    """One command: what it is, how long it took by the clock, and how much processor time."""

    command: str
    wall: float
    processor: float
    output: str


# --- files under the names of the README ---


def readme_files(folder: Path, small: bool) -> str:
    """The costs and the tables that the README writes itself."""
    page = blocks(README.read_text(encoding="utf-8"))
    costs = next(block for block in page if block.file == "costs.csv")
    (folder / "costs.csv").write_text(costs.code, encoding="utf-8")
    writes = next(b for b in page if b.language == "python" and '"train.csv"' in b.code)
    before = Path.cwd()
    os.chdir(folder)
    try:
        exec(compile(writes.code, str(README), "exec"), {"__name__": "readme"})
    finally:
        os.chdir(before)
    return "442 diabetes patients, ten columns"


def label_sets(folder: Path, small: bool) -> str:
    """ARFF files with six labels at the end."""
    names = ["beach", "sunset", "fall", "field", "mountain", "urban"]
    if small:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 5))
        Y = (X @ rng.normal(size=(5, 6)) > 0).astype(int)
    else:
        from benchmarks.data import data_file

        with np.load(data_file("scene")) as file:
            X, Y = file["X_train"], file["Y_train"]
    cut = 3 * len(X) // 4
    for name, rows in (("train", slice(cut)), ("test", slice(cut, None))):
        lines = ["@relation scenes"]
        lines += [f"@attribute x{column} numeric" for column in range(X.shape[1])]
        lines += [f"@attribute {label} {{0,1}}" for label in names]
        lines.append("@data")
        lines += [
            ",".join([*(f"{value:.6g}" for value in x), *map(str, y)])
            for x, y in zip(X[rows].tolist(), Y[rows].tolist(), strict=True)
        ]
        (folder / f"scenes_{name}.arff").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"{len(X)} pictures with {X.shape[1]} columns and 6 labels"


def tagged_sentences(folder: Path, small: bool) -> str:
    """Column files: word, part of speech, tag."""
    if small:
        words = [("Ada", "N", "B-PER"), ("Lovelace", "N", "I-PER"), ("ran", "V", "O")]
        sentences = [words[:length] for length in (3, 1, 2)] * 12
    else:
        from benchmarks.sequence_data import load_entities

        found = load_entities("train")
        sentences = [
            [(word, pos, tag) for (word, pos), tag in zip(tokens, tags, strict=True)]
            for tokens, tags in zip(found.sentences, found.tags, strict=True)
        ][:SENTENCES]
    cut = 3 * len(sentences) // 4
    for name, part in (("train", sentences[:cut]), ("test", sentences[cut:])):
        text = "\n\n".join("\n".join(" ".join(token) for token in one) for one in part)
        (folder / f"{name}.conll").write_text(text + "\n", encoding="utf-8")
    template = next(
        b for b in blocks(README.read_text(encoding="utf-8")) if b.file == "template.txt"
    )
    (folder / "template.txt").write_text(template.code, encoding="utf-8")
    return f"{len(sentences)} sentences with {sum(map(len, sentences))} words"


def ranked_items(folder: Path, small: bool) -> str:
    """Tables with a query, a relevance and columns of each item."""
    if small:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        y, sizes = (X[:, 0] > 0).astype(int), np.full(40, 5)
    else:
        from benchmarks.data import data_file

        with np.load(data_file("lightgbm_rank")) as file:
            X, y, sizes = file["X_train"], file["y_train"], file["group_train"]
    query = np.repeat(np.arange(len(sizes)), sizes)
    cut = 3 * len(sizes) // 4
    for name, kept in (("train", query < cut), ("test", query >= cut)):
        with (folder / f"queries_{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["query", *(f"x{c}" for c in range(X.shape[1])), "relevance"])
            for q, x, grade in zip(query[kept], X[kept].tolist(), y[kept], strict=True):
                writer.writerow([f"q{q}", *(f"{value:.6g}" for value in x), int(grade)])
    return f"{len(sizes)} queries with {len(X)} items and {X.shape[1]} columns"


TASKS = (
    Task("costs on your own CSV", "fit train.csv", readme_files),
    Task("F1 on label sets", "scenes_train.arff", label_sets),
    Task("named entities from CoNLL files", "fit train.conll", tagged_sentences),
    Task("a ranking", "queries_train.csv", ranked_items),
    Task("how hard is this loss?", "analyze cost:costs.csv", readme_files),
)


# --- running ---


def block_of(task: Task) -> Block:
    """The block of the README that holds the commands of a task."""
    page = blocks(README.read_text(encoding="utf-8"))
    found = [block for block in page if block.language in COMMANDS and task.word in block.code]
    if len(found) != 1:
        raise ValueError(f"README.md must have one block with {task.word!r}, has {len(found)}")
    return found[0]


def run(task: Task, folder: Path, *, small: bool = False) -> tuple[str, list[Timing]]:
    """Write the files, run the commands one by one; what the data are, and the times."""
    data = task.files(folder, small)
    timings = []
    for command, _ in commands(block_of(task)):
        start, before = time.perf_counter(), os.times()
        output = run_command(command, folder, ROOT / "src", PATIENCE)
        after = os.times()
        used = after.children_user + after.children_system
        used -= before.children_user + before.children_system
        timings.append(Timing(command, time.perf_counter() - start, used, output))
    return data, timings


def page(found: list[tuple[Task, str, list[Timing]]]) -> str:
    """The page of results."""
    rows = [
        (task.title, data, len(times), f"{_needed(times):.0f}",
         f"{sum(t.wall for t in times):.0f}", "yes" if _needed(times) < LIMIT else "no")
        for task, data, times in found
    ]  # fmt: skip
    lines = [
        "# Five tasks, from the README alone",
        "",
        "`python -m benchmarks.tasks --write` takes the commands of the [README](../../README.md) as "
        "they stand there, gives them files under the",
        "names that they have, and runs them one after the other. Label sets, sentences and queries "
        "come from training parts only. Each task should take less than five",
        "minutes on two cores; installation is not counted, reading the page neither. Judged is the "
        "processor time of all commands of a task, in all threads: on a quiet machine",
        "they take no longer by the clock. The clock is reported too; others worked on the machine.",
        "",
        measure.table(
            ("task", "data", "commands", "processor seconds", "by the clock", "below 300"), rows
        ),
        "",
        measure.machine(),
        "",
        "## Commands",
        "",
    ]
    for task, _, times in found:
        lines += [
            f"### {task.title}",
            "",
            "| command | seconds | processor seconds |",
            "|---|---|---|",
        ]
        lines += [f"| `{t.command}` | {t.wall:.1f} | {t.processor:.1f} |" for t in times]
        lines.append("")
    return "\n".join(lines)


def _needed(times: list[Timing]) -> float:
    """Processor seconds of all commands: what a quiet machine takes by the clock at most."""
    return sum(timing.processor for timing in times)


def main() -> None:
    """Run the tasks and print, or write, the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--small", action="store_true", help="small made-up files")
    parser.add_argument("--only", type=int, help="number of one task, from 1")
    options = parser.parse_args()
    chosen = TASKS if options.only is None else TASKS[options.only - 1 : options.only]
    found = []
    for task in chosen:
        with tempfile.TemporaryDirectory() as name:
            data, times = run(task, Path(name), small=options.small)
        found.append((task, data, times))
        sys.stderr.write(f"{task.title}: {sum(t.wall for t in times):.0f} s\n")
    text = page(found)
    if options.write and options.only is None and not options.small:
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    if any(_needed(times) >= LIMIT for _, _, times in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
