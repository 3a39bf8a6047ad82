"""Compiled time loops: integrators and the sampled loop."""
