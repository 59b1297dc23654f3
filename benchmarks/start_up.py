"""How long the package takes to start, and what each dependency of its core costs.

    python -m benchmarks.start_up --write

Processor seconds of whole processes, the least of several rounds: what a busy machine does not
change. A dependency belongs in the core if more than one command needs it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.dependencies import closure, declared, installed

from benchmarks.measure import RESULTS, machine, table

ROOT = Path(__file__).resolve().parents[1]
PAGE = RESULTS / "start_up.md"
ROUNDS = 3
PROGRAMS = {
    "python -c pass": (["-c", "pass"], None),
    "import numpy": (["-c", "import numpy"], None),
    "import consistruct": (["-c", "import consistruct"], 0.3),
    "consistruct --help": (["-m", "consistruct", "--help"], 0.5),
    "consistruct plan hamming:1000": (
        ["-m", "consistruct", "plan", "hamming:1000", "--eps", "0.1"],
        None,
    ),
    "import consistruct; consistruct.losses": (
        ["-c", "import consistruct; consistruct.losses"],
        None,
    ),
    "from consistruct import TaskLossClassifier": (
        ["-c", "from consistruct import TaskLossClassifier"],
        None,
    ),
}
MODULES = {"scikit-learn": "sklearn"}
FIT = ["fit", "d.csv", "--target", "y", "--learner"]
COMMANDS = {
    "plan": ["plan", "hamming:10", "--eps", "0.1"],
    "analyze": ["analyze", "cost:c.csv", "--points", "3"],
    "analyze --html": ["analyze", "ordinal:3", "--points", "3", "--html", "a.html"],
    "analyze --plot": ["analyze", "ordinal:3", "--points", "3", "--plot", "a.png"],
    "advise": ["advise", "ordinal:3", "--n-samples", "1000"],
    "fit ridge": [*FIT, "ridge", "--model", "m"],
    "fit probabilities": [*FIT, "probabilities", "--model", "p"],
    "predict": ["predict", "p", "d.csv"],
    "report --html": ["report", "m", "d.csv", "--quick", "--html", "r.html"],
    "report --plot": ["report", "m", "d.csv", "--quick", "--plot", "r.png"],
    "explore": ["explore", "--port", "70000"],
    "fit label sets": ["fit", "s.csv", "--target", "p", "--target", "q", "--loss", "fbeta", *FIT[-1:], "ridge", "--model", "f"],
    "fit by steps": [*FIT, "linear", "--set", "solver=sgd", "--set", "alpha=0.1", "--epochs", "2", "--model", "l"],
    "fit sequences": ["fit", "d.conll", "--template", "t", "--epochs", "1", "--model", "s"],
}  # fmt: skip
SCRIPT = """
import json, sys
sys.argv = ["consistruct", *json.loads(sys.argv[1])]
from consistruct import cli
try:
    cli.main()
except SystemExit:
    pass
print("\\n" + json.dumps([name for name in sys.modules if "." not in name]))
"""


def environment() -> dict[str, str]:
    """One thread, and this tree's package."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}


def timed(arguments: list[str]) -> float:
    """Least processor seconds of a whole process."""
    best = float("inf")
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *arguments], env=environment(), check=True, capture_output=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def needed_by() -> dict[str, list[str]]:
    """Commands that import each dependency."""
    names = {one.name: MODULES.get(one.name, one.name) for one in declared()}
    found: dict[str, list[str]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [f"{i % 7},{i * i % 11},{'ab'[i % 2]}" for i in range(40)]
        (folder / "d.csv").write_text("\n".join(["u,v,y", *rows]) + "\n", encoding="utf-8")
        sets = [f"{i % 7},{i % 2},{i // 2 % 2}" for i in range(40)]
        (folder / "s.csv").write_text("\n".join(["u,p,q", *sets]) + "\n", encoding="utf-8")
        (folder / "c.csv").write_text("0,1,2\n1,0,3\n2,3,0\n", encoding="utf-8")
        (folder / "d.conll").write_text("a x\nb y\n\nb y\na x\n\n", encoding="utf-8")
        (folder / "t").write_text("w:%x[0,0]\n", encoding="utf-8")
        for command, words in COMMANDS.items():
            done = subprocess.run(
                [sys.executable, "-c", SCRIPT, json.dumps(words)],
                cwd=folder,
                env=environment(),
                capture_output=True,
                text=True,
                check=True,
            )
            modules = set(json.loads(done.stdout.splitlines()[-1]))
            for dependency, module in names.items():
                if module in modules:
                    found[dependency].append(command)
    return found


def megabytes(names: set[str]) -> float:
    """Installed size of some distributions."""
    here, total = installed(), 0
    for name in names:
        for file in here[name].files or []:
            path = Path(str(file.locate()))
            total += path.stat().st_size if path.is_file() and path.suffix != ".pyc" else 0
    return total / 1e6


def dependency_rows() -> list[list[object]]:
    """What each dependency brings that no other does, what importing it costs, and who needs it."""
    here, core, users = installed(), declared(), needed_by()
    plain = timed(["-c", "import numpy"])
    rows: list[list[object]] = []
    for one in core:
        others = [other for other in core if other.name != one.name]
        alone = set(closure([one], here)) - set(closure(others, here))
        module = MODULES.get(one.name, one.name)
        cost = timed(["-c", f"import numpy, {module}"]) - plain
        commands = users[one.name]
        shown = (
            f"all {len(COMMANDS)} tried" if len(commands) == len(COMMANDS) else ", ".join(commands)
        )
        size = megabytes(alone) if alone else 0.0
        rows.append([one.name, f"{size:.0f}", f"{1000 * max(cost, 0.0):.0f}", len(commands), shown])
    return rows


def page(arguments: list[str]) -> str:
    """The results page."""
    starts = []
    for name, (words, target) in PROGRAMS.items():
        used = timed(words)
        verdict = (
            "" if target is None else f"at most {target}: {'met' if used <= target else 'missed'}"
        )
        starts.append([f"`{name}`", f"{used:.2f}", verdict])
    everything = closure(declared(), installed())
    command = " ".join(["python -m benchmarks.start_up", *arguments])
    dependencies = dependency_rows()
    single = [str(row[0]) for row in dependencies if row[3] in (0, 1)]
    parts = [
        "# Starting, and what the core costs",
        f"Made by `{command}`; do not edit.",
        f"Machine: {machine()}. Least of {ROUNDS} rounds, files in memory, one thread. The targets are about processor seconds, "
        "which do not depend on what else the machine does.",
        table(["program", "processor s", "target"], starts),
        f"All {len(everything)} packages of a core installation take {megabytes(set(everything)):.0f} MB. *Brings* counts a "
        "dependency and what nothing else of the core needs (NumPy, SciPy, joblib and threadpoolctl come with scikit-learn in any "
        "case); *import* is beyond NumPy's own; commands are those whose process had imported it in the end.",
        table(["dependency", "brings, MB", "import, ms", "commands", "which"], dependencies),
        f"Needed by fewer than two of these commands: {', '.join(single) or 'none'}. Plotly is there for its script, which HTML reports and the "
        "explorer embed; Matplotlib for PNG, SVG and PDF pictures. Both are imported only when such a file is made. Numba compiles the loops of "
        "sequences, label sets, decisions and stochastic solvers, and is imported when the first of them runs.",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, print, and write the page if requested to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    text = page(sys.argv[1:])
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
