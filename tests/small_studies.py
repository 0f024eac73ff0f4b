"""What the tests of studies share: a study that takes a second, and ways to change it."""

from __future__ import annotations

import sateen as st

SMALL = """\
[study]
name = "decay"
seed = 7

[model]
text = '''
species A = 5
A -> 0 @ mass_action(k)
'''

[space]
k = [0.1, 2]

[property]
gone = "F[0, 2] A == 0"

[observe]
train     = { points = 24, runs = 20 }
calibrate = { points = 40, runs = 20 }
test      = { points = 10, runs = 50 }

[learn]
learners = ["svi-gp"]

[learn.svi-gp]
inputs = "linear"
inducing = 8

[guarantee]
normaliser = "constant"
"""


def changed(*changes: tuple[str, str], text: str = SMALL) -> str:
    """The text with each first occurrence of something replaced, which must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def small(*changes: tuple[str, str]) -> st.Study:
    """The small study, changed."""
    return st.Study.parse(changed(*changes))
