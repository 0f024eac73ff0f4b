"""SIGKILL at any moment of a refinement: the next run goes on, and ends with the same bits."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
import sateen as st

model = st.Model.parse("species A = 10\\nA -> 0 @ mass_action(k)")
goal = st.Threshold(0.5, undecided=0.004)
space = st.Space(k=(0.1, 4.0), unused=(0.0, 1.0))
store = sys.argv[1] if len(sys.argv) > 1 else None
print("working", flush=True)
done = st.refine(model, "F[0, 2] A == 0", space, goal=goal, budget=300_000, seed=3, store=store)
mean, std = done.posterior.latent_moments(space.sobol(64, seed=1))
print(done.observations.fingerprint, len(done.rounds), mean.tobytes().hex(), std.tobytes().hex())
"""


def _started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *arguments], stdout=subprocess.PIPE, text=True)


def test_kills_at_many_moments_leave_what_an_undisturbed_run_leaves(tmp_path):
    undisturbed, start = _started(), time.perf_counter()
    wanted = undisturbed.communicate(timeout=300)[0].split("\n")[1]
    seconds = time.perf_counter() - start
    store = str(tmp_path / "runs.db")
    kills = 0
    for share in (0.2, 0.35, 0.5, 0.65, 0.8):
        process = _started(store)
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(timeout=0.5 * share * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
    assert kills
    assert _started(store).communicate(timeout=300)[0].split("\n")[1] == wanted
