"""Robots as FMUs: functional mock-up units of FMI 2.0 and 3.0, from generated C."""
