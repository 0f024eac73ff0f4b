"""The peers that `ssa.py` races: each takes a model in plain numbers; `run(n)` returns the CPU seconds of n runs."""

from __future__ import annotations

import os
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sateen as st

PROTOTYPES = Path(__file__).resolve().parents[2] / "shared" / "prototypes"


@dataclass(frozen=True)
class Race:
    """A model whose rates are mass action with known constants, until when, and at how many times it is seen."""

    name: str
    model: st.Model
    theta: dict[str, float]
    until: float
    points: int = 2

    def constants(self) -> list[float]:
        """The rate of each reaction when there is exactly one way to choose its reactants."""
        values = self.model.values(self.theta)
        found = []
        for transition in self.model.transitions:
            counts = dict.fromkeys(self.model.species, 0) | dict(transition.consumed)
            found.append(float(transition.rate.evaluate({**values, **counts})))
        return found

    def initial(self) -> list[int]:
        return [int(count) for count in self.model.initial(self.model.values(self.theta)).values()]


class GillesPy2:
    """GillesPy2's compiled C++ solver, no monitor; the CPU time of a call, its own process included.

    `solver_seconds` is the part that the solver's own process took in the last call.
    """

    name = "GillesPy2 C++"

    def __init__(self, race: Race) -> None:
        import gillespy2

        model = gillespy2.Model(name=f"race_{race.name}")
        species = {
            name: gillespy2.Species(name=f"x_{name}", initial_value=count, mode="discrete")
            for name, count in zip(race.model.species, race.initial(), strict=True)
        }
        model.add_species(list(species.values()))
        constants = race.constants()
        parameters = [gillespy2.Parameter(name=f"c{j}", expression=repr(c)) for j, c in enumerate(constants)]
        model.add_parameter(parameters)
        for j, transition in enumerate(race.model.transitions):
            reactants = {species[name]: count for name, count in transition.consumed}
            products = {species[name]: count for name, count in transition.produced}
            propensity = "*".join([f"c{j}", *(_ways(f"x_{name}", count) for name, count in transition.consumed)])
            model.add_reaction(
                gillespy2.Reaction(name=f"r{j}", reactants=reactants, products=products, propensity_function=propensity)
            )
        model.timespan(gillespy2.TimeSpan(np.linspace(0.0, race.until, race.points)))
        # It builds with the base interpreter of a virtual environment, which must find the environment's SCons.
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        began = time.perf_counter()
        self.model = model
        self.solver = gillespy2.SSACSolver(model=model)
        self.run(1)
        self.compile_seconds = time.perf_counter() - began

    def run(self, trajectories: int) -> float:
        child, caller = _children(), time.process_time()
        self.model.run(solver=self.solver, number_of_trajectories=trajectories, seed=7)
        self.solver_seconds = _children() - child
        return self.solver_seconds + time.process_time() - caller


class RoadRunner:
    """libRoadRunner's Gillespie integrator: two output points, the model compiled once, one call a trajectory."""

    name = "libRoadRunner"

    def __init__(self, race: Race) -> None:
        import roadrunner

        began = time.perf_counter()
        self.runner = roadrunner.RoadRunner(_sbml(race))
        self.runner.setIntegrator("gillespie")
        integrator = self.runner.getIntegrator()
        integrator.seed = 7
        integrator.variable_step_size = False
        integrator.nonnegative = True
        self.until = race.until
        self.run(1)
        self.compile_seconds = time.perf_counter() - began

    def run(self, trajectories: int) -> float:
        began = time.process_time()
        for _ in range(trajectories):
            self.runner.reset()
            self.runner.simulate(0, self.until, 2)
        return time.process_time() - began


class Prototype:
    """The lanes kernel that was measured before there was a project, from ../shared/prototypes."""

    name = "prototype lanes"

    def __init__(self, race: Race) -> None:
        sys.path.insert(0, str(PROTOTYPES))
        lanes: Any = __import__("kernel_lanes")
        models: Any = __import__("kernel_models")
        reactions = [
            (_side(transition.consumed), _side(transition.produced), repr(constant))
            for transition, constant in zip(race.model.transitions, race.constants(), strict=True)
        ]
        began = time.perf_counter()
        made = models.M(race.name, list(race.model.species), race.initial(), {}, reactions, race.until)
        self.kernel = lanes.build(lanes.gen_flat(made, 16), **lanes.OPT)
        self.until = race.until
        self.run(16)
        self.compile_seconds = time.perf_counter() - began

    def run(self, trajectories: int) -> float:
        counts = np.zeros(4, np.int64)
        began = time.process_time()
        self.kernel(np.zeros((4, 0)), trajectories // 4, self.until, 7, counts)
        return time.process_time() - began


def _children() -> float:
    """CPU seconds of the processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _ways(name: str, count: int) -> str:
    return name if count == 1 else f"{name}*({name}-1)*0.5"


def _side(pairs: tuple[tuple[str, int], ...]) -> str:
    return "+".join("+".join([name] * count) for name, count in pairs) or "0"


def _sbml(race: Race) -> str:
    """The least SBML that says the model: amounts, kinetic laws in MathML."""
    species = "".join(
        f'<species id="x_{name}" compartment="c" initialAmount="{count}" hasOnlySubstanceUnits="true" '
        'boundaryCondition="false" constant="false"/>'
        for name, count in zip(race.model.species, race.initial(), strict=True)
    )
    reactions = ""
    for j, (transition, constant) in enumerate(zip(race.model.transitions, race.constants(), strict=True)):
        factors = f"<cn>{constant!r}</cn>"
        for name, count in transition.consumed:
            factors += f"<ci>x_{name}</ci>"
            if count == 2:
                factors += f"<apply><minus/><ci>x_{name}</ci><cn>1</cn></apply><cn>0.5</cn>"
        law = f"<apply><times/>{factors}</apply>"
        sides = "".join(
            f"<listOf{kind}>"
            + "".join(f'<speciesReference species="x_{n}" stoichiometry="{k}" constant="true"/>' for n, k in pairs)
            + f"</listOf{kind}>"
            for kind, pairs in (("Reactants", transition.consumed), ("Products", transition.produced))
            if pairs
        )
        reactions += (
            f'<reaction id="r{j}" reversible="false" fast="false">{sides}<kineticLaw>'
            f'<math xmlns="http://www.w3.org/1998/Math/MathML">{law}</math></kineticLaw></reaction>'
        )
    return (
        '<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1"><model id="m">'
        '<listOfCompartments><compartment id="c" size="1" constant="true"/></listOfCompartments>'
        f"<listOfSpecies>{species}</listOfSpecies><listOfReactions>{reactions}</listOfReactions></model></sbml>"
    )
