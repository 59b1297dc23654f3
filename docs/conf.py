"""How the site is built: `make docs`, warnings are errors, nothing is fetched from a network."""

import sys
from pathlib import Path

import matplotlib as mpl

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))  # the tree that is documented, installed or not
mpl.use("agg")

import consistruct  # noqa: E402

project = "consistruct"
author = "The consistruct developers"
project_copyright = author
release = version = consistruct.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "repository_pages",  # benchmark results, contributing and changes, from where they live
    "api_pages",  # one page per public name
    "soft_code",  # `name` in a docstring is a link where it names something public
    "drawn_math",  # formulas without a script or a font
]
exclude_patterns = ["_ext", "sg_execution_times.rst", "**/sg_execution_times.rst"]
default_role = "softcode"
nitpicky = True
# parameter types in words ("array", "optional") and what other packages document
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|scipy|sklearn|matplotlib|collections|typing|numba|pandas|pathlib)\..*"),
    (r"py:.*", r"(np|sp|plt|abc|rich|fractions|plotly|starlette|sympy|datetime|os|torch|dask)\..*"),
    (r"py:class", r"(ArrayLike|NDArray|Generator|RandomState|optional|Axes|Expr|Group)"),
    (r"py:class", r"dict\[str"),  # an annotation that autodoc cuts at its comma
    (r"py:class", r"Structure"),  # what score spaces share; its members are documented
    (r"py:class", r"(polyhedral\.Problem|UpperPoint|PairSearch|Witness)"),  # not public
    (r"py:class", r"Partition"),  # blocks of classes, as a structure of blocks states them
    (r"py:class", r"Chart"),  # what draws it is public, not what it is made of
    (r"py:class", r"Proof"),  # what a prover hands to its certificate; not public
]

# --- MyST: the pages are plain Markdown that any host shows
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the gallery's settings hold objects

# --- API
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# --- executed examples
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"__init__|add_a_loss",
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 10**6,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib",),
    "show_memory": False,
    "write_computation_times": False,
}

# --- HTML
html_math_renderer = "drawn"
html_theme = "pydata_sphinx_theme"
html_title = "consistruct"
html_static_path = ["_static"]
html_css_files = ["consistruct.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "consistruct"},
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": {"**": ["page-toc"], "cheatsheet": []},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# pages without pages below them need no list of these
html_sidebars = {page: [] for page in ("index", "cheatsheet", "tutorial", "concepts")}
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system states
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app):
    """Show CSV files as plain text: Pygments has no lexer for them."""
    from pygments.lexers.special import TextLexer

    app.add_lexer("csv", TextLexer)
