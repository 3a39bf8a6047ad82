"""Time-optimal motions along a path, within limits of speed, acceleration and effort of the rigid robot."""
