"""Build what is uploaded, install it into empty environments, and run the README from it.

    python tools/wheel.py build              # dist/: source distribution, the wheel made from it
    python tools/wheel.py newest             # newest versions of everything, on every Python here
    python tools/wheel.py newest --everywhere    # the README on each of them, not only the last
    python tools/wheel.py floors             # the oldest versions that pyproject.toml allows

Needs Python 3.11+ and nothing else. `newest` also checks the types from outside with mypy and
writes the software bill of materials beside the wheel.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
# bytes of the wheel; the aim of 1 MB is missed: 530 files of plain source, compressed one by one,
# and two rooms more (decisions, derivations) until learning and calibration are shorter
LARGEST = 1_550_000
VERSIONS = range(11, 20)  # of Python 3
TOGETHER = 2  # environments at a time
# the package is found where it was installed, never in the source tree
CLEAN = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a program; where it fails, show what it printed and stop."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=CLEAN, check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise SystemExit(f"wheel: failed with {done.returncode}: {' '.join(map(str, command))}")


def pip(python: Path, *arguments: str | Path) -> None:
    """Run pip of an environment."""
    run(python, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check")


@contextlib.contextmanager
def environment(python: str | Path) -> Iterator[Path]:
    """The interpreter of an empty environment, which is deleted afterwards."""
    with tempfile.TemporaryDirectory() as name:
        run(python, "-m", "venv", Path(name) / "venv")
        yield Path(name) / "venv" / "bin" / "python"


# --- building ---


def build() -> None:
    """The source distribution, and the wheel from its content, as an installer would make it."""
    shutil.rmtree(DIST, ignore_errors=True)
    with environment(sys.executable) as python:
        pip(python, "install", "build")
        run(python, "-m", "build", "--outdir", DIST, ROOT)
        if (ROOT / ".git").exists():
            pip(python, "install", "hatchling", "hatch-vcs")
            check_versions(python.with_name("hatchling"))
    wheel, source = built()
    check_wheel(wheel)
    number = version_of(wheel)
    if not source.name.startswith(f"consistruct-{number}.tar"):
        raise SystemExit(f"wheel: {source.name} and {wheel.name} differ in version")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if re.fullmatch(r"[0-9.]+", number) and f"## {number}\n" not in changes:
        raise SystemExit(f"wheel: CHANGELOG.md has no section ## {number}")
    size = wheel.stat().st_size
    sys.stdout.write(f"built {wheel.name}: {size / 1e6:.2f} MB; {source.name}\n")


def check_versions(hatchling: Path) -> None:
    """The version of a clone without tags, of a tagged commit, and of a copy without git."""
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name) / "clone"
        run("git", "clone", "--quiet", "--local", "--no-tags", ROOT, clone)
        expect_version(hatchling, clone, r"0\.1(\.0)?\.dev[0-9]+\+g[0-9a-f]+")
        run("git", "tag", "v7.8.9", cwd=clone)
        expect_version(hatchling, clone, r"7\.8\.9")
        shutil.rmtree(clone / ".git")
        expect_version(hatchling, clone, r"0\.1\.0\.dev0")


def expect_version(hatchling: Path, folder: Path, pattern: str) -> None:
    """Stop if the version of a source tree is not of that form."""
    result = subprocess.run(
        [hatchling, "version"], cwd=folder, capture_output=True, text=True, env=CLEAN, check=False
    )
    if not re.fullmatch(pattern, result.stdout.strip()):
        raise SystemExit(f"wheel: version {result.stdout!r} is not {pattern}: {result.stderr}")


def built() -> tuple[Path, Path]:
    """The wheel and the source distribution in dist/."""
    wheels, sources = list(DIST.glob("*.whl")), list(DIST.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        raise SystemExit("wheel: dist/ must hold one wheel and one source distribution: build them")
    return wheels[0], sources[0]


def version_of(wheel: Path) -> str:
    """The version in a wheel's name.

    >>> version_of(Path("consistruct-0.1.0-py3-none-any.whl"))
    '0.1.0'
    """
    return wheel.name.split("-")[1]


def check_wheel(wheel: Path) -> None:
    """Small, typed, licensed, and nothing but the package."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    wrong = [name for name in names if not re.match(r"consistruct(-[^/]*\.dist-info)?/", name)]
    wrong += [name for name in names if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]
    if wrong:
        raise SystemExit(f"wheel: {wheel.name} holds {wrong[0]}")
    for needed in (r"consistruct/py\.typed", r".*dist-info/licenses/LICENSE"):
        if not any(re.fullmatch(needed, name) for name in names):
            raise SystemExit(f"wheel: {wheel.name} has no {needed}")
    if wheel.stat().st_size > LARGEST:
        raise SystemExit(f"wheel: {wheel.stat().st_size:,} bytes, at most {LARGEST:,} are allowed")


# --- installing ---


def pythons() -> list[Path]:
    """Every Python 3.11 or newer that starts here, on the path or kept by pyenv, oldest first."""
    found: dict[int, Path] = {}
    for minor in VERSIONS:
        candidates = [shutil.which(f"python3.{minor}")]
        keeper = shutil.which("pyenv")
        if keeper is not None:
            result = subprocess.run([keeper, "root"], capture_output=True, text=True, check=False)
            kept = Path(result.stdout.strip()) / "versions"
            candidates += sorted(map(str, kept.glob(f"3.{minor}.*/bin/python3.{minor}")))
        for candidate in candidates:
            if candidate is not None and starts(candidate):
                found.setdefault(minor, Path(candidate))
    return [found[minor] for minor in sorted(found)] or [Path(sys.executable)]


def starts(python: str) -> bool:
    """Whether it is an interpreter that can make environments, not only a name for one."""
    result = subprocess.run(
        [python, "-c", "import ensurepip, venv"], capture_output=True, check=False
    )
    return result.returncode == 0


def newest(*, everywhere: bool) -> None:
    """The wheel with the newest versions of what it needs."""
    wheel, _ = built()
    *older, last = pythons()

    def on(python: Path) -> None:
        start = time.monotonic()
        with environment(python) as there:
            pip(there, "install", wheel)
            check(there)
            if python == last or everywhere:
                run(there, ROOT / "tools" / "run_page.py", ROOT / "README.md")
            if python == last:
                bill(there, wheel)
                pip(there, "install", f"{wheel}[io,explorer]")
                run(there, ROOT / "tools" / "check_extras.py")
                types(there)
        say_passed(python, "newest versions", python == last or everywhere, start)

    with ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(on, [last, *older]))  # the longest first


def floors() -> None:
    """The wheel with the oldest versions that pyproject.toml allows, on the oldest Python."""
    wheel, _ = built()
    python = pythons()[0]
    start = time.monotonic()
    with environment(python) as there:
        pins = subprocess.run(
            [there, ROOT / "tools" / "floors.py", "io", "explorer"],
            capture_output=True,
            text=True,
            check=True,
        )
        pip(there, "install", *pins.stdout.split())
        pip(there, "install", "--no-deps", wheel)
        check(there)
        run(there, ROOT / "tools" / "run_page.py", ROOT / "README.md")
        run(there, ROOT / "tools" / "check_extras.py")
    say_passed(python, "floors of pyproject.toml", True, start)


def say_passed(python: Path, versions: str, readme: bool, start: float) -> None:
    """Say what held."""
    how = "README and self-test" if readme else "self-test"
    seconds = time.monotonic() - start
    sys.stdout.write(f"{python.name}, {versions}: {how} passed, {seconds:.0f} s\n")
    sys.stdout.flush()


def check(python: Path) -> None:
    """Requirements fit together, the self-test passes, the version is that of the wheel."""
    pip(python, "check")
    program = python.with_name("consistruct")
    run(program, "doctor")
    shown = subprocess.run(
        [program, "--version"], capture_output=True, text=True, env=CLEAN, check=True
    ).stdout.strip()
    if shown != version_of(built()[0]):
        raise SystemExit(f"wheel: the program calls itself {shown}, not {version_of(built()[0])}")


def bill(python: Path, wheel: Path) -> None:
    """The software bill of materials of the core installation."""
    (packages,) = (python.parents[1] / "lib").glob("python3.*/site-packages")
    pip(python, "install", "packaging")
    out = wheel.with_name(f"consistruct-{version_of(wheel)}.cdx.json")
    run(
        python, ROOT / "tools" / "sbom.py", "--path", packages, "--artifact", wheel, "--out", out
    )  # fmt: skip


def types(python: Path) -> None:
    """A program of a user against the installed package, strictly, from a folder of its own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (mypy,) = [
        text for text in project["optional-dependencies"]["test"] if text.startswith("mypy==")
    ]
    pip(python, "install", mypy)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "tools" / "typed_client.py", folder / "client.py")
        run(python, "-m", "mypy", "--strict", "client.py", cwd=folder)


def main() -> None:
    """Read the arguments and do it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("job", choices=["build", "newest", "floors"])
    parser.add_argument("--everywhere", action="store_true", help="the README on every Python")
    options = parser.parse_args()
    if options.everywhere and options.job != "newest":
        parser.error("--everywhere is about the job newest")
    if options.job == "build":
        build()
    elif options.job == "newest":
        newest(everywhere=options.everywhere)
    else:
        floors()


if __name__ == "__main__":
    main()
