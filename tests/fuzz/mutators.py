"""Ways to spoil an input: its bytes, tokens, numbers, brackets and characters, and the structure of JSON, XML and TOML.

Each takes a random generator and data, and returns the data spoilt; the same generator gives the same result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

NUMBERS: Final = (
    *("0", "-1", "-0", "1", "2", "3", "0.5", "1e-308", "5e-324", "1e308", "1e400", "-1e400", "1e-400", "nan", "inf"),
    *("-inf", "NaN", "Infinity", "9007199254740991", "9007199254740992", "9007199254740993", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775809", "1180591620717411303424", "1e9", "1000000001", "9" * 5000),
    *("0." + "3" * 5000, "1e99999999999", "0x10", "1_000", "1__0", "٣", "1,5", ".5", "5.", "1e", "--1", "1e-9"),
)
CHARACTERS: Final = (
    *("\0", "\x01", "\x07", "\x08", "\x1b[31m", "\x1b]0;x\x07", "\x7f", "\x85", "\x9b31m", "\r", "\t", "\v", "\f"),
    *("\ufeff", "\u202e", "\u2066", "\u2028", "\u2029", "\u200b", "\ud800", "\udfff", "\ue000", "\uffff", "é", "ß"),
    *("ﬁ", "İ", "K", "β", "名", "\U0001d51b", "🙂", "\u0301", "\U0010ffff", "²", "½", "\u2212", "“", "\u00a0"),
)
BRACKETS: Final = ("()", "[]", "{}", "!", "-", "not ", "F[0,1] ", "floor()", "<a></a>", '""', "''", "``", "/**/")
DEPTHS: Final = (2, 10, 50, 100, 101, 300, 1000, 5000, 30_000)
TOKEN: Final = re.compile(r"[^\W\d]\w*|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\s+|[^\w\s]", re.DOTALL)
NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2.5, -0.0, 2**53 + 1, 2**63, 2**70, -(2**63), 1e308, float("nan"), float("inf")),
    *(
        10**400,
        10**5000,
        "",
        "x",
        "\0",
        "\x1b[31m",
        "\u202e",
        "../../x",
        "/etc/passwd",
        "a" * 5000,
        [],
        {},
        [[]],
        [None],
    ),
    *({"": 0}, [0, 0], {"x": []}, "nan", "1e400", [1e308, -1e308], "canary:Learner", "os:system", 10**9, "\ud800"),
)
Mutator = Callable[[Random, str, Sequence[str], Sequence[str]], str]


def spoilt(rng: Random, seeds: Sequence[bytes], tokens: Sequence[str], kind: str) -> bytes:
    """One of the seeds, spoilt in one to six ways that suit its kind: text, json, xml, toml, csv or bytes."""
    data = rng.choice(seeds)
    ways = 1 + min(5, int(rng.expovariate(0.9)))
    for _ in range(ways):
        if kind == "bytes" or rng.random() < 0.2:
            data = rng.choice(OF_BYTES)(rng, data, seeds)
            continue
        text = data.decode("utf-8", "surrogateescape")
        others = [each.decode("utf-8", "surrogateescape") for each in seeds]
        change = rng.choice((*OF_TEXT, *OF_KIND.get(kind, ()), *OF_KIND.get(kind, ())))
        data = _encoded(change(rng, text, others, tokens))
    return data


def _encoded(text: str) -> bytes:
    """The bytes of a text, whatever surrogates it has."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _place(rng: Random, length: int) -> tuple[int, int]:
    """A stretch, mostly a short one."""
    start = rng.randrange(length + 1)
    return start, min(length, start + rng.choice((1, 1, 2, 3, 8, 40, 300, length)))


# Of bytes.


def flip(rng: Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    if not data:
        return b"\0"
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def insert(rng: Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 1, 2, 4, 9))) + data[at:]


def delete(rng: Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    start, stop = _place(rng, len(data))
    return data[:start] + data[stop:]


def truncate(rng: Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def duplicate(rng: Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    start, stop = _place(rng, len(data))
    return data[:stop] + data[start:stop] * rng.choice((1, 1, 1, 2, 100)) + data[stop:] if len(data) < 10**5 else data


def splice(rng: Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    other = rng.choice(seeds)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


OF_BYTES: Final = (flip, flip, insert, delete, truncate, duplicate, splice)


# Of tokens, numbers, nesting and characters.


def swap_tokens(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    found = TOKEN.findall(text)
    if len(found) > 1:
        one, other = rng.randrange(len(found)), rng.randrange(len(found))
        found[one], found[other] = found[other], found[one]
    return "".join(found)


def repeat_token(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    found = TOKEN.findall(text) or [" "]
    at = rng.randrange(len(found))
    return "".join([*found[:at], *([found[at]] * rng.choice((2, 2, 3, 200))), *found[at + 1 :]])


def drop_tokens(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    found = TOKEN.findall(text)
    start, stop = _place(rng, len(found))
    return "".join(found[:start] + found[stop if rng.random() < 0.3 else start + 1 :])


def replace_token(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    found = TOKEN.findall(text) or [" "]
    at = rng.randrange(len(found))
    found[at] = rng.choice(tokens) if rng.random() < 0.7 else rng.choice(TOKEN.findall(rng.choice(seeds)) or [""])
    return "".join(found)


def insert_token(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    found = TOKEN.findall(text)
    found.insert(rng.randrange(len(found) + 1), f" {rng.choice(tokens)} ")
    return "".join(found)


def blow_up_number(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    found = list(NUMBER.finditer(text))
    if not found:
        return text + rng.choice(NUMBERS)
    chosen = rng.choice(found)
    return text[: chosen.start()] + rng.choice(NUMBERS) + text[chosen.end() :]


def nest(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    bracket, depth = rng.choice(BRACKETS), rng.choice(DEPTHS)
    half = len(bracket) // 2 if bracket[-1] in ")]}>\"'`/" else len(bracket)
    found = TOKEN.findall(text) or [" "]
    at = rng.randrange(len(found))
    within = f"{bracket[:half] * depth}{found[at]}{bracket[half:] * (depth if rng.random() < 0.8 else 0)}"
    return "".join([*found[:at], within, *found[at + 1 :]])


def strange_character(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(CHARACTERS) + text[at + rng.randrange(2) :]


def swap_lines(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    lines = text.splitlines(keepends=True) or [""]
    lines.insert(rng.randrange(len(lines) + 1), lines.pop(rng.randrange(len(lines))))
    return "".join(lines)


def borrow_line(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    lines = text.splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(rng.choice(seeds).splitlines(keepends=True) or ["\n"]))
    return "".join(lines)


OF_TEXT: Final[tuple[Mutator, ...]] = (
    *(swap_tokens, repeat_token, drop_tokens, drop_tokens, replace_token, replace_token, insert_token),
    *(blow_up_number, blow_up_number, nest, strange_character, swap_lines, borrow_line),
)


# Of structure.


def spoilt_json(rng: Random, value: Any) -> Any:
    """The value with one of its parts, at any depth, changed: another type, gone, twice, or deep."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key, copy = rng.choice(keys), value.copy()
        act = rng.random()
        if act < 0.75:
            copy[key] = spoilt_json(rng, value[key])
        elif act < 0.85:
            del copy[key]
        elif isinstance(copy, list):
            copy.insert(key, copy[key])
        else:
            copy[rng.choice((f"{key}x", "", "\0", "__class__", *keys))] = copy[key]
        return copy
    act = rng.random()
    if act < 0.15:
        for _ in range(rng.choice((1, 5, 200))):
            value = [value]
        return value
    if act < 0.25 and isinstance(value, int | float):
        return rng.choice((-value, value * 2, value + 1, value + 0.5, str(value)))
    if act < 0.3 and isinstance(value, str):
        return rng.choice((value * 2, value[1:], value.upper(), list(value)))
    return rng.choice(VALUES)


def json_text(value: Any, rng: Random | None = None) -> str:
    """JSON of what `json` cannot write too: whole numbers of any length."""
    import sys

    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(value, ensure_ascii=rng is None or rng.random() < 0.5)
    finally:
        sys.set_int_max_str_digits(before)


def change_json(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if rng.random() < 0.1:  # a key twice
        return re.sub(r'\{\s*"', lambda match: '{"format": 7, "' if rng.random() < 0.1 else match[0], text)
    if rng.random() < 0.05:
        return "[" * rng.choice(DEPTHS) + text
    return json_text(spoilt_json(rng, value), rng)


def change_xml(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    elements = list(re.finditer(r"<(\w+)[^<>]*/>|<(\w+)[^<>]*>[^<>]*</\2>", text))
    attributes = list(re.finditer(r'(\w+)="([^"]*)"', text))
    act = rng.randrange(7)
    if act == 0 and elements:  # an element twice, or gone
        one = rng.choice(elements)
        return text[: one.start()] + one[0] * rng.choice((0, 2, 50)) + text[one.end() :]
    if act == 1 and len(elements) > 1:  # an element somewhere else
        one, other = rng.choice(elements), rng.choice(elements)
        return text[: other.start()] + one[0] + text[other.end() :]
    if act == 2 and attributes:  # the value of one attribute in another
        one, other = rng.choice(attributes), rng.choice(attributes)
        return text[: other.start(2)] + one[2] + text[other.end(2) :]
    if act == 3 and attributes:
        one = rng.choice(attributes)
        return text[: one.start(2)] + rng.choice((*tokens, *NUMBERS)).replace('"', "") + text[one.end(2) :]
    if act == 4 and attributes:  # gone, or twice
        one = rng.choice(attributes)
        return text[: one.start()] + " ".join([one[0]] * rng.choice((0, 2))) + text[one.end() :]
    if act == 5:
        declared = rng.choice(XML_DECLARATIONS)
        return re.sub(r"(?=<sbml)", lambda _: declared, text, count=1)
    tags = list(re.finditer(r"(?<=</)\w+|(?<=<)\w+", text))
    if not tags:
        return text
    one, name = rng.choice(tags), rng.choice(tags)[0]
    return (
        re.sub(rf"\b{one[0]}\b", name, text) if rng.random() < 0.5 else text[: one.start()] + name + text[one.end() :]
    )


XML_DECLARATIONS: Final = (
    '<!DOCTYPE sbml [<!ENTITY a "x">]>',
    '<!DOCTYPE sbml [<!ENTITY a "x"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>',
    '<!DOCTYPE sbml [<!ENTITY a SYSTEM "secret.txt">]>',
    '<!DOCTYPE sbml SYSTEM "secret.txt">',
    '<?xml-stylesheet href="secret.txt"?>',
    "<!-- -- -->",
    "<![CDATA[x]]>",
)


def change_toml(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    lines = text.splitlines()
    pairs = [place for place, line in enumerate(lines) if re.match(r"\s*[\w\"'.-]+\s*=", line)]
    if not pairs:
        return text
    at = rng.choice(pairs)
    key, _, value = lines[at].partition("=")
    act = rng.randrange(6)
    if act == 0:
        lines[at] = f"{key}= {rng.choice(TOML_VALUES)}"
    elif act == 1:
        lines.insert(rng.choice(pairs), lines[at])
    elif act == 2:
        lines[at] = f"{rng.choice(lines[rng.choice(pairs)].split('=')).strip() or 'x'} ={value}"
    elif act == 3:
        lines[at] = f'{key}.x."" ={value}'
    elif act == 4:
        inner = re.sub(
            r"(?<=[\[{=,])\s*[^\[\]{}=,]+(?=[,\]}])", lambda _: f" {rng.choice(TOML_VALUES)}", value, count=1
        )
        lines[at] = f"{key}={inner}"
    else:
        del lines[at]
    return "\n".join(lines) + "\n"


TOML_VALUES: Final = (
    *("0", "-1", "1", "2", "1.5", "true", "false", '""', "''", '"x"', "[]", "{}", "[[]]", "{ x = 1 }", "nan", "inf"),
    *("-inf", "1e308", "1e400", "9" * 400, "9" * 5000, "9007199254740993", "9223372036854775808", str(2**70), "0x10"),
    *("1979-05-27", "07:32:00", '"\\u0000"', '"\\u001b[31m"', '"../x"', '"secret.txt"', '"/etc/passwd"', "[0, 1]"),
    *("[1, 0]", "[0.1, 0.1]", "{ range = [0, 1] }", '{ range = [0, 1], scale = "log" }', '"canary.py:ruined"'),
    *(
        '"canary:ruined"',
        '"os:system"',
        '"model.sateen"',
        '["svi-gp"]',
        '["svi-gp", "svi-gp"]',
        '{ formula = "F[0,1] A > 0", end = 3 }',
    ),
    *(
        '"ep-gp"',
        '"nicp"',
        '"lift"',
        '"constant"',
        '"grid"',
        "{ points = 1, runs = 1 }",
        "{ budget = 1 }",
        "{ width = 1e-9 }",
    ),
    *('"sm\\u007f"', '"\U0001f642"', '"""\n\n"""', "[" * 200 + "]" * 200, "[" * 5000, '"\\ud800"'),
)


def change_csv(rng: Random, text: str, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    lines = text.splitlines() or [""]
    at = rng.randrange(len(lines))
    act = rng.randrange(6)
    if lines[at].startswith("# ") and act < 4:  # a comment with JSON
        head, _, value = lines[at].partition(": ")
        try:
            lines[at] = f"{head}: {json_text(spoilt_json(rng, json.loads(value)), rng)}"
        except (ValueError, RecursionError):
            lines[at] = f"{head}: {rng.choice((*NUMBERS, *tokens))}"
    elif act == 0:
        del lines[at]
    elif act == 1:
        lines.insert(rng.randrange(len(lines)), lines[at])
    else:
        cells = lines[at].split(",")
        place = rng.randrange(len(cells))
        cells[place] = rng.choice((*NUMBERS, *tokens, '"', '"x"', '"a\nb"', "", " ", "-"))
        if act == 2:
            cells.insert(place, rng.choice(cells))
        lines[at] = ",".join(cells)
    return rng.choice(("\n", "\n", "\n", "\r\n", "\r")).join(lines) + "\n"


OF_KIND: Final[dict[str, tuple[Mutator, ...]]] = {
    "json": (change_json,) * 8,
    "xml": (change_xml,) * 6,
    "toml": (change_toml,) * 6,
    "csv": (change_csv,) * 6,
}


# Of size.


LARGE: Final = 9_500_000  # bytes
SWELLERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "lines": lambda data: data + (data.rstrip(b"\n").rpartition(b"\n")[2] + b"\n") * (LARGE // 20),
    "whole": lambda data: data * (LARGE // len(data)),
    "digits": lambda data: data + b"9" * LARGE,
    "letters": lambda data: b"a" * LARGE + data,
    "brackets": lambda data: data + b"(" * LARGE,
    "square": lambda data: data + b"[],".join([b"x = ["] + [b""] * (LARGE // 3)),
    "quotes": lambda data: data + b'"' * LARGE,
    "spaces": lambda data: data + b" " * LARGE + data,
    "newlines": lambda data: b"\n" * LARGE + data,
    "commas": lambda data: data + b"," * LARGE,
    "comments": lambda data: b"# x\n" * (LARGE // 4) + data,
    "elements": lambda data: data.replace(b"</sbml>", b"<a/>" * (LARGE // 4) + b"</sbml>"),
    "nothing": lambda data: b"\0" * LARGE,
}


def swollen(how: str, seeds: Sequence[bytes]) -> bytes:
    """The first of the seeds made large, but under ten megabytes."""
    return SWELLERS[how](seeds[0])[:LARGE]


LARGE_JSON: Final[dict[str, Callable[[], str]]] = {
    "lists": lambda: f"[{'[],' * (LARGE // 3)}[]]",
    "objects": lambda: f"[{'{},' * (LARGE // 3)}[]]",
    "numbers": lambda: f"[{'1.5,' * (LARGE // 4)}1]",
    "keys": lambda: f"{{{','.join(f'{chr(34)}{key}{chr(34)}:0' for key in range(LARGE // 11))}}}",
    "text": lambda: f'"{"x" * LARGE}"',
    "depth": lambda: "[" * (LARGE // 2) + "]" * (LARGE // 2),
    "digits": lambda: "9" * LARGE,
}
