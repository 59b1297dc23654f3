"""Imports go one way, and every member is registered, exported and documented."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from tools.size import documented_names

import consistruct
from consistruct.losses.algebra import Combination
from consistruct.losses.base import Loss
from consistruct.losses.registry import LOSSES
from consistruct.structures import FiniteLabels, Structure
from consistruct.surrogates import SURROGATES

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "consistruct"
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")

# A package may import itself and whatever has a smaller number. Equal numbers may not see each
# other: learning and calibration, testing and guarantees.
LEVEL = {
    "protocols": 0,
    "exceptions": 0,
    "_members": 0,
    "_validation": 0,
    "_atomic": 0,
    "_clock": 0,
    "_compile": 0,
    "_threads": 0,
    "_budgets": 0,
    "_html": 0,
    "_cards": 0,
    "_plain_data": 0,
    "_frames": 0,
    "certificates": 0,  # whose own test allows the standard library alone
    "_progress": 0,
    "charts": 1,  # pictures as data, and their drawing; knows nothing of the rest
    "structures": 1,
    "losses": 4,
    "surrogates": 5,
    "decisions": 5,  # needs losses and structures only; learning decides through it
    "torch": 6,
    "calibration": 6,
    "learning": 6,
    "distributed": 7,  # feeds the sums of learning
    "testing": 7,  # checks models too, so it stands above learning
    "guarantees": 7,
    "report": 8,
    "explorer": 10,
    "doctor": 10,  # tries a little of everything
    "cli": 11,  # starts the explorer
}
NOBODY_IMPORTS = {"testing", "torch", "cli"}
LATE = {"learning/models/torch.py": {"torch"}}  # inside functions: networks need PyTorch
BOTTOM = {name for name, level in LEVEL.items() if level == 0}


def imported_packages(source):
    """Top-level parts of consistruct that a module imports, wherever in the file it does."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise AssertionError("imports are absolute, so that this test can follow them")
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("consistruct.")}
    return found - {"__version__"}


def violations(package, source):
    """Imports that the direction forbids."""
    wrong = set()
    for target in imported_packages(source):
        if target == package:
            continue
        assert target in LEVEL, f"pass {target} its place in LEVEL (docs/design/architecture.md)"
        both_bottom = package in BOTTOM and target in BOTTOM
        allowed = both_bottom or LEVEL[target] < LEVEL[package]
        if not allowed or target in NOBODY_IMPORTS:
            wrong.add(target)
    return wrong


# they name what lies behind them
ENTRANCES = {SOURCE / f"{name}.py" for name in ("__init__", "__main__", "metrics", "models")}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path not in ENTRANCES)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_import_direction(path):
    package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert package in LEVEL, f"pass {package} its place in LEVEL (docs/design/architecture.md)"
    wrong = violations(package, path.read_text(encoding="utf-8"))
    wrong -= LATE.get(path.relative_to(SOURCE).as_posix(), set())
    assert not wrong, f"{package} must not import {sorted(wrong)}"


@pytest.mark.parametrize(
    ("package", "source", "expected"),
    [
        ("structures", "from consistruct.losses import ZeroOne", {"losses"}),
        ("structures", "def f():\n    import consistruct.losses.base", {"losses"}),
        ("structures", "from consistruct import losses", {"losses"}),
        ("learning", "from consistruct.calibration import x", {"calibration"}),
        ("calibration", "from consistruct.learning import x", {"learning"}),
        ("protocols", "from consistruct.structures import Classes", {"structures"}),
        ("losses", "import consistruct.testing", {"testing"}),
        ("testing", "from consistruct.guarantees import x", {"guarantees"}),
        (
            "losses",
            "from consistruct.structures import Full\nfrom consistruct._members import x",
            set(),
        ),
        ("cli", "from consistruct import __version__, losses", set()),
    ],
)
def test_the_direction_check_sees_violations(package, source, expected):
    assert violations(package, source) == expected


def concrete_classes(package, base):
    """Classes that derive from `base`, can be made, and are defined in the package."""
    root = importlib.import_module(f"consistruct.{package}")
    found = set()
    for module in pkgutil.walk_packages(root.__path__, f"consistruct.{package}."):
        for _, value in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            own = value.__module__.startswith(f"consistruct.{package}.")
            if own and issubclass(value, base) and not inspect.isabstract(value):
                found.add(value)
    return found


def test_every_loss_has_a_registry_line():
    registered = {entry.cls for entry in LOSSES.values()}
    # a combination is written with + and *, not as a spec
    missing = concrete_classes("losses", Loss) - registered - {Combination}
    assert not missing, f"add one line to losses/registry.py for {missing}"


def test_registry_lines_are_complete():
    for name, entry in LOSSES.items():
        assert name == name.lower()
        assert entry.spec.startswith(name)
        assert len(entry.examples) >= 2, f"{name}: pass examples, the awkward ones included"
        assert {type(example) for example in entry.examples} == {entry.cls}
        assert len(set(entry.examples)) == len(entry.examples)
        if entry.huge is not None:
            assert entry.huge.n_labels is not None
            assert entry.huge.n_labels > 2**200


@pytest.mark.parametrize(
    ("package", "base"),
    [
        ("losses", Loss),
        ("structures", Structure),
        ("structures", FiniteLabels),
    ],
)
def test_every_member_is_exported(package, base):
    exported = importlib.import_module(f"consistruct.{package}").__all__
    members = concrete_classes(package, base) - {Combination}  # made by + and *
    missing = {cls.__name__ for cls in members} - set(exported)
    assert not missing, f"add {sorted(missing)} to {package}/__init__.py and its __all__"


def test_every_model_is_registered_and_exported():
    from consistruct.learning import models
    from consistruct.learning.models import MODELS, model_class
    from consistruct.learning.models.base import TargetModel

    found = set()
    for module in pkgutil.walk_packages(models.__path__, "consistruct.learning.models."):
        for _, value in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(value, TargetModel) and not inspect.isabstract(value):
                found.add(value)
    registered = {model_class(name) for name in MODELS}
    assert found == registered, "one line in learning/models/__init__.py for each model"
    assert {cls.__name__ for cls in found} <= set(models.__all__)


ROWS = re.findall(r"^\| `([\w.]+)` \|", API, re.MULTILINE)  # "metrics.task_loss", "compare"
PUBLIC = sorted({row.rpartition(".")[0] for row in ROWS})  # modules below consistruct, "" itself
NOT_IMPORTED = {"cli", "doctor", "certificates"}  # public by their commands
MOST_NAMES = 200


def public_module(name):
    return importlib.import_module(f"consistruct.{name}".rstrip("."))


def looked_up(row):
    module, _, name = row.rpartition(".")
    return getattr(public_module(module), name)


def test_rooms_without_underscore_are_on_the_api_page():
    rooms = {module.name for module in pkgutil.iter_modules(consistruct.__path__)}
    public = {name for name in rooms if not name.startswith("_")} - NOT_IMPORTED
    assert public == {name.partition(".")[0] for name in PUBLIC} - {""}


@pytest.mark.parametrize("name", PUBLIC)
def test_dir_lists_the_public_names_and_nothing_else(name):
    module = public_module(name)
    assert dir(module) == sorted(set(module.__all__))
    assert len(set(module.__all__)) == len(module.__all__)
    if name not in {"exceptions", "protocols"}:  # where names are defined, tools are imported
        visible = {key for key, value in vars(module).items() if not inspect.ismodule(value)}
        leaked = {key for key in visible if not key.startswith("_")} - set(module.__all__)
        assert not leaked, f"import {sorted(leaked)} of {name} under an underscore, or where used"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_on_the_api_page_once(name):
    module = public_module(name)
    listed = {row.rpartition(".")[2] for row in ROWS if row.rpartition(".")[0] == name}
    stale = listed - set(module.__all__)
    assert not stale, f"docs/api.md lists {sorted(stale)}, which {name} does not export"
    short = {row: looked_up(row) for row in ROWS if "." not in row}
    for key in set(module.__all__) - {"__version__"}:
        value = getattr(module, key)
        if inspect.ismodule(value):
            assert key in PUBLIC
        elif name and key in short and value is short[key]:
            assert key not in listed, f"{key} is on the page under its short name"
        else:
            assert key in listed, f"add one line to docs/api.md for {name}.{key}"


def test_the_public_surface_is_small_and_documented():
    assert len(set(ROWS)) == len(ROWS)
    assert documented_names(API) <= MOST_NAMES, "make something private before you add a name"
    for row in ROWS:
        value = looked_up(row)
        if inspect.isclass(value) or inspect.isroutine(value):
            assert (vars(value).get("__doc__") or value.__doc__ or "").strip(), row
    lines = [line for line in API.splitlines() if line.startswith("| `")]
    assert len(lines) == len(ROWS)
    assert all(line.split(" | ", 1)[1].strip(" |") for line in lines)


# what users read and copy; notes on design and generated tables speak of private parts too
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "howto").glob("*.md"),
    *(ROOT / "examples").glob("*.py"),
]


def used_names(text):
    """Names of the package that code on a page imports or reads, as "metrics.task_loss"."""
    for module, names in re.findall(
        r"from consistruct\b\.?([\w.]*) import (\([^)]*\)|[^\n#`]*)", text
    ):
        for name in re.findall(r"[A-Za-z_]\w*", re.sub(r" as \w+", "", names)):
            yield f"{module}.{name}".lstrip(".")
    yield from re.findall(r"\bcs\.((?:[a-z_]+\.)*\w+)", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_public_names_only(page):
    for used in used_names(page.read_text(encoding="utf-8")):
        module, _, name = used.rpartition(".")
        assert module in PUBLIC, f"{page.name} uses {used}, which is not public"
        assert name in public_module(module).__all__, f"{page.name} uses {used}: not public"


def test_the_reader_of_pages_sees_every_way_to_use_a_name():
    text = "from consistruct.a.b import (\n    c,\n    d as e,\n)\nx = cs.losses.Tree(cs.compare)\n"
    text += "`from consistruct import f`"
    assert set(used_names(text)) == {"a.b.c", "a.b.d", "f", "losses.Tree", "compare"}


MOST_LINES = 700  # one story per file: pieces that are read together share a module


def test_modules_stay_small():
    paths = [*MODULES, *(ROOT / "paper").rglob("*.py")]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    long = sorted(
        str(path.relative_to(ROOT)) for path, length in lengths.items() if length > MOST_LINES
    )
    assert not long, f"split {long}: more than {MOST_LINES} lines"


# What paper/ uses of the package beyond the modules of docs/api.md; nothing imports paper/.
USED_BY_PAPER = {
    "_compile",
    "_members",
    "_validation",
    "calibration.lp",
    "calibration.methods.explicit.pool",
    "calibration.problem.listed",
    "charts.model",
    "guarantees.constants",
    "learning.models.features.feature_maps",
    "learning.models.solvers.paper_sgd",
    "losses.base",
    "structures.base",
    "structures.classes",
    "structures.operators",
    "structures.registry",
}


def imported_modules(path):
    """Modules that a file imports from, in full."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def test_the_paper_stands_beside_the_package():
    modules = {name for path in (ROOT / "paper").rglob("*.py") for name in imported_modules(path)}
    used = {name.partition(".")[2] for name in modules if name.startswith("consistruct.")}
    assert used - set(PUBLIC) == USED_BY_PAPER
    inside = {name.partition(".")[0] for path in MODULES for name in imported_modules(path)}
    assert not inside & {"paper", "tests", "benchmarks", "tools", "sympy"}


# Losses, score spaces and surrogates are used by what they have, so that one's own get the
# feature too. What is left is about exactly this class: a formula of its own, or an argument.
CLASS_CHECKS = {
    "calibration/engine.py": {"Decisions", "FBeta"},
    "calibration/proofs/provers/oracle.py": {"FBeta"},
    "decisions/statistics.py": {"Hamming"},
    "guarantees/constants.py": {"Combination"},
    "learning/encoding/candidates.py": {"PartialLabels"},
    "learning/encoding/item_targets.py": {"MeanAveragePrecision", "Positions"},
    "learning/encoding/orders.py": {"Kendall"},
    "learning/encoding/sequences.py": {"Hamming"},
    "learning/evaluation/regret.py": {"Decision"},
    "learning/models/torch.py": {"PartialLabels"},
    "learning/part_statistics.py": {"LabelCosts"},
    "report/learning/baselines.py": {"FBeta"},
    "torch/criteria.py": {"FBeta"},
}
OWN_ROOMS = {"losses", "structures", "testing"}


def checked_classes(source, members):
    """Members whose class a module checks with `isinstance`."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    checks = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "isinstance"]
    names = {n.id for c in checks for n in ast.walk(c.args[1]) if isinstance(n, ast.Name)}
    return names & members


def test_members_are_used_by_what_they_have():
    losses = {entry.cls.__name__ for entry in LOSSES.values()} | {"Combination"}
    members = losses | {entry.cls.__name__ for entry in SURROGATES.values()}
    members |= {cls.__name__ for cls in concrete_classes("structures", Structure)}
    found = {}
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE)
        if place.parts[0] not in OWN_ROOMS:
            found[place.as_posix()] = checked_classes(path.read_text(encoding="utf-8"), members)
    assert {place: names for place, names in found.items() if names} == CLASS_CHECKS
    assert checked_classes("isinstance(x, A | (B, C))", {"A", "C", "D"}) == {"A", "C"}
