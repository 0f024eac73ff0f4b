"""Tables of the documentation, as tests read them."""

from __future__ import annotations

import re


def table_cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table, in which \\| is a bar."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
