"""Formulas as MathML, written by docutils: no script, font or network is needed to read them."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def visit_math(self: Any, node: nodes.math) -> None:
    """Write an inline formula. LaTeX that docutils cannot read raises, and the build fails."""
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula; a wide one scrolls by itself on a phone."""
    self.body.append(f'<div class="math-block">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the writer; conf.py chooses it by name."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
