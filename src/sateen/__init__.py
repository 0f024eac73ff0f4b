"""The probability that a stochastic model satisfies a temporal property, as a function of the model's parameters.

The public names, in the order of the work: a Model and a Space of its parameters, a Formula, a Path and its Verdict;
Observations of many runs, a Posterior learned from them, the Guarantee that its intervals hold; Regions, a
Certificate and a BestPoint, the decisions that rest on them; and a Study, which goes the whole way from one file.
Each is loaded when it is first asked for, so that `import sateen` costs next to nothing.

>>> import sateen as st
>>> st.stl("(I > 0) U[100, 120] (I == 0)").horizon
120.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sateen.core.registry import provide
from sateen.core.version import VERSION as __version__

__all__ = [  # noqa: RUF022 (the order of the work, not of the alphabet)
    "Model",
    "Space",
    "Range",
    "Points",
    "Formula",
    "Reward",
    "stl",
    "simulate",
    "Path",
    "monitor",
    "Verdict",
    "explain",
    "Explanation",
    "Ensemble",
    "observe",
    "observe_held_out",
    "Observations",
    "open_pool",
    "Pool",
    "replay",
    "estimate",
    "Estimate",
    "RewardEstimate",
    "exact",
    "learn",
    "Learner",
    "make_learner",
    "EPGP",
    "SVIGP",
    "SVIBNN",
    "LaplaceNet",
    "Posterior",
    "posterior_from",
    "Prediction",
    "Claim",
    "Predictor",
    "score",
    "Score",
    "plan",
    "Plan",
    "calibrate",
    "Truth",
    "Guarantee",
    "bound_error",
    "ErrorBound",
    "decide",
    "Regions",
    "refine",
    "Refinement",
    "Threshold",
    "Width",
    "Error",
    "Optimum",
    "certify",
    "plan_certificate",
    "Certificate",
    "bounds",
    "BoundMap",
    "optimise",
    "BestPoint",
    "sensitivity",
    "Sensitivity",
    "load",
    "Study",
    "Result",
    "merge",
    "Merged",
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
    "PoolError",
    "UnknownVerdictError",
    "Interrupted",
    "SateenWarning",
    "ModelWarning",
    "__version__",
]

# What objects of lower rooms call by name; each module is imported at the first call.
provide(
    {
        "follow a run": "sateen.engine.run:follow",
        "save observations": "sateen.files.observations:save",
        "load observations": "sateen.files.observations:load",
        "usual progress": "sateen.cli.progress:usual_progress",
        "write text": "sateen.files.atomic:write_text",
        "write observations as csv": "sateen.files.observations:write_csv",
        "read observations from csv": "sateen.files.observations:read_csv",
        "save guarantee": "sateen.guarantee.archive:write_guarantee",
        "save certificate": "sateen.decision.archive:write_certificate",
        "check certificate": "sateen.decision.recheck:check",
        "inline picture": "sateen.plot.inline:svg",
        "plot explanation": "sateen.plot.figures:explanation",
        "plot observations": "sateen.plot.figures:observations",
        "plot ensemble": "sateen.plot.figures:ensemble",
        "plot path": "sateen.plot.figures:path",
        "plot posterior": "sateen.plot.learning:learned",
        "plot prediction": "sateen.plot.learning:prediction",
        "plot regions": "sateen.plot.decision:regions",
        "plot bounds": "sateen.plot.decision:bounds",
        "plot sensitivity": "sateen.plot.decision:sensitivity",
        "plot refinement": "sateen.plot.decision:refinement",
        "plot record": "sateen.plot.learning:record",
        "learner name": "sateen.learning.registry:learner_name",
        "update report": "sateen.report.report:update_report",
        "save posterior": "sateen.learning.stored:save",
        "posterior parts": "sateen.learning.stored:posterior_parts",
        "posterior from parts": "sateen.learning.stored:posterior_from_parts",
    }
)

if TYPE_CHECKING:
    from sateen.assess.score import Score, score
    from sateen.core.ensemble import Ensemble
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
        PoolError,
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
    from sateen.core.prediction import Claim, Learner, Posterior, Prediction, Predictor
    from sateen.core.space import Points, Range, Space
    from sateen.decision.bounds import BoundMap, bounds
    from sateen.decision.certificate import Certificate
    from sateen.decision.certify import certify, plan_certificate
    from sateen.decision.goals import Error, Optimum, Threshold, Width
    from sateen.decision.optimise import BestPoint, optimise
    from sateen.decision.refine import Refinement, refine
    from sateen.decision.regions import Regions, decide
    from sateen.decision.sensitivity import Sensitivity, sensitivity
    from sateen.engine.exact import exact
    from sateen.engine.run import replay
    from sateen.guarantee.error_bound import ErrorBound, bound_error
    from sateen.guarantee.guarantee import Guarantee, calibrate
    from sateen.guarantee.plan import Plan, plan
    from sateen.guarantee.truth import Truth
    from sateen.learning.default import learn
    from sateen.learning.functions import posterior_from
    from sateen.learning.gp.recipes import EPGP, SVIGP
    from sateen.learning.networks.recipes import SVIBNN, LaplaceNet
    from sateen.learning.registry import make_learner
    from sateen.learning.stored import load
    from sateen.logic.formula import Formula
    from sateen.logic.monitor import Explanation, explain, monitor
    from sateen.logic.parser import stl
    from sateen.logic.rewards import Reward
    from sateen.model.model import Model
    from sateen.pools.pool import Pool, open_pool
    from sateen.sampling.ensemble import simulate
    from sateen.sampling.estimate import Estimate, estimate
    from sateen.sampling.observe import observe, observe_held_out
    from sateen.sampling.rewards import RewardEstimate
    from sateen.study.merge import Merged, merge
    from sateen.study.result import Result
    from sateen.study.study import Study
else:
    # Hidden from type checkers, to whom every name would exist otherwise. The errors live in core.errors.
    _HOMES: Final = {
        "Model": "sateen.model.model",
        "Space": "sateen.core.space",
        "Range": "sateen.core.space",
        "Points": "sateen.core.space",
        "Formula": "sateen.logic.formula",
        "Reward": "sateen.logic.rewards",
        "stl": "sateen.logic.parser",
        "simulate": "sateen.sampling.ensemble",
        "Path": "sateen.core.path",
        "Ensemble": "sateen.core.ensemble",
        "monitor": "sateen.logic.monitor",
        "Verdict": "sateen.core.path",
        "explain": "sateen.logic.monitor",
        "Explanation": "sateen.logic.monitor",
        "observe": "sateen.sampling.observe",
        "observe_held_out": "sateen.sampling.observe",
        "Observations": "sateen.core.observations",
        "replay": "sateen.engine.run",
        "estimate": "sateen.sampling.estimate",
        "Estimate": "sateen.sampling.estimate",
        "RewardEstimate": "sateen.sampling.rewards",
        "exact": "sateen.engine.exact",
        "learn": "sateen.learning.default",
        "Learner": "sateen.core.prediction",
        "make_learner": "sateen.learning.registry",
        "EPGP": "sateen.learning.gp.recipes",
        "SVIGP": "sateen.learning.gp.recipes",
        "SVIBNN": "sateen.learning.networks.recipes",
        "LaplaceNet": "sateen.learning.networks.recipes",
        "Posterior": "sateen.core.prediction",
        "posterior_from": "sateen.learning.functions",
        "Prediction": "sateen.core.prediction",
        "Claim": "sateen.core.prediction",
        "Predictor": "sateen.core.prediction",
        "score": "sateen.assess.score",
        "Score": "sateen.assess.score",
        "plan": "sateen.guarantee.plan",
        "Plan": "sateen.guarantee.plan",
        "calibrate": "sateen.guarantee.guarantee",
        "Guarantee": "sateen.guarantee.guarantee",
        "Truth": "sateen.guarantee.truth",
        "bound_error": "sateen.guarantee.error_bound",
        "ErrorBound": "sateen.guarantee.error_bound",
        "decide": "sateen.decision.regions",
        "Regions": "sateen.decision.regions",
        "refine": "sateen.decision.refine",
        "Refinement": "sateen.decision.refine",
        "Threshold": "sateen.decision.goals",
        "Width": "sateen.decision.goals",
        "Error": "sateen.decision.goals",
        "Optimum": "sateen.decision.goals",
        "certify": "sateen.decision.certify",
        "plan_certificate": "sateen.decision.certify",
        "Certificate": "sateen.decision.certificate",
        "bounds": "sateen.decision.bounds",
        "BoundMap": "sateen.decision.bounds",
        "optimise": "sateen.decision.optimise",
        "BestPoint": "sateen.decision.optimise",
        "sensitivity": "sateen.decision.sensitivity",
        "Sensitivity": "sateen.decision.sensitivity",
        "load": "sateen.learning.stored",
        "open_pool": "sateen.pools.pool",
        "Pool": "sateen.pools.pool",
        "Study": "sateen.study.study",
        "Result": "sateen.study.result",
        "merge": "sateen.study.merge",
        "Merged": "sateen.study.merge",
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
