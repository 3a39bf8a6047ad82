"""Mistakes of records that the numbers of the file show: units, signs, whole turns, columns."""
