"""The site: `python -m sphinx -W -b html docs docs/_build/html`, without a network.

The pages are plain Markdown that also reads well where no site is built. What the site adds, its contents and the
reference pages made from the sources, comes from `tools/site_contents.py` and `tools/site_reference.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

from sateen.core.version import VERSION

sys.path.insert(0, str(Path(__file__).parent / "tools"))

project = "sateen"
author = "The sateen developers"
copyright = "The sateen developers"
version = release = VERSION

extensions = ["myst_parser"]
exclude_patterns = ["_build", "tools"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
# A console or a text block shows what is typed and printed; no lexer has to understand it.
highlight_language = "none"
# Options such as --vary and quotes in code stay as they are written.
smartquotes = False

html_title = "sateen"
html_theme = "pydata_sphinx_theme"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
}


def setup(app: Sphinx) -> None:
    """Complete each page as it is read."""
    import site_contents

    app.connect("source-read", site_contents.complete_page)
    app.connect("env-get-outdated", site_contents.completed_pages)
