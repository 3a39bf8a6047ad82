"""Folders of the repository that tests read."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
DATA, ROBOTS = TESTS / "data", TESTS / "robots"
