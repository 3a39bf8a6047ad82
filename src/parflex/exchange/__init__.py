"""Import and export: URDF, MJCF, SYMORO, FMU."""
