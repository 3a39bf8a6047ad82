"""Robots in files of other programs, read in: URDF with loops beside it, MuJoCo's XML, SYMORO's PAR."""
