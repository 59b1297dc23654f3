"""Pages are run: every block of README, CONTRIBUTING and docs."""

from __future__ import annotations

import shutil
import sys
import types
from pathlib import Path

import pytest

from tests.page_blocks import COMMANDS, blocks
from tests.test_docs import PAGES, README, ROOT, page_id, run_commands


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_blocks_run(page, tmp_path, monkeypatch):
    """Python and console blocks in order, in one new folder, with one namespace."""
    monkeypatch.chdir(tmp_path)
    if page != README:  # its reader has nothing but the package
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    # a module of its own, because pickling finds classes by module and name
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    namespace = vars(module)
    for block in blocks(page.read_text(encoding="utf-8")):
        if not block.runs_here:
            continue
        if block.file is not None:
            Path(block.file).write_text(block.code, encoding="utf-8")
        if block.language == "python":
            code = block.code
            if page.stem in ("CONTRIBUTING", "add_a_loss") and "class Triage" in code:
                code = "from examples.add_a_loss import Triage\n"
            exec(compile(code, str(page), "exec"), namespace)
        elif block.language in COMMANDS:
            run_commands(block, tmp_path)
