"""The report: one HTML file that needs nothing else, neither a network nor another file.

A template is filled with plain data; what comes from the user is text in it, never markup and never code. The
pictures are drawn in the browser, from data that stands in the page, by plotly.js, which stands in it too. A policy in
the page lets only these scripts run, by their hashes, and lets nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

__all__ = ["STAMP", "render"]

STAMP: Final = "sateen-stamp"  # the name of the <meta> that says what the page was made from
_TEMPLATE: Final = "report.html.jinja"
_SCRIPT: Final = "report.js"
_STYLE: Final = "report.css"
# What would end a script, or a line of one, inside HTML.
_HARMLESS: Final[dict[str, str | int | None]] = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def render(page: Mapping[str, object], drawn: Mapping[str, object], *, stamp: str = "") -> str:
    """The page as text: `page` is what its words say, `drawn` the data of its pictures, by the id of their section."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    library, script = get_plotlyjs(), _text(_SCRIPT)
    # A script is hashed as the browser will see it: with its line ends made one kind.
    scripts = [text.replace("\r\n", "\n") for text in (library, script)]
    environment = Environment(
        loader=FunctionLoader(_text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(_TEMPLATE).render(
        page=page,
        stamp=stamp,
        stamp_name=STAMP,
        style=Markup(_text(_STYLE)),
        library=Markup(scripts[0]),
        script=Markup(scripts[1]),
        hashes=Markup(" ".join(f"'sha256-{_hash(text)}'" for text in scripts)),
        data=Markup(_data(drawn)),
    )


def _data(drawn: Mapping[str, object]) -> str:
    """JSON that can stand inside a script element whatever texts are in it."""
    text = json.dumps(drawn, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(str.maketrans(_HARMLESS))


def _text(name: str) -> str:
    return files("sateen.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
