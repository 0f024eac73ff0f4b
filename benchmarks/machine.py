"""What every result says of the machine it was measured on."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from datetime import date
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def note(*packages: str) -> dict[str, Any]:
    """The processor, the versions of Python and of `packages`, and the day."""
    return {
        "date": date.today().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {package: _version(package) for package in packages},
    }


def write(name: str, result: dict[str, Any]) -> Path:
    """Keeps a result under benchmarks/results."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
