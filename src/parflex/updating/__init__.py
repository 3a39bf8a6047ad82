"""Model updating from measured vibration."""
