"""What the package needs, and what that needs in turn, as the installed metadata tell it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
# extras for users; those of developers (test, bench, docs) come with no installation
EXTRAS = ("dask", "explorer", "io", "torch")


def declared(extra: str | None = None) -> list[Requirement]:
    """Requirements of pyproject.toml: of the core, or of an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    return [Requirement(text) for text in texts]


def installed(path: Path | None = None) -> dict[str, Distribution]:
    """Every distribution of an environment (its site-packages), by normal name."""
    found = distributions() if path is None else distributions(path=[str(path)])
    return {canonicalize_name(one.metadata["Name"]): one for one in found}


def closure(
    roots: Iterable[Requirement], environment: dict[str, Distribution]
) -> dict[str, Distribution]:
    """The requirements and all that they need here; what is not installed is left out."""
    waiting = [(one, "") for one in roots]
    waiting += [(one, extra) for one in roots for extra in one.extras]
    seen: set[tuple[str, str]] = set()
    found: dict[str, Distribution] = {}
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, extra) in seen or name not in environment:
            continue
        seen.add((name, extra))
        found[name] = environment[name]
        for text in environment[name].requires or []:
            below = Requirement(text)
            if below.marker is None or below.marker.evaluate({"extra": extra}):
                waiting += [(below, inner) for inner in ("", *below.extras)]
    return dict(sorted(found.items()))


def entry(one: Distribution, name: str) -> str:
    """A field of the metadata; empty where there is none."""
    return str(one.metadata[name]) if name in one.metadata else ""


# words of a license by which its text is known
TEXTS = (
    ("Permission is hereby granted, free of charge", "MIT"),
    ("Neither the name", "BSD-3-Clause"),
    ("Redistribution and use in source and binary forms", "BSD-2-Clause"),
    ("Apache License", "Apache-2.0"),
)


def license_of(one: Distribution) -> str:
    """The license that a distribution declares, in a few words.

    The expression if there is one, else one line of free text, else the classifiers, else what the
    text of its license file is known by.
    """
    expression = entry(one, "License-Expression")
    if expression:
        return expression
    text = entry(one, "License").strip()
    if text and len(text) <= 60 and "\n" not in text and text.upper() != "UNKNOWN":
        return text
    kinds = [
        line.rpartition(" :: ")[2]
        for line in one.metadata.get_all("Classifier") or []
        if line.startswith("License ::") and not line.endswith("OSI Approved")
    ]
    if kinds:
        return ", ".join(kinds)
    files = [file for file in one.files or [] if re.match(r"(LICEN[CS]E|COPYING)", file.name)]
    for file in files:
        words = " ".join(file.read_text().split())
        for phrase, name in TEXTS:
            if phrase in words:
                return name
    return "not declared"


def homepage(one: Distribution) -> str:
    """Where the project lives, if it states it."""
    links = {}
    for link in one.metadata.get_all("Project-URL") or []:
        label, _, address = link.partition(",")
        links[re.sub(r"[^a-z]", "", label.lower())] = address.strip()
    for label in ("homepage", "home", "source", "sourcecode", "repository", "github"):
        if label in links:
            return links[label]
    return entry(one, "Home-page")
