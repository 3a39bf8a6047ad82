"""Sensors of passive joints as data: the equations of the redundant form."""
