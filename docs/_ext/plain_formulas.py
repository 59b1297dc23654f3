"""Docstrings are read in terminals too: formulas in them are plain text, not markup."""

from __future__ import annotations

import re
from typing import Any

CODE = re.compile(r"(``.*?``|`.*?`|\*\w[^*\n]*\w\*(?!\w))")

PLURAL = re.compile(r"(?<!`)(`\w+`)s\b")  # several `Loss`s: reStructuredText wants a separator


def escape_formulas(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Keep |y| and W* as they are written: bars and stars of formulas are no markup.

    Docstrings are read in terminals and editors too, so they hold formulas in plain text.
    """
    for number, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = CODE.split(line)
        parts[::2] = [part.replace("|", "\\|").replace("*", "\\*") for part in parts[::2]]
        lines[number] = PLURAL.sub(r"\1\\ s", "".join(parts))
