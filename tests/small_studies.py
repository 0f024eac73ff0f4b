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


# The small study without a guarantee and scores; what is decided goes below it.
WITHOUT = changed(
    ("calibrate = { points = 40, runs = 20 }\ntest      = { points = 10, runs = 50 }\n", ""),
    ('[guarantee]\nnormaliser = "constant"\n', ""),
)
# With it, the study decides where the property has a probability of at least 0.5.
DECIDE = """
[decide]
above = 0.5
undecided = 0.08
budget = 6000
certificate = { wrong = 0.1, confidence = 0.9 }
bounds = { width = 0.3, cells = 200 }
"""
TWO = changed(('gone = "F[0, 2] A == 0"', 'gone = "F[0, 2] A == 0"\nearly = "F[0, 1] A == 0"'), text=WITHOUT)
# With it, it finds where one property is most probable, while another one is limited.
BEST = """
[decide]
property = "gone"
goal = "optimum"
gap = 0.2
budget = 30000
subject_to = { early = "<= 0.5" }
certificate = { wrong = 0.1, confidence = 0.9 }
"""
