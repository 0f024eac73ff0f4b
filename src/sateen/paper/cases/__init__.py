"""The models, properties and configurations of the paper."""

from __future__ import annotations

from sateen.paper.cases.models import lacz, phosphorelay, sir

__all__ = ["lacz", "phosphorelay", "sir"]
