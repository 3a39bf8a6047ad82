"""Lanes of compiled steps: each goes its own way through modes and poses, and proves what it finds."""
