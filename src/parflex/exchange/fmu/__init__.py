"""FMU export for FMI 2.0 and 3.0, from generated C."""
