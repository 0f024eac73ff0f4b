"""Where the keys of a TOML text stand."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sateen.study.file import positions

HARD = '''# c = 1
top = 'a # b'
[study] # x
name = "s\\"[x]"
a."b c".d = [1, {x = 2}, """
k = 3
""""", 'q'] # trailing
[[many]]
x=1
[[many]]
x = { y = [ # a comment, in a list ]
  1, 2,
 ], z = 1979-05-27T07:32:00 }
[many.sub]
'it''s' = 1
'''.replace("'it''s'", '"it\'s"')


def paths(value: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    """Every path in a nested value, but for the empty one."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {path} - {()} | {deeper for key, own in inside for deeper in paths(own, (*path, key))}


def test_every_key_of_a_hard_text_is_found_where_it_stands() -> None:
    found = positions(HARD)
    assert set(found) == paths(tomllib.loads(HARD))
    shown = {path: HARD[place:].split("\n")[0] for path, place in found.items()}
    assert shown["top",] == "top = 'a # b'"
    assert shown["study", "a", "b c", "d"] == 'd = [1, {x = 2}, """'
    assert shown["study", "a", "b c", "d", 3] == "'q'] # trailing"
    assert shown["study", "a", "b c", "d", 1, "x"] == 'x = 2}, """'
    assert shown["many", 1, "x"] == "x = { y = [ # a comment, in a list ]"
    assert shown["many", 1, "x", "z"] == "z = 1979-05-27T07:32:00 }"
    assert shown["many", 1, "sub", "it's"] == '"it\'s" = 1'


words = some.text("abc #=\"'\\[]{},.\n\t\u00e4", max_size=6)
keys = some.from_regex(r"[a-z0-9_-]{1,3}", fullmatch=True) | words
leaves = some.integers(-9, 9) | some.booleans() | words | some.sampled_from([1.5, float("inf")])
values = some.recursive(
    leaves, lambda inner: some.lists(inner, max_size=3) | some.dictionaries(keys, inner, max_size=3), max_leaves=8
)


def written(value: Any, one_line: bool = True) -> str:
    """A value in TOML; strings in the style that their content suggests, lists over several lines where they may be."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if "'" not in value and not {"\n", "\t"} & set(value) and value:
            return f"'{value}'"
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        return f'"{escaped}"'.replace("\n", "\\n") if one_line or "\n" not in value else f'"""\n{escaped}"""'
    if isinstance(value, list):
        gap = " " if one_line else "\n  # a comment, with ] and }\n  "
        return f"[{gap}" + f",{gap}".join(written(own, one_line) for own in value) + f"{gap}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key_written(key)} = {written(own)}" for key, own in value.items()) + " }"
    return str(value)


def key_written(key: str) -> str:
    bare = key.isascii() and key.replace("-", "_").replace("_", "a").isalnum()
    return key if bare else '"' + written(f"'{key}")[2:]


@given(some.dictionaries(keys, values, max_size=4), some.dictionaries(keys, values, max_size=3), keys)
def test_the_keys_are_those_that_tomllib_reads_and_each_stands_at_its_place(
    top: dict[str, Any], inner: dict[str, Any], name: str
) -> None:
    top.pop(name, None)
    lines = [f"{key_written(key)} = {written(value, one_line=False)} # end" for key, value in top.items()]
    lines += [f"[ {key_written(name)} ]", *(f"{key_written(key)}={written(own)}" for key, own in inner.items())]
    text = "\n".join(lines)
    read = tomllib.loads(text)
    assert read == {**top, name: inner} or "inf" in text
    found = positions(text)
    assert set(found) == paths(read)
    for path, place in found.items():
        if isinstance(path[-1], str):
            assert text.startswith(key_written(path[-1]), place)


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "a=1", "a=1\n", "\r\na = 1\r\n", "[a]", "[a]\n[a.b]"])
def test_small_texts_are_no_exception(text: str) -> None:
    assert set(positions(text)) == paths(tomllib.loads(text))
