"""Pictures inside the HTML of a notebook: SVG without script, whose colours follow the notebook's light or dark.

Colours of lines and letters become variables of CSS. A notebook that says which theme it has is believed; else the
picture follows the system. It brings its own paper, so that its letters can be read whatever is behind it.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

# A colour of the figures, the name of its variable, and its value in the dark.
_INKS: Final = {
    "#ffffff": ("paper", "#14171c"),
    "#000000": ("ink", "#e4e7ec"),
    "#303030": ("dark", "#d0d4da"),
    "#404040": ("words", "#b4bcc8"),
    "#7f7f7f": ("dots", "#9aa3b0"),
    "#8c8c8c": ("unknown", "#9aa3b0"),
    "#999999": ("grey", "#9aa3b0"),
    "#d9d9d9": ("faint", "#323843"),
    "#dddddd": ("open", "#3a414d"),
    "#f2f2f2": ("pale", "#2b313b"),
    "#0072b2": ("blue", "#56b4e9"),
    "#d55e00": ("vermilion", "#ff8a3d"),
    "#009e73": ("green", "#2fcf9f"),
    "#cc79a7": ("purple", "#e39bc6"),
    "#e69f00": ("orange", "#f2b63c"),
    "#56b4e9": ("sky", "#9ad4f5"),
}
_INK: Final = "#000000"  # of letters that say no colour
_LIGHT: Final = "".join(f"--sateen-{name}:{light};" for light, (name, _) in _INKS.items())
_DARK: Final = "".join(f"--sateen-{name}:{dark};" for name, dark in _INKS.values())
# How Jupyter, Visual Studio Code and Sphinx's themes mark a page that is light, and one that is dark.
_SAYS_LIGHT: Final = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]')
_SAYS_DARK: Final = ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]')
_STYLE: Final = (
    f".sateen{{{_LIGHT}max-width:100%;height:auto;background:var(--sateen-paper)}}"
    ".sateen *{stroke-linejoin:round;stroke-linecap:butt}"
    f"@media (prefers-color-scheme:dark){{.sateen{{{_DARK}}}}}"
    f"{','.join(f'{each} .sateen' for each in _SAYS_LIGHT)}{{{_LIGHT}}}"
    f"{','.join(f'{each} .sateen' for each in _SAYS_DARK)}{{{_DARK}}}"
)
_LARGEST: Final = 1e300  # number on an axis, beyond which the ticks of matplotlib overflow
_COLOUR: Final = re.compile("|".join(_INKS))
_RULES: Final = {"svg.fonttype": "none", "svg.hashsalt": "sateen"}  # letters are text; the same picture, the same bytes


def svg(draw: Callable[[], Axes | Figure]) -> str:
    """The picture that `draw` makes, as an element of HTML; "" where its numbers are too large to be drawn."""
    stream = io.StringIO()
    # A letter that no font has here may well be in the reader's.
    with mpl.rc_context(_RULES), np.errstate(all="ignore"), warnings.catch_warnings():  # type: ignore[arg-type]
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            figure = draw().figure
            whole = figure.figure if isinstance(figure, SubFigure) else figure
            views = [axes.viewLim.extents for axes in whole.axes]
            if not all(np.abs(each).max() < _LARGEST for each in views):
                return ""
            whole.savefig(stream, format="svg", dpi=110, bbox_inches="tight", metadata={"Date": None})
        except (ValueError, OverflowError):
            return ""
    return _element(stream.getvalue())


def _element(document: str) -> str:
    """The `<svg>` of a document, without what belongs to a file, and with the variables for its colours."""
    body = document[document.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", body))
    body = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", body)
    body = _COLOUR.sub(lambda found: f"var(--sateen-{_INKS[found[0]][0]},{found[0]})", body)
    body = re.sub(r"\n\s*", "\n", body)
    head, rest = body[len("<svg") :].split(">", 1)
    head, rest = re.sub(r' (xmlns:xlink|xmlns|version)="[^"]*"', "", head), rest.strip()
    return f'<svg class="sateen" role="img" fill="var(--sateen-ink,{_INK})"{head}><style>{_STYLE}</style>{rest}'
