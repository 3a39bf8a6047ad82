"""Columns of a run that are asked for beside those of every run."""
