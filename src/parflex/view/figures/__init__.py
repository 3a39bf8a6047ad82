"""Figures of robots, runs, modes, maps and studies."""
