"""What strangers write, made fit to be shown: no character of it steers a terminal, or hides."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with every character that cannot be seen in an escaped form; line ends and tabs stay.

    Those are control characters, the marks that turn the direction of writing or have no width, spaces other than the
    usual one, and halves of surrogate pairs.

    >>> print(printable("a name\\x1b[31m, \\u202eanother"))
    a name\\x1b[31m, \\u202eanother
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in text)
