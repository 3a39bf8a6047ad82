"""Programs and their compiled code on disk: one file each, named by a hash, written whole or not at all."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from pathlib import Path

from parflex.errors import InputError
from parflex.whole_files import replacing

VARIABLE = "PARFLEX_CACHE"
_told: set[str] = set()


def folder() -> Path | None:
    """The folder of the cache; `PARFLEX_CACHE=off` means none."""
    chosen = os.environ.get(VARIABLE)
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA")
        return Path(root) / "parflex" if root else None
    home = os.environ.get("XDG_CACHE_HOME")
    return Path(home) / "parflex" if home else Path.home() / ".cache" / "parflex"


def read(key: str) -> bytes | None:
    """What was stored under the key; a damaged file counts as none."""
    place = folder()
    if place is None:
        return None
    try:
        content = (place / key).read_bytes()
    except OSError:
        return None
    digest, data = content[:32], content[32:]
    return data if hashlib.sha256(data).digest() == digest else None


def write(key: str, data: bytes) -> None:
    """Store under the key: no reader ever sees a part."""
    place = folder()
    if place is None:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        with replacing(place / key) as (file,):
            file.write(hashlib.sha256(data).digest() + data)
    except OSError as error:
        _complain(place, error)


def _complain(place: Path, error: OSError) -> None:
    """A folder that was named must work; the usual one may fail, which is said once."""
    if os.environ.get(VARIABLE):
        raise InputError(
            f"programs cannot be cached there ({error.strerror})",
            file=str(place),
            key=VARIABLE,
            value=str(place),
            hint=f"set {VARIABLE} to a writable folder, or to 'off'",
        ) from None
    if str(place) not in _told:
        _told.add(str(place))
        warnings.warn(f"programs are not cached: {place} cannot be written ({error.strerror})", stacklevel=2)
