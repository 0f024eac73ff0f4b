"""`system ... endsystem`: every operator against the chain of a model that is written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import sateen as st
from sateen.core.errors import ModelError
from sateen.engine.chain import explore
from sateen.model.model import Model
from sateen.model.prism import read_prism

ONE = "module one x : [0..2]; [a] x<2 -> 2 : (x'=x+1); [b] x>0 -> 3 : (x'=x-1); [] x=2 -> 0.5 : (x'=0); endmodule "
TWO = "module two y : [0..2]; [a] y<2 -> 5 : (y'=y+1); [c] y>0 -> 7 : (y'=y-1); endmodule "
THREE = "module three z : [0..1]; [b] z=0 -> 11 : (z'=1); [c] true -> 13 : (z'=1-z); endmodule "
MODULES = ONE + TWO + THREE


def chain_of(model: Model) -> dict[tuple[tuple[float, ...], tuple[float, ...]], float]:
    """The summed rate between every two states that can be reached, whatever the transitions are called."""
    values = model.values()
    start = np.array([list(model.initial(values).values())])
    chain, _ = explore(start, model, values, lambda _, size: np.zeros(size, np.bool_), 10_000)
    rates = chain.rates(values)
    assert rates is not None
    found: dict[tuple[tuple[float, ...], tuple[float, ...]], float] = {}
    for source, target, rate in zip(chain.sources, chain.targets, rates, strict=True):
        key = tuple(chain.states[source].tolist()), tuple(chain.states[target].tolist())
        found[key] = found.get(key, 0.0) + float(rate)
    return found


def composed(system: str, modules: str = MODULES) -> Model:
    return read_prism(f"ctmc {modules} system {system} endsystem").model


def by_hand(*commands: str) -> Model:
    """One module with every command that the composition comes to."""
    body = " ".join(f"{each};" for each in commands)
    return read_prism(f"ctmc module all x : [0..2]; y : [0..2]; z : [0..1]; {body} endmodule").model


A_ONE, A_TWO = "[] x<2 -> 2 : (x'=x+1)", "[] y<2 -> 5 : (y'=y+1)"
A_BOTH = "[] x<2 & y<2 -> 10 : (x'=x+1) & (y'=y+1)"
B_ONE, B_THREE = "[] x>0 -> 3 : (x'=x-1)", "[] z=0 -> 11 : (z'=1)"
B_BOTH = "[] x>0 & z=0 -> 33 : (x'=x-1) & (z'=1)"
C_TWO, C_THREE = "[] y>0 -> 7 : (y'=y-1)", "[] true -> 13 : (z'=1-z)"
C_BOTH = "[] y>0 -> 91 : (y'=y-1) & (z'=1-z)"
FALL = "[] x=2 -> 0.5 : (x'=0)"


@pytest.mark.parametrize(
    ("system", "commands"),
    [
        ("one || two || three", [A_BOTH, B_BOTH, C_BOTH, FALL]),
        ("one ||| two ||| three", [A_ONE, A_TWO, B_ONE, B_THREE, C_TWO, C_THREE, FALL]),
        ("(one || two) ||| three", [A_BOTH, B_ONE, B_THREE, C_TWO, C_THREE, FALL]),
        ("three || (two ||| one)", [A_ONE, A_TWO, B_BOTH, C_BOTH, FALL]),
        ("(one |[a]| two) |[c]| three", [A_BOTH, B_ONE, B_THREE, C_BOTH, FALL]),
        ("(one |[a,c]| two) ||| three", [A_BOTH, B_ONE, B_THREE, C_THREE, FALL]),  # one knows no c, so two waits
        ("one / {a} || two || three", [A_ONE, A_TWO, B_BOTH, C_BOTH, FALL]),
        ("(one || two) / {a, b} || three", [A_BOTH, B_ONE, B_THREE, C_BOTH, FALL]),
        ("one {a <- d} || two || three", [A_ONE, A_TWO, B_BOTH, C_BOTH, FALL]),
        ("one {b <- c} || two {c <- b} || three",
         [A_BOTH, "[] x>0 -> 39 : (x'=x-1) & (z'=1-z)", FALL, "[] y>0 & z=0 -> 77 : (y'=y-1) & (z'=1)"]),
        ("one {a <- b, b <- a} || two || three",
         ["[] x>0 & y<2 -> 15 : (x'=x-1) & (y'=y+1)", "[] x<2 & z=0 -> 22 : (x'=x+1) & (z'=1)", C_BOTH, FALL]),
        ("(one ||| two) {c <- b} || three",
         [A_ONE, A_TWO, B_BOTH, "[] y>0 & z=0 -> 77 : (y'=y-1) & (z'=1)", C_THREE, FALL]),
        ("((one)) {a <- x} {x <- a} || (two || three)", [A_BOTH, B_BOTH, C_BOTH, FALL]),
    ],
)  # fmt: skip
def test_a_composition_is_the_chain_that_is_written_out_by_hand(system, commands):
    found, expected = chain_of(composed(system)), chain_of(by_hand(*commands))
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected)


def test_a_renamed_module_takes_part_under_its_own_actions():
    modules = ONE + TWO + "module other = one [x=z, a=b, b=a] endmodule "
    commands = ["[] x<2 & y<2 -> 10 : (x'=x+1) & (y'=y+1)", "[] x>0 -> 3 : (x'=x-1)", FALL, "[] z=2 -> 0.5 : (z'=0)"]
    commands += ["[] z<2 -> 2 : (z'=z+1)", "[] z>0 -> 3 : (z'=z-1)", "[] y>0 -> 7 : (y'=y-1)"]
    body = "; ".join(commands)
    expected = read_prism(f"ctmc module all x : [0..2]; y : [0..2]; z : [0..2]; {body}; endmodule").model
    assert chain_of(composed("(one || two) ||| other", modules)) == pytest.approx(chain_of(expected))


def test_a_module_alone_and_a_composition_of_two_modules_without_a_common_action():
    assert composed("one", ONE) == read_prism(f"ctmc {ONE}").model
    alone = "module free w : bool; [] !w -> 1 : (w'=true); endmodule "
    for symbol in ("||", "|||", "|[b]|"):
        # b, which only one of them knows, is blocked by the last.
        model = composed(f"one {symbol} free", ONE + alone)
        assert len(model.transitions) == (3 if "[" in symbol else 4)


def test_probabilities_are_those_of_the_chain_by_hand():
    formula = st.stl("F[0, 0.3] (x == 2 & y == 1)")
    found = st.exact(composed("(one |[a]| two) / {b} || three"), formula, {})
    assert found == pytest.approx(st.exact(by_hand(A_BOTH, B_ONE, B_THREE, C_BOTH, FALL), formula, {}), abs=1e-9)


@pytest.mark.parametrize(
    ("system", "message", "place"),
    [
        ("one || two", "three takes no part in this system", "one ||"),
        ("one || two || three || one", "one takes part twice", "one end"),
        ("one || two || tree", "there is no module tree", "tree"),
        ("one || two ||| three", "||| needs brackets next to another operator", "||| three"),
        ("one |[a]| two || three", "|| needs brackets next to another operator", "|| three"),
        ("one || two ||", "the composition ends too soon", ""),
        ("one || (two || three", "this '(' is never closed", "(two"),
        ("one {a <- b, a <- c} || two || three", "a is renamed twice", "a <- c"),
        ("one / a || two || three", "'a' cannot stand here", "a ||"),
        ('"s" one || two || three', "systems with names are not supported", '"s"'),
        ("one + two", "'+' cannot stand here", "+ two"),
        ("", "this system has no module", ""),
    ],
)
def test_what_is_wrong_with_a_system_is_refused_by_name_and_place(system, message, place):
    text = f'ctmc\n{MODULES}\nsystem\n  {system} endsystem\nlabel "system" = x=1;'
    with pytest.raises(ModelError) as caught:
        read_prism(text)
    assert caught.value.message == message
    assert text[caught.value.position :].startswith(place)
    assert caught.value.line in (4, 3)


def test_rewards_follow_actions_as_the_system_names_them():
    rewards = " ".join(f'rewards "{name}" [{name}] true : 1; endrewards' for name in ("a", "d"))
    rewards += ' rewards "none" [] true : 1; endrewards'
    text = f"ctmc {MODULES} {rewards} system one {{a <- d}} || two / {{c}} || three endsystem"
    state = {"x": 1, "y": 1, "z": 0}
    paid = {each.name: float(each.rate.expression.evaluate(state)) for each in read_prism(text).scope.rewards}
    assert paid == {"a": 5.0, "d": 2.0, "none": 7.0}


def test_too_many_combinations_are_refused():
    module = "module m0 x0 : [0..9]; " + "".join(f"[a] x0={n} -> 1 : (x0'=0); " for n in range(10)) + "endmodule "
    copies = "".join(f"module m{n} = m0 [x0=x{n}] endmodule " for n in range(1, 6))
    with pytest.raises(ModelError, match="the action a leads to more transitions than can be run"):
        read_prism(f"ctmc {module}{copies} system {' || '.join(f'm{n}' for n in range(6))} endsystem")
