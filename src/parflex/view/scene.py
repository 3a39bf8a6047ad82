"""What a viewer shows of a robot, as plain arrays."""

from __future__ import annotations

from parflex.view.skeleton import ModeShape, mode_shape_points

__all__ = ["ModeShape", "mode_shape_points"]
