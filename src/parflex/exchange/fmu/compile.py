"""Shared libraries of an FMU: for this machine by its C compiler, for all platforms by zig."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from parflex.errors import InputError
from parflex.io import write_texts

# zig writes what debuggers need unless told otherwise: a third of its time
FLAGS = ("-std=c99", "-O2", "-g0", "-fvisibility=hidden", "-ffp-contract=off", "-fPIC", "-shared", "-w")
ENDS = {"linux": ".so", "windows": ".dll", "darwin": ".dylib"}
# platforms of FMI: system, and targets of zig; two make a universal library
PLATFORMS: dict[int, dict[str, tuple[str, tuple[str, ...]]]] = {
    2: {
        "linux64": ("linux", ("x86_64-linux-gnu.2.17",)),
        "win64": ("windows", ("x86_64-windows-gnu",)),
        "darwin64": ("darwin", ("x86_64-macos", "aarch64-macos")),
    },
    3: {
        "x86_64-linux": ("linux", ("x86_64-linux-gnu.2.17",)),
        "aarch64-linux": ("linux", ("aarch64-linux-gnu.2.17",)),
        "x86_64-windows": ("windows", ("x86_64-windows-gnu",)),
        "x86_64-darwin": ("darwin", ("x86_64-macos",)),
        "aarch64-darwin": ("darwin", ("aarch64-macos",)),
    },
}
PROGRAMS = ("program_", "slope_")  # how files of programs begin; unit.c includes the others
ALIGNED = 14  # bits: where parts of a universal library begin


def own_platform(fmi: int) -> tuple[str, str]:
    """Folder of the libraries of this machine, and its system."""
    system = platform.system().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if system not in ENDS:
        raise InputError(f"FMI has no name for the system '{system}'", key="platforms", hint="choose platforms='all'")
    if fmi == 3:
        return f"{machine}-{system}", system
    return {"linux": "linux64", "windows": "win64", "darwin": "darwin64"}[system], system


def compiled_files(sources: Mapping[str, str]) -> tuple[str, ...]:
    """Files that a compiler is given; they include the others."""
    return tuple(file for file in sources if file == "unit.c" or (file.startswith(PROGRAMS) and file.endswith(".c")))


def libraries(sources: Mapping[str, str], name: str, fmi: int, platforms: str) -> dict[str, bytes]:
    """Path in the FMU -> library; all are compiled at a time, so that cores are busy until the last one is done."""
    compiler, chosen = _zig() if platforms == "all" else [_system_compiler()], PLATFORMS[fmi]
    if platforms == "own":
        where, system = own_platform(fmi)
        chosen = {where: (system, ("",))}
    jobs = [(target, system) for system, targets in chosen.values() for target in targets]
    with TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        place = Path(folder)
        write_texts({place / file: text for file, text in sources.items()})
        files = [str(place / file) for file in compiled_files(sources)]
        built = pool.map(lambda job: _compiled(compiler, files, place, *job), jobs)
        parts = dict(zip((target for target, _ in jobs), built, strict=True))
    return {
        f"binaries/{where}/{name}{ENDS[system]}": _universal([parts[target] for target in targets])
        for where, (system, targets) in chosen.items()
    }


def _system_compiler() -> str:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        hint = "install gcc or clang, or pip install 'parflex[fmu]' and choose platforms='all'"
        raise InputError("there is no C compiler", key="platforms", value="own", hint=hint)
    return compiler


def _zig() -> list[str]:
    if importlib.util.find_spec("ziglang") is None:
        text = "libraries for all platforms are made by zig, which is not there"
        hint = "pip install 'parflex[fmu]', or choose platforms='own'"
        raise InputError(text, key="platforms", value="all", hint=hint)
    return [sys.executable, "-m", "ziglang", "cc"]


def _compiled(compiler: list[str], files: list[str], place: Path, target: str, system: str) -> bytes:
    """The library for a target of zig, or for this machine."""
    library = place / f"library-{target}{ENDS[system]}"
    chosen = ["-target", target] if target else []
    flags = [flag for flag in FLAGS if flag != "-fPIC" or system != "windows"]
    command = [*compiler, *chosen, *flags, *files, "-o", str(library), *(["-lm"] if system == "linux" else [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, check=False)
    if done.returncode:
        text = f"the compiler failed: {done.stderr.strip()[:300]}"
        raise InputError(text, key="platforms", hint="try another C compiler")
    return library.read_bytes()


def _universal(parts: list[bytes]) -> bytes:
    """One library for macOS of those for its processors."""
    if len(parts) == 1:
        return parts[0]
    head = struct.pack(">II", 0xCAFEBABE, len(parts))
    at, body = 1 << ALIGNED, b""
    for part in parts:
        kind, variant = struct.unpack_from("<II", part, 4)
        head += struct.pack(">IIIII", kind, variant, at + len(body), len(part), ALIGNED)
        body += part + b"\0" * (-len(part) % (1 << ALIGNED))
    return head + b"\0" * (at - len(head)) + body
