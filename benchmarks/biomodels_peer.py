"""Runs in an environment that has libroadrunner: rates, stoichiometries and solutions of the ODEs, as JSON.

Reads one request from its input: {"file", "states": [{species: amount}], "times": [..]}; writes the answer.
"""

from __future__ import annotations

import json
import sys

import roadrunner


def main() -> None:
    roadrunner.Logger.setLevel(roadrunner.Logger.LOG_ERROR)
    asked = json.load(sys.stdin)
    runner = roadrunner.RoadRunner(asked["file"])
    model = runner.model
    floating, reactions = model.getFloatingSpeciesIds(), model.getReactionIds()
    rates = []
    for state in asked["states"]:
        runner.resetToOrigin()
        named = [(floating.index(name), amount) for name, amount in state.items() if name in floating]
        model.setFloatingSpeciesAmounts([place for place, _ in named], [amount for _, amount in named])
        for name in state.keys() & set(model.getBoundarySpeciesIds()):  # which events set
            runner[name] = state[name]
        rates.append(dict(zip(reactions, map(float, model.getReactionRates()), strict=True)))
    matrix = runner.getFullStoichiometryMatrix()
    stoichiometry = {
        name: {one: float(matrix[row, column]) for row, one in enumerate(matrix.rownames) if matrix[row, column]}
        for column, name in enumerate(matrix.colnames)
    }
    solution = []
    if asked["times"]:
        runner.resetToOrigin()
        runner.integrator.absolute_tolerance, runner.integrator.relative_tolerance = 1e-12, 1e-9
        runner.timeCourseSelections = ["time", *asked["species"]]
        solution = [list(map(float, row)) for row in runner.simulate(times=[0.0, *asked["times"]])][1:]
    json.dump({"rates": rates, "stoichiometry": stoichiometry, "solution": solution}, sys.stdout)


main()
