"""Studies with numbers, names and sizes that nobody means: refused at their place, or read, and never anything else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import sateen as st
from command_line import sateen, words
from small_studies import changed

DIGITS = "9" * 5000
LARGE = "9" * 400
SEED = ("seed = 7", "seed = {}")
RANGE = ("[0.1, 2]", "[0.1, {}]")
FIXED = ("[0.1, 2]", "{}")
END = ('"F[0, 2] A == 0"', '{{ formula = "F[0, 2] A == 0", end = {} }}')
POINTS = ("points = 24", "points = {}")
BUDGET = ("points = 40, runs = 20", "budget = {}")
POPULATION = ("[observe]", "[observe]\nmax_population = {}")


@pytest.mark.parametrize("number", [DIGITS, f"-{DIGITS}", LARGE, str(2**70), str(2**63), str(-(2**63) - 1)])
@pytest.mark.parametrize("place", [SEED, RANGE, FIXED, END, POINTS, BUDGET, POPULATION])
def test_a_whole_number_beyond_64_bits_is_refused_at_its_line(place: tuple[str, str], number: str) -> None:
    text = changed((place[0], place[1].format(number)))
    with pytest.raises(st.InputError, match="a whole number has at most 64 bits") as caught:
        st.Study.parse(text)
    assert isinstance(caught.value, st.TextError)
    assert number[-50:] in text.splitlines()[caught.value.line - 1]
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[observe]", "[observe]\nmax_population = 9007199254740993"), "not above 9.00719925474099e"),
        (("[observe]", "[observe]\nmax_time = nan"), "max_time"),
        (("points = 24, runs = 20", "points = 1000000000000, runs = 20"), "more than 100,000,000 points"),
        (("points = 24, runs = 20", "points = 1000000000000, runs = 1000000000000"), r"more than 1e\+15 runs"),
        (("points = 40, runs = 20", "points = 1000000000000, runs = 1000000"), r"calibrate: more than 1e\+15 runs"),
        (("points = 40, runs = 20", "budget = 9223372036854775807"), r"budget: more than 1e\+15 runs"),
        (("k = [0.1, 2]", "k = [0.1, nan]"), "a range has two numbers"),
        (("k = [0.1, 2]", "k = inf"), "a range has two numbers"),
        (("k = [0.1, 2]", "k = 1e400"), "a range has two numbers"),
        (("[learn]", "[learn]\n" + ".".join("a" * 40) + " = 1"), "a key has more than 32 parts"),
        (("[learn]", "[" + ".".join("a" * 40) + "]\n[learn]"), "a key has more than 32 parts"),
        (("[learn]", "[learn]\nx = " + "[" * 3000 + "]" * 3000), "nested too deeply"),
        (("[learn]", "[learn]\nx = " + "{a=" * 3000 + "1" + "}" * 3000), "nested too deeply"),
        (("[property]", "[property]\n" + "".join(f'p{n} = "A > 1"\n' for n in range(1000))), "at most 1,000 are read"),
    ],
)
def test_what_nobody_means_is_refused_in_words(change: tuple[str, str], said: str) -> None:
    with pytest.raises(st.InputError, match=said):
        st.Study.parse(changed(change))


def test_a_grid_of_many_axes_is_counted_without_overflow() -> None:
    model = (
        "species A = 5\n" + "".join(f"A -> 0 @ mass_action(k{n})\n" for n in range(40)) + "A -> 0 @ mass_action(k)\n"
    )
    axes = "".join(f"k{n} = [0, 1]\n" for n in range(40))
    text = changed(("species A = 5\nA -> 0 @ mass_action(k)\n", model), ("k = [0.1, 2]", f"k = [0.1, 2]\n{axes}"))
    grid = ("points = 24, runs = 20", 'design = "grid", points = 1000000000, runs = 20')
    with pytest.raises(st.InputError, match=r"observe.train: more than 1e\+15 runs"):
        st.Study.parse(changed(grid, text=text))


def test_no_end_of_time_is_no_cap() -> None:
    assert dict(st.Study.parse(changed(("[observe]", "[observe]\nmax_time = inf"))).caps) == {}


def test_long_values_are_shortened_in_messages() -> None:
    for change in (("seed = 7", f"seed = '{'x' * 100_000}'"), ("[learn]", f"[learn]\n{'k' * 5000} = 1")):
        with pytest.raises(st.InputError) as caught:
            st.Study.parse(changed(change))
        assert len(str(caught.value)) < 3000


def test_a_study_file_is_a_regular_file_of_limited_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "large.toml").write_text("#" * 300_000)
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    for name, said in {
        "pipe": "is not a regular file",
        "endless": "is not a regular file",
        "folder": "is a folder",
        "large": "has 300,000 bytes, and at most 262,144 are read",
        "latin": "is not text in UTF-8",
        "absent": "No such file",
    }.items():
        with pytest.raises(st.InputError, match=said):
            st.Study.load(tmp_path / f"{name}.toml")
    with pytest.raises(st.InputError, match="cannot be the name of a file"):
        st.Study.load("a\0b.toml")
    with pytest.raises(st.InputError, match="a study of 300,000 characters"):
        st.Study.parse("#" * 300_000)


@pytest.mark.parametrize("address", ["a\\u0000b.py:f", "box.py:f\\u0000", "a\\u0000b:f"])
def test_a_nul_in_the_address_of_a_callable_is_refused(address: str) -> None:
    model = changed().split("[model]")[1].split("[space]")[0]
    with pytest.raises(st.InputError, match=r"model\.callable"):
        st.Study.parse(changed((model, f'\ncallable = "{address}"\n\n')))


def test_properties_are_read_from_regular_files_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.props")
    (tmp_path / "endless.props").symlink_to("/dev/zero")
    for name in ("pipe", "endless"):
        assert "is not a regular file" in words(sateen("inspect", tmp_path / f"{name}.props", code=1))


def test_a_width_that_no_runs_reach_is_refused(tmp_path: Path) -> None:
    marginal = ('normaliser = "constant"', 'normaliser = "predictive"\nmarginal = true')  # is searched for sooner
    study = st.Study.parse(changed(("points = 40, runs = 20", "width = 1e-300"), marginal))
    with pytest.raises(st.InputError, match="no calibration of this posterior gives a mean width of 1e-300"):
        study.run(tmp_path / "out")


def test_a_test_that_cannot_be_names_its_option() -> None:
    command = ("check", "examples/sir.sateen", "--at", "beta=0.1,gamma=0.05", "-p", "F[0, 1] I > 9", "--test")
    folder = Path(__file__).parents[2]
    asked = [str(folder / each) if each.startswith("examples") else each for each in command]
    assert "a smaller --indifference above 0" in words(sateen(*asked, "P>0.5", "--indifference", "nan", code=1))
    assert "--error is a probability" in words(sateen(*asked, "P>0.5", "--error", "2", code=1))
