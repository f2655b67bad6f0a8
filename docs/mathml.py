"""Formulas as MathML, which browsers show by themselves: no script, no fonts, no network.

docutils translates the LaTeX. What it does not know becomes a warning with the place of the formula, and `make docs`
takes warnings for errors.
"""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def translated(node: nodes.Element, *, as_block: bool) -> str:
    """Return a formula as MathML, or as its LaTeX with a warning."""
    latex = node.astext().strip()
    try:
        return tex2mathml(latex, as_block=as_block)
    except MathError as error:
        logger.warning("this formula cannot be shown as MathML (%s): %s", error, latex, location=node)
        return f"<code>{latex}</code>"


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(translated(node, as_block=False))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{translated(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
