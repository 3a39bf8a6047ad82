"""Positions of many poses: Newton steps on loops, their machine code, and starts."""
