"""The probability that a stochastic model satisfies a temporal property, as a function of the model's parameters.

The public names, in the order of the work: a Model and a Space of its parameters, a Formula, a Path, its Verdict.
Each is loaded when it is first asked for, so that `import sateen` costs next to nothing.

>>> import sateen as st
>>> st.stl("(I > 0) U[100, 120] (I == 0)").horizon
120.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022 (the order of the work, not of the alphabet)
    "Model",
    "Space",
    "Range",
    "Points",
    "Formula",
    "stl",
    "simulate",
    "Path",
    "monitor",
    "Verdict",
    "explain",
    "Explanation",
    "observe",
    "Observations",
    "replay",
    "estimate",
    "Estimate",
    "exact",
    "SateenError",
    "InputError",
    "TextError",
    "ExpressionError",
    "ModelError",
    "FormulaError",
    "SpaceError",
    "PathError",
    "MissingValueError",
    "ExactError",
    "SimulationError",
    "StoreError",
    "UnknownVerdictError",
    "Interrupted",
    "SateenWarning",
    "ModelWarning",
    "__version__",
]

if TYPE_CHECKING:
    from sateen.core.errors import (
        ExactError,
        ExpressionError,
        FormulaError,
        InputError,
        Interrupted,
        MissingValueError,
        ModelError,
        ModelWarning,
        PathError,
        SateenError,
        SateenWarning,
        SimulationError,
        SpaceError,
        StoreError,
        TextError,
        UnknownVerdictError,
    )
    from sateen.core.observations import Observations
    from sateen.core.path import Path, Verdict
    from sateen.core.space import Points, Range, Space
    from sateen.engine.exact import exact
    from sateen.engine.run import replay
    from sateen.engine.simulate import simulate
    from sateen.logic.formula import Formula
    from sateen.logic.monitor import Explanation, explain, monitor
    from sateen.logic.parser import stl
    from sateen.model.model import Model
    from sateen.sampling.estimate import Estimate, estimate
    from sateen.sampling.observe import observe
else:
    # Hidden from type checkers, to whom every name would exist otherwise. The errors live in core.errors.
    _HOMES: Final = {
        "Model": "sateen.model.model",
        "Space": "sateen.core.space",
        "Range": "sateen.core.space",
        "Points": "sateen.core.space",
        "Formula": "sateen.logic.formula",
        "stl": "sateen.logic.parser",
        "simulate": "sateen.engine.simulate",
        "Path": "sateen.core.path",
        "monitor": "sateen.logic.monitor",
        "Verdict": "sateen.core.path",
        "explain": "sateen.logic.monitor",
        "Explanation": "sateen.logic.monitor",
        "observe": "sateen.sampling.observe",
        "Observations": "sateen.core.observations",
        "replay": "sateen.engine.run",
        "estimate": "sateen.sampling.estimate",
        "Estimate": "sateen.sampling.estimate",
        "exact": "sateen.engine.exact",
    }

    def __getattr__(name: str) -> object:
        import importlib

        if name not in __all__:
            from sateen.core.errors import nearest

            hint = nearest(name, __all__)
            raise AttributeError(f"sateen has no {name}" + (f"; {hint}" if hint else ""), name=name)
        value = getattr(importlib.import_module(_HOMES.get(name, "sateen.core.errors")), name)
        globals()[name] = value  # from now on it is found without a call
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
