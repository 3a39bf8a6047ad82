"""Stored questions in random order."""

import os
import random

from golden import QUESTIONS, stored

SEED = int(os.environ.get("PARFLEX_SEED", random.SystemRandom().randrange(10**6)))


def quick(limit: float) -> list[str]:
    """Questions that take no longer, without those of the time loop, which one worker takes in a test of its own."""
    kept = stored()
    return [key for key, question in QUESTIONS.items() if not question.loop and kept[key]["seconds"] <= limit]
