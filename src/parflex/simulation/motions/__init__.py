"""Kinds of motions and laws of time: what a table of a motion becomes, for motors and for frames."""
