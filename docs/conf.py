"""Sphinx: pages in Markdown, reference from docstrings, mathematics as MathML, so that nothing is loaded from afar."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import cghash

project = "cghash"
author = "the cghash developers"
copyright = "the cghash developers"  # noqa: A001
version = release = cghash.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "measurements/*", "walks/*"]  # these are included by other pages
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

default_role = "code"  # `name` in a docstring

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes and defaults stand in the docstrings
autoclass_content = "class"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # names keep their last underscore
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"cghash {version}"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"


def math_inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def math_block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (math_inline, None), (math_block, None))
