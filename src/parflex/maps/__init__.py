"""Sweeps over many poses: positions, natural frequencies and maps of a workspace."""
