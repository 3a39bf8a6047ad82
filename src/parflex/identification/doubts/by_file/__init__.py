"""Mistakes of records that the numbers of the file show: units, signs, zeros, columns, gravity."""
