"""How the suite runs: every example that hypothesis draws is fixed by the test itself, so a run can be repeated."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Deadlines and the check for slow draws look at the clock, which a busy machine does not keep.
settings.register_profile(
    "reproducible", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# For a search with fresh examples: pytest --hypothesis-profile=search
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("reproducible")
