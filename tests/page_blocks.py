"""Fenced blocks of a Markdown page, in order, and what an HTML comment above one states of it.

`<!-- file: NAME -->` writes the block to a file of the folder in which the page's blocks run;
`<!-- not run: REASON -->` excuses it; `<!-- needs: PACKAGE, … -->` excuses it where one of the
packages is not installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"(?:^<!-- (?P<word>file|not run|needs): (?P<stated>.+?) -->\n)?"
    r"^(?P<ticks>```+)(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)
COMMANDS = {"console", "bash", "sh", "shell"}
# shown, not run: files, output, formulas
SHOWN = {"", "text", "csv", "json", "toml", "html"}


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    file: str | None
    excuse: str | None
    needs: tuple[str, ...] = ()

    @property
    def runs_here(self) -> bool:
        """Whether it is not excused and what it needs is installed."""
        return self.excuse is None and all(map(importlib.util.find_spec, self.needs))


def blocks(text: str) -> list[Block]:
    found = []
    for match in FENCE.finditer(text):
        stated = match["stated"]
        found.append(
            Block(
                match["language"].strip(),
                match["code"],
                stated if match["word"] == "file" else None,
                stated if match["word"] == "not run" else None,
                tuple(re.split(r",\s*", stated)) if match["word"] == "needs" else (),
            )
        )
    return found


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """Commands of a block with the output lines shown below each; `$ ` marks a command."""
    if block.language != "console":
        return [(block.code, [])]
    found: list[tuple[str, list[str]]] = []
    open_line = False  # the command above ends with a backslash
    for line in block.code.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
            open_line = line.endswith("\\")
        elif open_line:
            command, shown = found.pop()
            found.append((f"{command}\n{line.removeprefix('> ')}", shown))
            open_line = line.endswith("\\")
        elif line.strip():
            assert found, f"output before the first command: {line!r}"
            found[-1][1].append(line)
    return found


def run_command(
    command: str, folder: Path, source: Path | None = None, seconds: float = 300
) -> str:
    """Run in a shell that finds this interpreter's programs, and a source tree, first."""
    tools = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([tools, os.environ.get("PATH", "")]),
        "COLUMNS": "100",
    }
    if source is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, (
        f"exit code {done.returncode}: {command}\n{done.stdout}{done.stderr}"
    )
    return done.stdout


def check_output(command: str, shown: list[str], output: str) -> None:
    """Every shown line occurs in the output; one with an ellipsis states that something is cut."""
    lines = {" ".join(line.split()) for line in output.splitlines()}
    for line in shown:
        assert "…" in line or " ".join(line.split()) in lines, (
            f"{command!r} does not print {line!r}; it prints\n{output}"
        )
