"""Short answers come fast: nothing slow is imported before it is needed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from consistruct import _compile
from consistruct._compile import compiled

HEAVY = ("numpy", "scipy", "consistruct.losses", "consistruct.structures")
SLOW = ("numba", "sklearn", "matplotlib", "scipy.optimize", "scipy.sparse", "scipy.special")
SCRIPT = """
import sys
sys.argv = ["consistruct", *{arguments!r}]
from consistruct import cli
try:
    cli.main()
except SystemExit as stop:
    assert not stop.code, stop.code
found = [name for name in {slow!r} if name in sys.modules]
assert not found, found
"""


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["plan", "hamming:1000", "--eps", "0.1"]],
    ids=" ".join,
)
def test_commands_that_solve_nothing_import_nothing_slow(arguments):
    script = SCRIPT.format(arguments=arguments, slow=SLOW)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def imported_by(code, *arguments):
    """Modules that a program has imported when it ends."""
    script = f"import sys\nsys.argv = {['consistruct', *arguments]!r}\n{code}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.splitlines()[-1].split())


def test_importing_the_package_imports_nothing_else():
    found = imported_by("import consistruct")
    assert not found & set(HEAVY)
    assert {name for name in found if name.startswith("consistruct")} == {"consistruct"}


def test_every_public_name_is_found_on_use():
    script = "import consistruct as cs\nfor name in cs.__all__: getattr(cs, name)\nassert cs.losses"
    assert "consistruct.learning" in imported_by(script)


def test_help_waits_for_no_loss_and_no_table():
    script = "from consistruct import cli\ntry:\n    cli.main()\nexcept SystemExit: pass"
    found = imported_by(script, "--help")
    assert "typer" in found
    unneeded = {"consistruct.losses", "consistruct.structures", "rich.progress", "joblib", *SLOW}
    assert not found & unneeded


@compiled
def _square(x):
    return x * x


@compiled
def _sum_of_squares(values):
    total = 0.0
    for value in values:
        total += _square(value)
    return total


@compiled
def _factorial(n):
    return 1 if n < 2 else n * _factorial(n - 1)


def test_compiled_functions_call_each_other_and_themselves():
    later = _sum_of_squares
    assert isinstance(later, _compile._CompiledLater)
    assert vars(later)["__name__"] == "_sum_of_squares"  # what functools.wraps copies
    assert later(np.array([1.0, 2.0, 3.0])) == 14.0
    assert type(later.dispatcher()).__module__.startswith("numba")
    assert type(_square).__module__.startswith("numba")  # replaced by what Numba can call
    assert _factorial(5) == 120
