"""Processes that work for another one end with it, however that ended."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import wait as wait_for_any

DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
KILL = 9


def end_with_parent(by_signal: bool = True) -> None:
    """In a worker: end as soon as the parent is gone, also where it was killed and could say nothing.

    Linux sends a signal. Elsewhere, and beside it, a thread waits for the parent's end of a pipe to close.
    """
    if by_signal and sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(DEATH_SIGNAL, KILL)
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if not parent.is_alive():  # it ended before the signal was asked for
        os._exit(1)
    threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait_for_any([sentinel])
    os._exit(1)
