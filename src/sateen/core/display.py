"""What notebooks show: a picture as SVG inside HTML, its words below it, and the numbers behind a click.

The picture has no script, and its colours follow the notebook: light or dark.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from sateen.core.registry import call_provider


def paragraph(text: str) -> str:
    """Text as HTML that keeps its line breaks.

    >>> paragraph("a < b\\nc")
    '<p>a &lt; b<br>c</p>'
    """
    return f"<p>{'<br>'.join(map(escape, text.splitlines()))}</p>"


def pictured(draw: Callable[[], object], words: str, more: str = "", label: str = "Table") -> str:
    """A picture that `draw` makes, as Axes or a Figure of matplotlib, above its words; `more` HTML is folded away.

    Numbers that are too large to be drawn leave the words, and the rest unfolded.
    """
    picture = str(call_provider("inline picture", draw))
    if not picture:
        return paragraph(words) + more
    folded = f"<details><summary>{label}</summary>{more}</details>" if more else ""
    return f"{picture}{paragraph(words)}{folded}"
