"""How many processors there are, and linear algebra on one thread.

A fit calls the linear-algebra library thousands of times with small matrices. Its threads then wait for each other
more than they work: on two busy cores a fit that takes 0.3 CPU seconds on one thread was seen to take 6 on two. On one
thread the time does not depend on what else the machine does, nor do results on how many cores it has.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def on_one_thread(work: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The same work, with the linear-algebra library kept to one thread for as long as it takes."""

    @wraps(work)
    def limited(*args: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        with _libraries().limit(limits=1, user_api="blas"):
            return work(*args, **named)

    return limited


@cache
def _libraries() -> ThreadpoolController:
    """The linear-algebra libraries of numpy and scipy, which are searched for once."""
    import scipy.linalg  # noqa: F401 (loads a second library, which must be known too)
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]

    return ThreadpoolController()
