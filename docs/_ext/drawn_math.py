"""Formulas as drawings: matplotlib's mathtext sets them while the site is built.

Nothing is needed to read them: no script, no network, no mathematics font. They are inline SVG in
the color of the text, so they follow light and dark, and carry their LaTeX for screen readers.
"""

from __future__ import annotations

from html import escape
from typing import Any

import matplotlib as mpl
from docutils import nodes
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath

SIZE = 16.0  # drawing units per em
LETTER = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q", Outline.CURVE4: "C"}


def drawing(latex: str) -> str:
    """Return inline SVG; raises on LaTeX that mathtext cannot read, so that the build fails."""
    with mpl.rc_context({"mathtext.fontset": "stix"}):
        outline = TextPath((0, 0), f"${' '.join(latex.split())}$", size=SIZE)
    commands = []
    for points, code in outline.iter_segments(curves=True, simplify=False):
        if code == Outline.CLOSEPOLY:
            commands.append("Z")
            continue
        # SVG counts downwards
        pairs = zip(points[::2], points[1::2], strict=True)
        commands.append(LETTER[code] + " ".join(f"{x:.2f},{-y:.2f}" for x, y in pairs))
    box = outline.get_extents()
    left, width = box.x0 - 0.5, box.width + 1
    top, height = -box.y1 - 0.5, box.height + 1
    return (
        f'<svg class="formula" role="img" aria-label="{escape(latex, quote=True)}" '
        f'viewBox="{left:.2f} {top:.2f} {width:.2f} {height:.2f}" '
        f'style="width:{width / SIZE:.3f}em;height:{height / SIZE:.3f}em;'
        f'vertical-align:{-(top + height) / SIZE:.3f}em"><path d="{"".join(commands)}"/></svg>'
    )


def visit_math(self: Any, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(drawing(node.astext()))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula; a wide one scrolls by itself on a phone."""
    self.body.append(f'<div class="math-block">{drawing(node.astext())}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the writer; conf.py chooses it by name."""
    app.add_html_math_renderer("drawn", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
