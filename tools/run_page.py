"""Run the blocks of a Markdown page in a new folder, with this interpreter and what it has.

    python tools/run_page.py README.md

The package is the one that this interpreter finds, not the source tree beside the page. Unlike
tests/long/test_pages.py it needs no test tools, so it runs where only the package is installed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.page_blocks import COMMANDS, blocks, check_output, commands, run_command  # noqa: E402


def run(page: Path) -> None:
    """Python and console blocks in order, in one folder, with one namespace."""
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": f"page_{page.stem}"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        for block in blocks(text):
            if block.excuse is not None:
                continue
            if block.file is not None:
                Path(block.file).write_text(block.code, encoding="utf-8")
            if block.language == "python":
                exec(compile(block.code, str(page), "exec"), namespace)
            elif block.language in COMMANDS:
                for command, shown in commands(block):
                    sys.stdout.write(f"$ {command}\n")
                    sys.stdout.flush()
                    check_output(command, shown, run_command(command, folder))
        os.chdir(ROOT)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run(Path(argument).resolve())
