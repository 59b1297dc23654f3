"""What README, CONTRIBUTING and docs show, and every local link; tests/long runs their blocks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from consistruct.cli import app
from consistruct.losses.registry import LOSSES
from consistruct.testing import check_loss
from tests.page_blocks import COMMANDS, FENCE, SHOWN, blocks, check_output, commands, run_command

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
GENERATED = ROOT / "docs" / "generated"  # copies that the site is built from
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "paper" / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if GENERATED not in p.parents),
]
EXAMPLES = sorted((ROOT / "examples").glob("[!_]*.py"))


def python_blocks(text):
    return [block.code for block in blocks(text) if block.language == "python"]


def page_id(path):
    return str(path.relative_to(ROOT))


def test_every_loss_has_an_entry_with_its_facts():
    page = (ROOT / "docs" / "losses.md").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^### (\w+) \(`[\w-]+`\)\n(.*?)(?=^##|\Z)", page, re.M | re.S))
    specs = dict(re.findall(r"^### (\w+) \(`([\w-]+)`\)$", page, re.M))
    expected = {entry.cls.__name__: name for name, entry in LOSSES.items()}
    assert specs == expected, "docs/losses.md needs one entry per registered loss, with its spec"
    for name, text in entries.items():
        for fact in ("L =", "ank", "Decoder", "mpty", "Use"):
            # the tree loss is described by its two kinds, and set losses name several decoders
            assert fact in text or (name, fact) in EXCUSED, f"{name}: say {fact!r}"


EXCUSED = {
    ("Tree", "L ="),
    ("PairwiseDisagreement", "Decoder"),  # by number of grades
    ("PairwiseDisagreement", "mpty"),
    ("PartialLabels", "Decoder"),  # that of the base loss
    ("Kendall", "mpty"),
}


def run_commands(block, folder):
    for command, shown in commands(block):
        check_output(command, shown, run_command(command, folder, ROOT / "src"))


def test_figures_in_the_readme_stand_on_the_pages_that_it_names():
    """Every number of the table, rounded as it is there, is one that a benchmark wrote."""
    text = README.read_text(encoding="utf-8").partition("## What it gains")[2]
    rows = [line for line in text.partition("\n## ")[0].splitlines() if "](benchmarks/" in line]
    assert len(rows) >= 5
    for row in rows:
        cells, _, link = row.rpartition("](")
        page = (ROOT / link.partition(")")[0]).read_text(encoding="utf-8")
        measured = [float(number) for number in re.findall(r"\d+\.\d+", page)]
        shown = re.findall(r"\d+\.\d+", cells)
        assert shown
        for number in shown:
            digits = len(number.partition(".")[2])
            unit = 10.0**-digits
            assert any(abs(value - float(number)) <= 0.501 * unit for value in measured), (
                f"{number} in {row!r} is not on {link}"
            )


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_no_block_escapes(page):
    """A block is Python, commands, a directive of the site, or shown text; excuses are few."""
    for block in blocks(page.read_text(encoding="utf-8")):
        language = block.language.split()[0] if block.language else ""
        assert language == "python" or language in COMMANDS | SHOWN or language.startswith("{"), (
            f"{page_id(page)}: write python or console instead of {language!r}, so that it is run"
        )
        assert not language.startswith("{code"), f"{page_id(page)}: use a plain fence"
        if block.excuse is not None:
            assert block.excuse in EXCUSES, f"{page_id(page)}: {block.excuse!r} is no known excuse"


# reasons for which a block may be left out, each used by at least one page
EXCUSES = {
    "make wheel installs it, into an empty environment",
    "it serves until it is stopped; the browser tests start it",
    "benchmarks/tasks.py runs it on files of these names",
}


# packages that a block may need; each is in the bench extra, or too large for it
PACKAGES = {"catboost", "lightgbm", "skorch", "torch", "xgboost"}


def test_needed_packages_are_known():
    """A misspelled name would leave a block out for ever."""
    pages = [blocks(page.read_text(encoding="utf-8")) for page in PAGES]
    assert {name for page in pages for block in page for name in block.needs} == PACKAGES


def test_blocks_that_need_packages():
    fence = "<!-- needs: {} -->\n```python\nimport json\n```\n"
    (here,) = blocks(fence.format("json, numpy"))
    assert here.needs == ("json", "numpy")
    assert here.runs_here
    (absent,) = blocks(fence.format("json, no_such_package"))
    assert not absent.runs_here
    (excused,) = blocks("<!-- not run: a reason -->\n```python\n1 / 0\n```\n")
    assert not excused.runs_here


def test_every_excuse_is_needed():
    used = {
        block.excuse for page in PAGES for block in blocks(page.read_text(encoding="utf-8"))
    } - {None}
    assert used == EXCUSES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```console\n$ false\n```\n", "exit code 1"),
        ("```console\n$ echo one\ntwo\n```\n", "does not print 'two'"),
        ("```console\n$ echo a | \\\n>   grep b\n```\n", "exit code 1"),
        ("```sh\ncd /\nfalse\ntrue\n```\n", "exit code 1"),
    ],
)
def test_a_wrong_command_is_seen(text, message, tmp_path):
    (block,) = blocks(text)
    with pytest.raises(AssertionError, match=message):
        run_commands(block, tmp_path)


def test_comments_above_a_block_are_read():
    text = "<!-- file: a.csv -->\n```csv\n1,2\n```\n<!-- not run: slow -->\n```python\n1/0\n```\n"
    first, second = blocks(text)
    assert (first.file, first.code, first.excuse) == ("a.csv", "1,2\n", None)
    assert (second.file, second.excuse) == (None, "slow")


INLINE = re.compile(r"`consistruct ([a-z][^`]*)`")


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_in_prose_exist(page):
    """`consistruct fit … --loss` in a sentence: command and options are those of the program."""
    known = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in vars(get_command(app))["commands"].items()
        if not command.hidden
    }
    for text in INLINE.findall(page.read_text(encoding="utf-8").replace("\n", " ")):
        name, *words = text.split()
        assert name in known, f"{page_id(page)}: no command consistruct {name}"
        options = {word.split("=")[0] for word in words if word.startswith("--")} - {"--help"}
        assert options <= known[name], f"{page_id(page)}: {text!r} has options it does not know"


def contributing_blocks():
    return python_blocks((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def test_the_ten_lines_are_those_of_the_example():
    source = (ROOT / "examples" / "add_a_loss.py").read_text(encoding="utf-8")
    marked = source.split("# [loss]\n")[1].split("# [end]")[0]
    assert contributing_blocks()[0].strip() == marked.strip()


def test_the_example_keeps_the_contracts():
    from examples.add_a_loss import Triage

    for loss in (Triage(5), Triage(1), Triage(2), Triage(4, 0.5, 0.5), Triage(6, 2.0, 0.0)):
        check_loss(loss)
    # two levels too low, three levels too high
    assert Triage(5)([1, 4], [3, 1]).tolist() == [6.0, 3.0]


def test_the_example_of_a_new_loss_runs(capsys, monkeypatch):
    # the others, plot_*.py, are run by the gallery when the site is built (make docs)
    monkeypatch.chdir(ROOT)
    from examples import add_a_loss  # as a module: a pickled member is found by its module

    add_a_loss.main()
    assert capsys.readouterr().out.strip()


def test_the_gallery_runs_every_other_example():
    assert {path.stem for path in EXAMPLES if not path.stem.startswith("plot_")} == {"add_a_loss"}
    settings = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    assert 'r"/plot_"' in settings


@pytest.mark.parametrize("page", [*PAGES, ROOT / "benchmarks" / "README.md"], ids=page_id)
def test_local_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        picture = re.fullmatch(r"generated/gallery/images/sphx_glr_(\w+)_\d{3}\.png", target)
        if picture:  # drawn by an example while the site is built
            assert (ROOT / "examples" / f"{picture[1]}.py").exists(), f"no example draws {target}"
        elif "://" not in target:
            assert "generated/" not in target, f"{page_id(page)} links to {target}: link the source"
            assert (page.parent / target).exists(), f"{page_id(page)} links to {target}"


def test_the_readme_s_two_commands_are_what_ci_runs():
    """They run this test; so here only that they exist, and that the gate runs them."""
    readme = README.read_text(encoding="utf-8")
    named = re.findall(r"^    make (\w+) ", readme, re.M)
    assert named == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    for target in [*named, "docs"]:
        assert re.search(rf"^{target}:", makefile, re.M)
        assert f"make {target}" in gate
    assert "make wheel floors" in gate  # installs it, as the excused block of the README does


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_stand_in_fences(page):
    """An indented block is not run: only the README's two commands may stand in one."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    indented = re.findall(r"^\n {4}((?:\$ )?(?:consistruct|pip|python3?|make|git) .*)$", text, re.M)
    allowed = ["make demo    # creates .venv, installs, shows what the package does"]
    assert indented == (allowed if page == README else [])
