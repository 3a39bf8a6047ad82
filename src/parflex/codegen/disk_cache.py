"""Programs and their compiled code on disk: one file each, named by a hash, written whole or not at all.

Machine code is executed, so that only files of this user in a folder of this user are read.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from pathlib import Path

from parflex.io import replacing_files

VARIABLE = "PARFLEX_CACHE"
OTHERS_WRITE = 0o022  # bits of a mode by which the group or all users may write
_told: set[str] = set()


def folder() -> Path | None:
    """Return the folder of the cache; `PARFLEX_CACHE=off` means none."""
    chosen = os.environ.get(VARIABLE)
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA")
        return Path(root) / "parflex" if root else None
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(home) / "parflex" if home else Path.home() / ".cache" / "parflex"
    except RuntimeError:  # the user has no home
        return None


def stored(key: str) -> Path | None:
    """Return the file under the key, None where there is none."""
    place = folder()
    return place / key if place is not None and os.path.isfile(place / key) else None  # noqa: PTH113 - never raises


def read(key: str) -> bytes | None:
    """Return the bytes stored under the key; a damaged file, or one that others can write, counts as none."""
    place = folder()
    if place is None:
        return None
    try:
        if not _private(place, place.stat()):
            return None
        with (place / key).open("rb") as file:
            if not _private(place / key, os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None
    digest, data = content[:32], content[32:]
    return data if hashlib.sha256(data).digest() == digest else None


def write(key: str, data: bytes) -> None:
    """Store under the key, readable for this user alone: no reader ever sees a part; what fails is reported once."""
    place = folder()
    if place is None:
        return
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(place, place.stat()):
            return
        with replacing_files(place / key, rights=0o600) as (file,):
            file.write(hashlib.sha256(data).digest() + data)
    except OSError as error:
        _warn(place, f"cannot be written ({error.strerror or error}); set {VARIABLE} to a writable folder or to 'off'")


def _private(path: Path, about: os.stat_result) -> bool:
    """Return whether this user owns a file or folder and no other user can write it; warn if not."""
    if os.name != "posix" or (about.st_uid == os.geteuid() and not about.st_mode & OTHERS_WRITE):
        return True
    reason = "belongs to another user" if about.st_uid != os.geteuid() else "can be written by other users"
    _warn(path, f"{reason}; delete it, or set {VARIABLE} to a folder of your own")
    return False


def _warn(place: Path, reason: str) -> None:
    if str(place) not in _told:
        _told.add(str(place))
        warnings.warn(f"programs are not cached: {place} {reason}", stacklevel=2)
