# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Sphinx's configuration for scripts/docs-html.

The pages are Markdown as the forges show it, without a word of Sphinx in them. So what Sphinx
needs is added when it reads a page: to the one at the top, the list of all pages.
"""

import pathlib

VERSION = (pathlib.Path(__file__).parent / "VERSION").read_text(encoding="utf-8").strip()

project = "weft"
author = "The weft authors"
copyright = author  # pylint: disable=redefined-builtin
release = VERSION
extensions = ["myst_parser"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
html_theme = "alabaster"
html_theme_options = {"description": "software iWARP", "page_width": "70em", "fixed_sidebar": True}
html_copy_source = False
# Headings as the forges name them, for links to a section.
myst_heading_anchors = 4
# Code blocks without a language are commands and their output.
highlight_language = "none"
# The kernel's annotations of types and functions.
c_id_attributes = ["__user", "__iomem", "__percpu", "__rcu", "__bitwise", "noinline", "__init",
                   "__exit", "__must_check", "__always_inline", "weft_hot"]

GROUPS = {
    "Use": ["README", "Documentation/recipes", "Documentation/operating", "Documentation/verbs",
            "Documentation/consumers", "Documentation/programs", "Documentation/comparison",
            "Documentation/security", "Documentation/debugging", "Documentation/compatibility"],
    "Inside": ["Documentation/index", "Documentation/glossary", "Documentation/architecture",
               "Documentation/protocol", "Documentation/protocol-rules", "Documentation/abi",
               "Documentation/bounds", "Documentation/locking", "Documentation/testing",
               "Documentation/style", "api/index"],
    "Decisions, measurements": ["Documentation/decisions/README",
                                "Documentation/performance/README"],
    "Project": ["CONTRIBUTING", "SECURITY", "NEWS"],
}
# Pages that stand below another one.
BELOW = {
    "Documentation/decisions/README": "[0-9]*",
    "Documentation/performance/README": "*",
}


def toctree(pages, *options):
    """A list of pages, in the sidebar only."""
    return "\n".join(["", "", "```{toctree}", ":hidden:", *options, "", *pages, "```", ""])


def add_pages(_app, docname, source):
    """Append to a page the list of those below it."""
    if docname == root_doc:
        for caption, pages in GROUPS.items():
            source[0] += toctree([f"/{p}" for p in pages], f":caption: {caption}")
    elif docname in BELOW:
        source[0] += toctree([BELOW[docname]], ":glob:")


def setup(app):
    """Of Sphinx."""
    app.connect("source-read", add_pages)
