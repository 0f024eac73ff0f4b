"""The recipe for TLS in docs/scale.md, on this machine: certificates by openssl, a scheduler, a worker and a client."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import Cluster

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kills groups of processes"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]

DOCS = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
QUESTION = """
import sys
import sateen as st
from sateen.pools import cluster

cluster._CONNECTING = sys.argv[2]
model = st.Model.parse("species A = 10\\nA -> 0 @ mass_action(k)")
question = model, st.stl("F[0, 1] A == 0"), st.Space(k=(0.5, 4.0)).grid(20), 100
try:
    there = st.observe(*question, seed=1, executor=sys.argv[1])
except st.PoolError as error:
    sys.exit(f"refused: {error}")
assert there == st.observe(*question, seed=1)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("tls")
    certificates, settings = re.findall(r"```text\n(.*?)```", DOCS.read_text().split("## TLS")[1], re.DOTALL)[:2]
    for line in certificates.splitlines():
        subprocess.run(shlex.split(line), cwd=folder, check=True, capture_output=True)
    (folder / "distributed.yaml").write_text(settings)
    with Cluster(folder, 1, {"DASK_CONFIG": str(folder)}, protocol="tls") as cluster:
        yield cluster


def ask(cluster: Cluster, settings: Path, patience: str) -> subprocess.CompletedProcess[str]:
    """The same question there and here, by a process that has these settings of dask."""
    address = json.loads(cluster.file.read_text())["address"]
    assert address.startswith("tls://127.0.0.1:")
    return subprocess.run(
        [sys.executable, "-c", QUESTION, address, patience],
        cwd=cluster.folder,
        env={**os.environ, "DASK_CONFIG": str(settings)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_recipe_makes_the_same_runs(cluster: Cluster) -> None:
    done = ask(cluster, cluster.folder, "60s")
    assert done.returncode == 0, done.stderr


def test_a_client_without_the_certificate_is_told(cluster: Cluster, tmp_path: Path) -> None:
    began = time.monotonic()
    done = ask(cluster, tmp_path, "600s")
    assert done.returncode == 1
    assert "cannot be reached: dask has no settings of TLS here\n  name the certificates under distri" in done.stderr
    assert "Traceback" not in done.stderr
    assert time.monotonic() - began < 300
