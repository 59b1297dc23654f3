"""One page per public name, and links to them from the tables of docs/api.md.

docs/api.md stays plain Markdown that lists every public name (a test compares it with the
packages); its one line per name is all there is to say about a constant, and the docstring says the
rest about a class or a function.
"""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

from plain_formulas import escape_formulas

DOCS = Path(__file__).resolve().parents[1]
FOLDER = DOCS / "generated" / "api"
# heading, package and body of a section of docs/api.md
SECTION = re.compile(
    r"^(## [^\n]*`(consistruct[\w.]*)`)$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
ROW = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)
# scikit-learn adds these to every estimator; its own pages explain them
ROUTING = re.compile(r"set_\w+_request|get_metadata_routing")
NOT_INHERITED = "BaseEstimator, ClassifierMixin, object, Protocol, dict, tuple, Exception"


@cache
def api_tables() -> dict[str, dict[str, str]]:
    """Read docs/api.md: package to {name: one line about it}."""
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    return {package: dict(ROW.findall(body)) for _, package, body in SECTION.findall(text)}


@cache
def public_names() -> tuple[str, ...]:
    """Every public name with its package."""
    return tuple(f"{package}.{name}" for package, names in api_tables().items() for name in names)


def page(package: str, name: str, line: str) -> str:
    """Write the page of one name, reStructuredText as autodoc reads it."""
    found = getattr(importlib.import_module(package), name)
    title = f"{name}\n{'=' * len(name)}\n\n.. currentmodule:: {package}\n\n"
    if inspect.isclass(found) and found.__module__.startswith("consistruct"):
        options = [":members:", ":show-inheritance:"]
        if hasattr(found, "set_params"):  # an estimator: fit and predict come from a base class
            options.append(f":inherited-members: {NOT_INHERITED}")
        body = f".. autoclass:: {name}\n" + "".join(f"   {option}\n" for option in options)
    elif inspect.isroutine(found):
        body = f".. autofunction:: {name}\n"
    else:  # a constant or a type alias: what api.md says of it
        words = line.replace("`", "``").replace("\\|", "|")
        body = f".. py:data:: {name}\n   :no-typesetting:\n\n``{package}.{name}``\n\n{words}\n"
    return title + body


def write_pages(app: Any) -> None:
    """Write what changed, remove what is gone: unchanged pages are not read again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted: dict[Path, str] = {}
    for package, names in api_tables().items():
        for name, line in names.items():
            wanted[file_of(package, name)] = page(package, name, line)
        module = importlib.import_module(package)
        rows = "\n".join(f"   {file_of(package, name).stem}" for name in names)
        lines = (inspect.getdoc(module) or "").splitlines()
        escape_formulas(app, "module", package, module, None, lines)
        intro = "\n".join(lines)
        wanted[FOLDER / f"{package}.rst"] = (
            f"{package}\n{'=' * len(package)}\n\n.. py:module:: {package}\n\n{intro}\n\n"
            f".. toctree::\n   :maxdepth: 1\n\n{rows}\n"
        )
    for path in set(FOLDER.glob("*.rst")) - set(wanted):
        path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def file_of(package: str, name: str) -> Path:
    """Page of a name. Names that differ in case only need two files where case is ignored."""
    clash = sum(other.lower() == name.lower() for other in api_tables()[package]) > 1
    constant = "-constant" if clash and name.isupper() else ""
    marker = "-class" if clash and not name.isupper() and name[0].isupper() else ""
    return FOLDER / f"{package}.{name}{constant}{marker}.rst"


def link_tables(app: Any, docname: str, source: list[str]) -> None:
    """In the tables of api.md make every name a link to its page, and add the pages' toctree."""
    if docname != "api":
        return

    def section(match: re.Match[str]) -> str:
        package, body = match[2], match[3]

        def row(cells: re.Match[str]) -> str:
            target = file_of(package, cells[1]).relative_to(DOCS).as_posix()
            return f"| [`{cells[1]}`]({target}) | {cells[2]} |"

        return match[1] + ROW.sub(row, body)

    linked = SECTION.sub(section, source[0])
    pages = "\n".join(f"generated/api/{package}" for package in api_tables())
    source[0] = f"{linked}\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{pages}\n```\n"


def skip_routing(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn generates."""
    return True if ROUTING.fullmatch(name) else None


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", lambda app, _: write_pages(app), priority=400)
    app.connect("source-read", link_tables)
    app.connect("autodoc-skip-member", skip_routing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
