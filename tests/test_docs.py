"""Pages are run: every Python block of README, CONTRIBUTING and docs, and every local link."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from consistruct.losses import LOSSES
from consistruct.testing import check_loss

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("[!_]*.py"))


def python_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


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


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_python_blocks_run(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    # one namespace per page: a later block may use what an earlier one defined. A module of its
    # own, because pickling finds classes by module and name.
    text = "\n".join(python_blocks(page.read_text(encoding="utf-8")))
    namespace = {"__name__": f"page_{page.stem}"}
    if page.stem == "CONTRIBUTING":
        text = text.replace(contributing_blocks()[0], "from examples.add_a_loss import Triage\n")
    exec(compile(text, str(page), "exec"), namespace)


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


@pytest.mark.parametrize("example", EXAMPLES, ids=page_id)
def test_examples_run(example, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    if example.stem == "add_a_loss":  # as a module: a pickled member is found by its module
        from examples import add_a_loss

        add_a_loss.main()
    else:
        runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", [*PAGES, ROOT / "benchmarks" / "README.md"], ids=page_id)
def test_local_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page_id(page)} links to {target}"


def test_readme_names_the_two_commands_and_is_run():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    assert len(python_blocks(readme)) >= 1
