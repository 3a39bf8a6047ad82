"""Robots for other programs: files of MuJoCo and URDF, and FMUs."""
