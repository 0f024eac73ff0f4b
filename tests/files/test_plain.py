"""Plain data from files of strangers: strict, flat, in proportion, and of the declared types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sateen.core.errors import InputError
from sateen.core.observations import Failure
from sateen.core.prediction import Claim
from sateen.files.plain import converted, parse_json

PLAIN = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(10**30), 10**30)
    | some.floats(allow_nan=False, allow_infinity=False)
    # Quotes, backslashes and brackets, which must not be mistaken for those of the JSON around them.
    | some.text('ab"\\[]{}\n\u00e9\U0001f600'),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text('k"\\['), inner, max_size=4),
)


@given(PLAIN, some.booleans())
def test_what_json_can_say_is_read_back(value: Any, plain: bool) -> None:
    text = json.dumps(value, ensure_ascii=plain)
    assert parse_json(text) == parse_json(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested 100,000 deep, and at most 200 levels"),
        ('{"a":' * 201 + "0" + "}" * 201, "nested 201 deep"),
        (f"[{'[],' * 10**6}0]", "1,000,001 lists and objects, and at most 1,000,000"),
        ("9" * 5000, "a whole number in it has 5,000 digits, and at most 300"),
        ("[NaN]", "NaN is not JSON"),
        ('"\\ud800"', "surrogates not allowed"),
        (b'"\xff"', "invalid start byte"),
        ('"[]"'.encode("utf-16"), "invalid start byte"),
        ("{", "Expecting property name"),
    ],
)
def test_what_is_not_strict_or_out_of_proportion_is_a_value_error(text: str | bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_json(text)


def test_brackets_in_texts_are_no_lists() -> None:
    text = json.dumps(["[{" * 10**6, '"[' * 300])
    assert parse_json(text) == json.loads(text)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"theta": {"k": "1"}, "seed": 1, "point": 2, "run": 3, "error": ""}, Failure),
        ({"theta": {"k": 1.0}, "seed": True, "point": 2, "run": 3, "error": ""}, Failure),
        ({"theta": {"k": 10**299}, "seed": 1, "point": 2, "run": 3}, Failure),
        ({"target": "probability", "mode": "credible", "level": 10**400, "measure": ""}, Claim),
        ({"target": "probability", "mode": "credible", "level": 0.5, "measure": "", "confidence": 0.5}, Claim),
        ([], Claim),
    ],
)
def test_what_does_not_fit_the_declared_types_is_refused(content: object, kind: type[object]) -> None:
    with pytest.raises(InputError):
        converted(content, kind)
