"""Docstrings are read in terminals too: formulas in them are plain text, not markup."""

from __future__ import annotations

import re
from typing import Any

# what is markup: the star of a list, **bold**, code and *emphasis*
CODE = re.compile(r"(^ *\* |\*\*[^*\n]+\*\*|``.*?``|`.*?`|\*\w[^*\n]*\w\*(?!\w))")

# several `Loss`s, `share`²: reStructuredText wants a separator
TOUCHING = re.compile(r"(?<!`)(`\w+`)(?=[\w²³])")
# coef_ in a sentence is no link; names at the start of an entry are numpydoc's business
LEARNED = re.compile(r"(?<=\w)_(?=[\s,.;:)]|$)")


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
        if line.startswith(" "):
            parts[::2] = [LEARNED.sub(r"\\_", part) for part in parts[::2]]
        lines[number] = TOUCHING.sub(r"\1\\ ", "".join(parts))
