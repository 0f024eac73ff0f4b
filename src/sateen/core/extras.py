"""How a user installs the optional libraries, which are the extras of the package."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

# The libraries of each extra, as in pyproject.toml.
PACKAGES: Final = MappingProxyType(
    {
        "dask": ("dask", "distributed"),
        "gpu": ("jax[cuda13]",),
        "sbml": ("antimony", "python-libsbml"),
        "serve": ("starlette", "uvicorn"),
    }
)


def install_command(extra: str) -> str:
    """What to type. sateen is not on a package index yet, so the extra itself can only be named in a clone.

    >>> install_command("serve")
    "pip install starlette uvicorn, or in a clone  pip install '.[serve]'"
    """
    packages = " ".join(f"'{each}'" if "[" in each else each for each in PACKAGES[extra])
    return f"pip install {packages}, or in a clone  pip install '.[{extra}]'"
