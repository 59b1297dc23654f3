"""One page per public name, and links to them from the tables of docs/api.md.

docs/api.md stays plain Markdown that lists every public name (a test compares it with the modules),
grouped by what people want to do; its one line per name is all there is to say about a constant,
and the docstring states the rest about a class or a function. What a function returns has no public
name of its own: it is described on the page of the function.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

from plain_formulas import escape_formulas

DOCS = Path(__file__).resolve().parents[1]
FOLDER = DOCS / "generated" / "api"
# a name with its module below consistruct, and the line about it
ROW = re.compile(r"^\| `([\w.]+)` \| (.*) \|$", re.MULTILINE)
# scikit-learn adds these to every estimator; its own pages explain them
ROUTING = re.compile(r"set_\w+_request|get_metadata_routing")
NOT_INHERITED = "BaseEstimator, ClassifierMixin, object, Protocol, dict, tuple, Exception"


@cache
def api_tables() -> dict[str, dict[str, str]]:
    """Read docs/api.md: module to {name: one line about it}."""
    tables: dict[str, dict[str, str]] = {}
    for path, line in ROW.findall((DOCS / "api.md").read_text(encoding="utf-8")):
        module, _, name = f"consistruct.{path}".rpartition(".")
        tables.setdefault(module, {})[name] = line
    return tables


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
    else:  # a constant or a type alias: what api.md states of it
        words = line.replace("`", "``").replace("\\|", "|")
        body = f".. py:data:: {name}\n   :no-typesetting:\n\n``{package}.{name}``\n\n{words}\n"
    for cls in results()[f"{package}.{name}"]:
        body += f"\n.. autoclass:: {cls.__module__}.{cls.__qualname__}\n   :members:\n"
    return title + body


@cache
def results() -> dict[str, list[type]]:
    """Map every public name to the classes without a public name that it returns.

    Looked at are functions, and methods of what is no plain data: a loss or a structure returns
    parts of itself. A class that several names return is described with the first of them; the
    pages of the others link to it.
    """
    public = {name: _import(name) for name in public_names()}
    known = {found for found in public.values() if inspect.isclass(found)}
    described: dict[str, list[type]] = {}
    for name, found in public.items():
        described[name] = []
        pending = [cls for function in _functions(found) for cls in _classes_in(function)]
        while pending:
            cls = pending.pop(0)
            if cls not in known:
                known.add(cls)
                described[name].append(cls)
                pending += _classes_in(cls)
    return described


def _import(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _functions(found: Any) -> list[Any]:
    if inspect.isfunction(found):
        return [found]
    if not inspect.isclass(found) or dataclasses.is_dataclass(found) or inspect.isabstract(found):
        return []
    members = [value for name, value in vars(found).items() if not name.startswith("_")]
    return [member for member in members if inspect.isfunction(member)]


def _classes_in(found: Any) -> list[type]:
    """Find the dataclasses of this package in what a function returns, or a class contains."""
    annotations = inspect.get_annotations(found)
    if inspect.isfunction(found):
        annotations = {"return": annotations.get("return", "")}
    names = vars(importlib.import_module(found.__module__))
    words = re.findall(r"[A-Za-z]\w*", " ".join(map(str, annotations.values())))
    classes = [names[word] for word in words if inspect.isclass(names.get(word))]
    return [
        cls
        for cls in classes
        if cls.__module__.startswith("consistruct.") and dataclasses.is_dataclass(cls)
    ]


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

    def row(cells: re.Match[str]) -> str:
        module, _, name = f"consistruct.{cells[1]}".rpartition(".")
        target = file_of(module, name).relative_to(DOCS).as_posix()
        return f"| [`{cells[1]}`]({target}) | {cells[2]} |"

    linked = ROW.sub(row, source[0])
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
