"""The cache of results in memory; `codegen.cache` stores results on disk."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

LIMIT = 16  # entries of a kind: a study alternates between a few robots or sets of keys, and programs take megabytes

_kinds: dict[str, OrderedDict[Hashable, tuple[Any, tuple[Any, ...]]]] = {}

_lock = threading.RLock()  # reentrant, because the collector may run finalizers of removed values at any time

if hasattr(os, "register_at_fork"):  # a fork copies a lock that another thread holds, and nobody would release it
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def cached(
    kind: str, key: Hashable | None, build: Callable[[], T], owners: tuple[Any, ...] = (), limit: int = LIMIT
) -> T:
    """Return the value of a kind under a key; the first call builds the value.

    Each kind has at most `limit` entries: a new entry removes the least recently used one. The key None and a `build`
    that raises store nothing. `owners` are a part of the key that is compared by identity; they live as long as the
    entry. Threads may build the same value at the same time: all get the value that was stored first.
    """
    if key is None:
        return build()
    place = (key, *map(id, owners)) if owners else key
    with _lock:
        entries = _kinds.setdefault(kind, OrderedDict())
        entry = entries.get(place)
        if entry is not None:
            entries.move_to_end(place)
            return entry[0]
    value = build()
    with _lock:
        entry = entries.setdefault(place, (value, owners))
        while len(entries) > limit:
            entries.popitem(last=False)
    return entry[0]


def clear() -> None:
    """Remove all entries of all kinds."""
    with _lock:
        _kinds.clear()
