"""Sphinx configuration. The build needs no network: `make docs`."""

import sys
from collections import _tuplegetter
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

import condgrad

sys.path.insert(0, str(Path(__file__).parent))  # our own extensions

project = "condgrad"
author = "condgrad developers"
copyright = "2026, condgrad developers"
version = release = condgrad.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "generate",
    "mathml",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "pictures", "sg_execution_times.rst"]

# Every script of examples/ but the demonstration is run, and its output and pictures are shown.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/(?!demo)\w+\.py$",
    "ignore_pattern": r"demo\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "plot_gallery": True,
    "parallel": 2,
    "abort_on_example_error": True,
}
html_math_renderer = "mathml"
templates_path = ["_templates"]

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

# The API pages list what each module exports in __all__: a new loss, set or solver appears by itself.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = False  # names in __all__ are shown all the same
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
suppress_warnings = ["ref.citation"]  # a list of references may name a paper that no sentence points to

html_theme = "pydata_sphinx_theme"
html_title = "condgrad"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["condgrad.css"]
html_theme_options = {
    "navbar_center": ["doors"],  # _templates/doors.html
    "navbar_align": "left",
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "show_toc_level": 2,
    "show_prev_next": False,
}

html_sidebars = {name: [] for name in ("index", "install", "first_steps")}  # pages of no section

plot_html_show_formats = False
plot_html_show_source_link = False
plot_formats = [("svg", 100)]


def skip_member(app, what, name, obj, skip, options):
    """Leave out the fields of a NamedTuple, which its docstring describes, and scikit-learn's routing of metadata."""
    is_routing = name.endswith("_request") or name == "get_metadata_routing"
    return True if is_routing or isinstance(obj, _tuplegetter) else None


class PlainBars(SphinxTransform):
    """Read |r| in a docstring as the absolute value that it is, not as a substitution of reStructuredText."""

    default_priority = 200  # before docutils resolves substitutions

    def apply(self):
        for node in list(self.document.findall(nodes.substitution_reference)):
            if node["refname"] not in self.document.substitution_defs:
                node.replace_self(nodes.Text(node.rawsource))


def setup(app):
    app.connect("autodoc-skip-member", skip_member)
    app.add_transform(PlainBars)
