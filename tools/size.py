"""Lines of Python by folder, without blank lines, comments and docstrings:  make size

A line counts if a token of code stands on it, whatever else does.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "consistruct"
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """How many lines hold code.

    >>> code_lines('"docstring"\\n\\n# comment\\nx = (1,\\n     2)  # and more\\n')
    2
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        owner = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, owner) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            lines.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def by_folder(source: Path = SOURCE) -> Counter[str]:
    """Lines of code of every folder right below the package; single files together."""
    found: Counter[str] = Counter()
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).parts
        folder = parts[0] if len(parts) > 1 else "."
        if folder == "learning" and len(parts) > 2:
            folder = "/".join(parts[:2])
        found[folder] += code_lines(path.read_text(encoding="utf-8"))
    return found


def main() -> int:
    """Print the table."""
    found = by_folder()
    rows = [*sorted(found.items()), ("all of src/consistruct", found.total())]
    sys.stdout.writelines(f"{lines:7,d}  {folder}\n" for folder, lines in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
