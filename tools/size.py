"""Measure the source by room:  make size

    python tools/size.py                      # every room of src/consistruct, and paper/ apart
    python tools/size.py losses surrogates    # these rooms and their sum

A room is a folder right below the package; files beside the rooms are "(root)". The columns:

code        lines on which a token of code stands, whatever else does; docstrings are no code
tokens      of the code as `ast.unparse` writes it, so that line breaks, parentheses and commas that
            only format it change nothing; without docstrings. Strings and f-strings are one token
comments    lines that begin with #; a remark behind code does not count
docstrings  lines of docstrings
files       Python files
scalars     a number under a name of its own: NAME = <number> in a module or a class, where the
            number may be computed from literals (2**20, -1e-9); defaults of dataclass fields too
in tables   numeric literals in every other assignment of a module or a class: tuples, dictionaries,
            calls. 0 and 1 count as well
inlined     numeric literals in functions and their defaults, lambdas included: each one steers what
            the code does and has no name. 0, 1/2, 1, 2 and their negatives do not count, as they
            are arithmetic, nor do indexes (x[3], x[:, 4])
templates   lines of HTML, CSS and Jinja files that are not blank
JavaScript  the same of .js files
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "consistruct"
APART = ("paper",)  # folders beside src/ that are measured and not in the sum
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
ARITHMETIC = {0, 0.5, 1, 2}
NOT_COUNTED = ("Bases\n", "Contracts\n", "Errors and warnings\n")  # sections of docs/api.md
TEMPLATES = {".html", ".css", ".j2", ".jinja"}
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# a formatter or a line limit switched off: for one line, or in pyproject.toml for a whole file
EXEMPTION = re.compile(r"#\s*(?:fmt:\s*(?:skip|off)|(?:ruff:\s*)?noqa(?::.*\bE501|\s*$))")


@dataclass(frozen=True)
class Size:
    """What `make size` reports of some files; sizes add up."""

    code: int = 0
    tokens: int = 0
    comments: int = 0
    docstrings: int = 0
    files: int = 0
    scalars: int = 0
    in_tables: int = 0
    inlined: int = 0
    templates: int = 0
    javascript: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def measure(text: str) -> Size:
    """Measure one Python file.

    >>> size = measure('"Docstring."\\n\\n# comment\\nx = 1  # a remark\\ny = (3,\\n  0)\\n')
    >>> size.code, size.comments, size.docstrings
    (3, 1, 1)
    """
    lines, code, comments = text.splitlines(), set[int](), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments += lines[token.start[0] - 1].lstrip().startswith("#")
        elif token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    tree = ast.parse(text)
    docstrings = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
            node.body = node.body[1:] or [ast.Pass()]
    scalars, in_tables, inlined = _numbers(tree)
    return Size(
        code=len(code - docstrings),
        tokens=_n_tokens(tree),
        comments=comments,
        docstrings=len(docstrings),
        files=1,
        scalars=scalars,
        in_tables=in_tables,
        inlined=inlined,
    )


def _n_tokens(tree: ast.Module) -> int:
    """Tokens of the unparsed code; Python 3.12 divides f-strings, so their parts count as one."""
    count = depth = 0
    for token in tokenize.generate_tokens(io.StringIO(ast.unparse(tree)).readline):
        name = tokenize.tok_name[token.type]
        depth -= name == "FSTRING_END"
        count += token.type not in LAYOUT and depth == 0
        depth += name == "FSTRING_START"
        count -= name == "FSTRING_START" and depth == 1  # its end is counted
    return count


def _numbers(tree: ast.Module) -> tuple[int, int, int]:
    """Scalars, numbers in tables, inlined numbers."""
    scalars = in_tables = 0
    for node in _outside_functions(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            if _is_number(node.value):
                scalars += 1
            else:
                # a lambda in a table is a function, counted below
                in_tables += sum(map(_is_literal, _outside_functions(node.value)))
    indexes = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        for child in ast.walk(node.slice)
    }
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    inside = {child for node in functions for child in ast.walk(node)}  # once, however nested
    inlined = sum(
        _is_literal(node) and node not in indexes and node.value not in ARITHMETIC
        for node in inside
        if isinstance(node, ast.Constant)
    )
    return scalars, in_tables, inlined


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, FUNCTIONS):
            yield from _outside_functions(child)


def _is_literal(node: ast.AST) -> bool:
    """Tell whether it is a number; True and False are none."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)


def _is_number(node: ast.AST) -> bool:
    """Tell whether it is a literal or computed from literals alone."""
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return _is_literal(node)


def by_room(source: Path = SOURCE, only: Sequence[str] = ()) -> dict[str, Size]:
    """Measure every folder right below the package, "(root)" for the files beside them."""
    rooms: dict[str, Size] = {}
    for path in sorted(source.rglob("*")):
        parts = path.relative_to(source).parts
        room = parts[0] if len(parts) > 1 else "(root)"
        if only and room not in only:
            continue
        if path.suffix == ".py":
            size = measure(path.read_text(encoding="utf-8"))
        elif path.suffix in TEMPLATES:
            size = Size(templates=_filled_lines(path))
        elif path.suffix == ".js":
            size = Size(javascript=_filled_lines(path))
        else:
            continue
        rooms[room] = rooms.get(room, Size()) + size
    return rooms


def _filled_lines(path: Path) -> int:
    return sum(map(bool, map(str.strip, path.read_text(encoding="utf-8").splitlines())))


def exemptions(paths: Iterable[Path]) -> int:
    """Count comments that switch the formatter or the limit of 100 columns off."""
    return sum(
        bool(EXEMPTION.match(token.string))
        for path in paths
        for token in tokenize.generate_tokens(
            io.StringIO(path.read_text(encoding="utf-8")).readline
        )
        if token.type == tokenize.COMMENT
    )


def documented_names(page: str) -> int:
    """Count the public names that docs/api.md lists, one table row each.

    Bases for extension, the contracts that they keep, and exceptions are not counted.
    """
    sections = re.split(r"^#+ ", page, flags=re.MULTILINE)
    counted = [text for text in sections if not text.startswith(NOT_COUNTED)]
    return sum(len(re.findall(r"^\| `[^`]+` \|", text, re.MULTILINE)) for text in counted)


def table(rooms: dict[str, Size]) -> str:
    """Format rooms and their sum, largest first."""
    names = [field.name.replace("_", " ") for field in fields(Size)]
    ordered = sorted(rooms.items(), key=lambda item: -item[1].code)
    total = sum(rooms.values(), Size())
    lines = ["".join(f"{name:>11}" for name in names) + "  room"]
    for room, size in [*ordered, ("sum", total)]:
        lines.append("".join(f"{number:11,d}" for number in astuple(size)) + f"  {room}")
    per = max(total.code, 1)
    lines.append(
        f"{1000 * total.comments / per:.0f} comment lines per 1,000 code lines, "
        f"{total.docstrings / per:.2f} docstring lines per code line"
    )
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> int:
    """Print the rooms named, or all of them."""
    rooms = by_room(only=names)
    apart = {name: sum(by_room(ROOT / name).values(), Size()) for name in APART}
    if names:
        known = rooms | apart
        missing = [name for name in names if name not in known]
        if missing:
            sys.stderr.write(f"no room {missing[0]!r}; rooms are folders of src/consistruct\n")
            return 2
        sys.stdout.write(table({name: known[name] for name in names}))
        return 0
    sys.stdout.write(table(rooms))
    for name, size in apart.items():
        sys.stdout.write("\n" + table({name: size}))
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    sys.stdout.write(f"\n{documented_names(page)} public names in docs/api.md\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
