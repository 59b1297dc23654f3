"""Pages that live elsewhere in the repository: contributing, changes, the paper, benchmarks.

They are copied below docs/generated before the build, with their pictures, and Markdown links
among them and from the pages under docs are led to the copies. Links stay plain relative paths in
the files themselves, so that they also work on a code host.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
GENERATED = DOCS / "generated"
LINK = re.compile(r"(\]\()([^)#\s]+)([^)]*\))")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^<!-- (?:file|not run|needs): .*? -->\n", re.MULTILINE)


def copies() -> dict[Path, Path]:
    """Original to copy, both absolute."""
    found = {
        ROOT / "CONTRIBUTING.md": GENERATED / "contributing.md",
        ROOT / "CHANGELOG.md": GENERATED / "changelog.md",
        ROOT / "paper" / "README.md": GENERATED / "paper.md",
        ROOT / "benchmarks" / "README.md": GENERATED / "benchmarks" / "README.md",
    }
    for path in sorted((ROOT / "benchmarks" / "results").iterdir()):
        if path.suffix in {".md", ".png", ".svg"}:
            found[path] = GENERATED / "benchmarks" / path.name
    return found


def copy_pages(app: Any) -> None:
    """Copy what is newer than its copy, so that an unchanged page is not read again."""
    wanted = copies()
    for original, copy in wanted.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != original.read_bytes():
            shutil.copyfile(original, copy)
    for stale in set((GENERATED / "benchmarks").iterdir()) - set(wanted.values()):
        stale.unlink()
    for page in (GENERATED / "gallery").glob("plot_*.rst"):  # of an example that is gone
        if not (ROOT / "examples" / f"{page.stem}.py").exists():
            page.unlink()


def relink(app: Any, docname: str, source: list[str]) -> None:
    """Lead links to the copies; what is no page of the site becomes its name in code."""
    page = Path(app.env.doc2path(docname))
    if page.suffix != ".md":
        return
    to_copy = copies()
    origin = {copy: original for original, copy in to_copy.items()}.get(page, page)

    def link(match: re.Match[str]) -> str:
        if "://" in match[2] or match[2].startswith(("generated/", "<")):
            return match[0]
        target = Path(os.path.normpath(origin.parent / match[2]))
        target = to_copy.get(target, target)
        if target == ROOT / "README.md":
            target = DOCS / "index.md"
        if not target.is_relative_to(DOCS):  # source files: shown by the code host, not here
            target = ROOT
        return f"{match[1]}{os.path.relpath(target, page.parent)}{match[3]}"

    def prose(text: str) -> str:
        text = LINK.sub(link, COMMENT.sub("", text))
        outside = os.path.relpath(ROOT, page.parent)
        return re.sub(rf"\[([^\]]+)\]\({re.escape(outside)}[^)]*\)", r"`\1`", text)

    parts = FENCE.split(source[0])
    source[0] = "".join(part if part.startswith("```") else prose(part) for part in parts)
    if page == GENERATED / "benchmarks" / "README.md":
        source[0] += "\n## Results\n\n```{toctree}\n:glob:\n\n[!R]*\n```\n"
    if page == GENERATED / "paper.md":  # `make paper` has written them
        source[0] += "\n## Pages\n\n```{toctree}\npaper/index\npaper/figures\n```\n"


def setup(app: Any) -> dict[str, bool]:
    """Copy before Sphinx looks for pages, relink while it reads them."""
    app.connect("config-inited", lambda app, _: copy_pages(app), priority=400)
    app.connect("source-read", relink, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
