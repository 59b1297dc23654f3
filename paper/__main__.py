"""Commands ``python -m paper audit | figures | simulate | pages``; ``make paper`` runs the last."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import typer
from rich.console import Console

from consistruct.exceptions import ConsistructError
from consistruct.losses import parse_loss
from consistruct.structures.registry import parse_scores

try:
    import sympy  # noqa: F401
except ModuleNotFoundError:  # before the modules that import it
    sys.stderr.write(
        "paper: needs SymPy; run make paper, or pip install --group paper (pip 25.1 or newer)\n"
    )
    sys.exit(2)

from paper.audit import ENTRIES, run_audit
from paper.figures import FIGURES, figure_data
from paper.hardness import hardness_study
from paper.learning_curves import Variant, learning_curve
from paper.pages import PAGE_END, audit_pages, audit_text, hardness_text, simulation_text
from paper.problems import synthetic_problem

app = typer.Typer(
    help="The paper behind consistruct, reproduced: its claims, figures and simulations.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
Quick = typer.Option(False, "--quick", help="Use smaller grids.")


@app.command()
def audit(
    only: list[str] = typer.Option([], help="Name of an entry; repeatable. Default: all."),
    quick: bool = Quick,
    list_entries: bool = typer.Option(False, "--list", help="List the entries and exit."),
) -> None:
    """Check each claim by computation and print the verdicts; exit code 1 for an unexpected one."""
    if list_entries:
        for entry in ENTRIES.values():
            typer.echo(f"{entry.name:<34}{entry.kind:<14}{entry.place}")
        return
    report = run_audit(only or None, quick=quick)
    Console().print(audit_text(report))
    raise typer.Exit(not report.passed)


@app.command()
def figures(
    folder: Path = typer.Option(Path("paper-figures"), help="Folder for the files."),
    only: list[str] = typer.Option([], help="Names of figures, e.g. figure_1b; default: all."),
) -> None:
    """Draw Figure 1 and what the paper leaves out: PNG, SVG and CSV of each."""
    for name in only:
        if name not in FIGURES:
            figure_data(name)  # raises, before anything is written
    folder.mkdir(parents=True, exist_ok=True)
    for name in only or FIGURES:
        typer.echo("  ".join(map(str, figure_data(name).write(folder))))


@app.command()
def simulate(
    loss: str = typer.Argument("", help="Loss spec, e.g. hamming:20, mixed:20x5:0.1."),
    scores: str = typer.Option("own", help="own, full, blocks:20x5, separable, chain."),
    constants: str = typer.Option("known-optimum", help="paper, sharp or known-optimum."),
    steps: str = typer.Option("10,100,1000,10000", help="Numbers of examples, comma-separated."),
    repeats: int = typer.Option(10, min=2, help="Independent runs per number."),
    anchors: int = typer.Option(4, min=2, help="Number of distributions to learn."),
    noise: float = typer.Option(0.5, help="Share of uniform noise in each distribution."),
    study: bool = typer.Option(False, "--study", help="Study all losses: what makes one hard?"),
    eps: float = typer.Option(0.02, help="With --study: excess task risk to reach."),
    seed: int = typer.Option(0, min=0, help="Random seed of the problem and of the draws."),
) -> None:
    """Learn problems with known risks; print excess risks and bounds; exit code 1 if one fails."""
    if study == bool(loss):
        raise ValueError("pass a loss, for example hamming:20, or --study for a comparison")
    variant = cast(Variant, constants.replace("-", " "))
    if study:
        rows = hardness_study(eps=eps, variant=variant, repeats=repeats, random_state=seed)
        Console().print(hardness_text(rows))
        return
    task = parse_loss(loss)
    problem = synthetic_problem(
        task, parse_scores(scores, task), n_anchors=anchors, noise=noise, random_state=seed
    )
    try:
        counts = [int(text) for text in steps.split(",")]
    except ValueError:
        raise ValueError(f"--steps must be integers separated by commas, got {steps!r}") from None
    curve = learning_curve(problem, counts, variant=variant, repeats=repeats, random_state=seed)
    Console().print(simulation_text(curve))
    raise typer.Exit(not curve.holds)


@app.command("pages")
def write_pages(
    folder: Path = typer.Argument(
        help="Folder for pages and figures; those of an earlier run are replaced."
    ),
    quick: bool = Quick,
) -> None:
    """Reproduce the paper: audit all claims, draw all figures, write the pages of the site.

    Exit code 1 for a verdict that is not the expected one; the pages show it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    former = list(folder.glob("*.md"))
    for page in former:
        if not page.read_text(encoding="utf-8").rstrip().endswith(PAGE_END):
            raise ValueError(f"{page} is not a page of this command; name another folder")
    for page in former:  # pages of entries that are gone must not stay
        page.unlink()
    for name in FIGURES:
        figure_data(name).write(folder)
    report = run_audit(quick=quick)
    pages = audit_pages(report)
    for name in sorted(pages, key="index.md".__eq__):  # the index last: it states that all is there
        (folder / name).write_text(pages[name], encoding="utf-8")
    Console().print(audit_text(report))
    raise typer.Exit(not report.passed)


def main() -> None:
    """Run a command; bad input is one line and exit code 2."""
    try:
        app(prog_name="python -m paper")
    except (ConsistructError, ValueError, OSError) as error:
        sys.stderr.write(f"paper: {' '.join(str(error).split())}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
