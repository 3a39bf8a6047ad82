"""Trajectories in time: paths, time laws, prescribed motions, inputs, time-optimal motions."""
