"""The version of sateen, where every room can read it."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
