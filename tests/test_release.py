"""What is uploaded: contents of the wheel, licenses, the bill of materials, the changelog."""

from __future__ import annotations

import re
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tools import dependencies, licenses, sbom, wheel

ROOT = Path(__file__).resolve().parents[1]
HERE = dependencies.installed()


# --- licenses ---


def rows(page):
    """Package to (license, how it is needed), of all tables."""
    pattern = r"^\| (?:\[([\w.-]+)\]\([^)]*\)|([\w.-]+)) \| (.+?) \| (direct|through others) \|$"
    found = re.findall(pattern, page, re.M)
    return {(first or second): (text, how) for first, second, text, how in found}


def test_the_page_of_licenses_has_everything_that_is_needed():
    """`python tools/licenses.py --write` brings it up to date."""
    listed = rows(licenses.PAGE.read_text(encoding="utf-8"))
    for extra in (None, *dependencies.EXTRAS):
        for requirement in dependencies.declared(extra):
            name = requirement.name.lower()
            assert name in listed, f"{name} is not on the page"
            if name in HERE:
                assert listed[name][0] == dependencies.license_of(HERE[name])
        needed = dependencies.closure(dependencies.declared(extra), HERE)
        assert set(needed) <= set(listed), f"not on the page: {set(needed) - set(listed)}"


def test_every_license_is_known_and_free():
    free = re.compile(r"MIT|BSD|Apache|PSF|Python Software|ISC|MPL|Zlib|0BSD|CC0|BSL")
    for name, (text, _) in rows(licenses.PAGE.read_text(encoding="utf-8")).items():
        assert free.search(text), f"{name}: {text}"


def test_licenses_in_all_the_forms_that_packages_use(tmp_path):
    def of(head, text=None):
        folder = tmp_path / "a-1.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text(f"Name: a\nVersion: 1\n{head}\n", encoding="utf-8")
        (folder / "RECORD").write_text("a-1.dist-info/LICENSE,,\n" if text else "")
        (folder / "LICENSE").write_text(text or "")
        return dependencies.license_of(Distribution.at(folder))

    assert of("License-Expression: MIT\nLicense: else") == "MIT"
    assert of("License: BSD") == "BSD"
    classifier = "Classifier: License :: OSI Approved :: ISC License (ISCL)"
    assert of(f"License: one\n        two\n{classifier}") == "ISC License (ISCL)"
    assert of("License: UNKNOWN", "Permission is hereby granted,\nfree of charge") == "MIT"
    assert of("License: UNKNOWN") == "not declared"


def test_what_is_needed_includes_extras_of_what_is_needed():
    """dask[dataframe] needs pandas; plain dask does not."""
    with_frames = dependencies.closure([Requirement("dask[dataframe]")], HERE)
    assert "pandas" in with_frames
    assert "pandas" not in dependencies.closure([Requirement("dask")], HERE)
    assert dependencies.closure([Requirement("no-such-package")], HERE) == {}


# --- bill of materials ---


def test_the_bill_of_materials_names_every_part_once(tmp_path):
    artifact = tmp_path / "a.whl"
    artifact.write_bytes(b"content")
    bill = sbom.bill(HERE, artifact)
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    package = bill["metadata"]["component"]
    assert package["name"] == "consistruct"
    assert package["hashes"][0]["content"].startswith("ed7002b439e9ac845f22357d822bac14")
    refs = [package["bom-ref"], *(part["bom-ref"] for part in bill["components"])]
    assert len(set(refs)) == len(refs)
    needed = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    assert set(needed) == set(refs)
    assert all(set(below) <= set(refs) for below in needed.values())
    names = {part["name"] for part in bill["components"]}
    assert {"numpy", "scikit-learn", "llvmlite"} <= names
    assert all(part["licenses"] and part["version"] for part in bill["components"])


# --- the wheel ---


def made(folder, names):
    path = folder / "consistruct-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return path


GOOD = ["consistruct/py.typed", "consistruct-0.1.0.dist-info/licenses/LICENSE"]


def test_a_wheel_holds_the_package_and_nothing_else(tmp_path, monkeypatch):
    wheel.check_wheel(made(tmp_path, GOOD))
    with pytest.raises(SystemExit, match=r"holds tests/test_a\.py"):
        wheel.check_wheel(made(tmp_path, [*GOOD, "tests/test_a.py"]))
    with pytest.raises(SystemExit, match="__pycache__"):
        wheel.check_wheel(made(tmp_path, [*GOOD, "consistruct/__pycache__/a.nbi"]))
    with pytest.raises(SystemExit, match="py"):
        wheel.check_wheel(made(tmp_path, GOOD[1:]))
    monkeypatch.setattr(wheel, "LARGEST", 10)
    with pytest.raises(SystemExit, match="at most 10 are allowed"):
        wheel.check_wheel(made(tmp_path, GOOD))


def test_declared_pythons_have_a_floor_and_no_gap():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    declared = re.findall(r"Python :: 3\.(\d+)\"", text)
    floor = re.search(r'requires-python = ">=3\.(\d+)"', text)
    assert floor is not None
    assert [int(minor) for minor in declared] == list(
        range(int(floor[1]), int(floor[1]) + len(declared))
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python 3.{declared[0]} to 3.{declared[-1]}" in readme


# --- the changelog ---


def test_the_changelog_is_readable():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("## ")][-1] == "## 0.1.0"
    too_long = [line for line in lines if len(line) > 120]
    assert not too_long, "wrap lines at 120 characters"
    sections = [line for line in lines if line.startswith("### ")]
    assert len(sections) == len(set(sections))
