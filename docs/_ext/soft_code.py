"""References in docstrings: `name` is a link where it names something public, else code.

Types in signatures are written by the module that defines them (``consistruct.losses.base.Loss``);
they are documented under the package that exports them (``consistruct.losses.Loss``).
"""

from __future__ import annotations

import importlib
from typing import Any

from api_pages import public_names
from docutils import nodes
from plain_formulas import escape_formulas
from sphinx import addnodes


def soft_code(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any
) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """Make the default role: code, and a link if there is something to link to."""
    code = nodes.literal(rawtext, text, classes=["xref"])
    if not text.replace(".", "").replace("_", "").isalnum():
        return [nodes.literal(rawtext, text)], []
    env = inliner.document.settings.env
    reference = addnodes.pending_xref(
        rawtext,
        code,
        refdomain="py",
        reftype="obj",
        reftarget=text,
        refdoc=env.docname,
        soft=True,
    )
    reference["py:module"] = env.ref_context.get("py:module")
    reference["py:class"] = env.ref_context.get("py:class")
    return [reference], []


def exported_as(target: str) -> str | None:
    """Find the public name of an object given by its defining module, or by its bare name."""
    module, _, name = target.rpartition(".")
    candidates = [public for public in public_names() if public.rpartition(".")[2] == name]
    if not module or not module.startswith("consistruct"):
        return candidates[0] if len(candidates) == 1 and not module else None
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None
    for public in candidates:
        package, _, attribute = public.rpartition(".")
        if getattr(importlib.import_module(package), attribute) is found:
            return public
    return None


def resolve(app: Any, env: Any, node: addnodes.pending_xref, content: nodes.Node) -> Any:
    """Follow a reference to the exported name; leave a soft one as code if there is none."""
    if node.get("refdomain") != "py":
        return None
    public = exported_as(node["reftarget"])
    if public is not None:
        domain = env.get_domain("py")
        made = domain.resolve_xref(
            env, node["refdoc"], app.builder, "obj", public, node, content.deepcopy()
        )
        if made is not None:
            return made
    if node.get("soft"):
        return nodes.literal("", content.astext())
    # a private base class or type: shown by its name, documented nowhere on purpose
    if node["reftarget"].startswith("consistruct.") and public is None:
        return content
    return None


def setup(app: Any) -> dict[str, bool]:
    """Register the role and the resolver."""
    app.add_role("softcode", soft_code)
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-docstring", escape_formulas, priority=400)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
