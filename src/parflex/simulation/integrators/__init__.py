"""Compiled time loops: the integrators, how they are run, and the sampled loop of a controller."""
