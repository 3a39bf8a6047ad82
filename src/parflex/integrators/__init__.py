"""Compiled time integrators: Gauss, generalized-alpha and explicit Runge-Kutta methods."""
