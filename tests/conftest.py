"""How the suite runs: examples that hypothesis draws are fixed by the test itself, so that a run can be repeated."""

from __future__ import annotations

import os
import signal
import sys

from hypothesis import HealthCheck, settings

# Deadlines and the check for slow draws look at the clock, which a busy machine does not keep.
settings.register_profile(
    "reproducible", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# For a search with fresh examples: pytest --hypothesis-profile=search
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("reproducible")

# In the background, and in the workers of pytest-xdist, SIGINT is ignored from birth, in child processes too; tests of
# Ctrl-C press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Beside other workers, the linear-algebra library of each has one thread: more would wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ and "numpy" not in sys.modules:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
