"""Lowest modes at many poses and designs without tables: one compiled step, and a loop with counts around it."""
