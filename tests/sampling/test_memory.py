"""Memory does not grow with the number of runs, and with the number of points only as the counts do."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_a_million_points_of_twenty_runs_need_little_beside_their_counts() -> None:
    script = textwrap.dedent("""
        import sateen as st

        def megabytes(key):
            with open("/proc/self/status") as stream:
                return next(int(line.split()[1]) for line in stream if line.startswith(key)) / 1024

        model = st.Model.parse("species A = 3\\nA -> 0 @ mass_action(k)")
        formula = st.stl("F[0, 1] A == 0")
        space = st.Space(k=(0.5, 4.0))
        st.observe(model, formula, space.uniform(10, seed=1), 2, seed=1)  # what is loaded is loaded
        points = space.uniform(1_000_000, seed=1)
        before = megabytes("VmRSS")
        with open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")  # the peak is reset
        obs = st.observe(model, formula, points, 20, seed=2, workers=2)
        peak = megabytes("VmHWM")
        counts = sum(array.nbytes for array in (obs.satisfied, obs.undecided, obs.trials, obs.origin)) / 2**20
        assert obs.trials.sum() == 20_000_000
        print(peak - before, counts)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    grown, counts = map(float, done.stdout.split())
    assert grown - counts < 300
