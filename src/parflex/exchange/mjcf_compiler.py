"""MuJoCo's compiler in a separate process, on checked files.

A file that crashes, hangs or exhausts memory ends that process alone. The process serves one file after the other,
because it starts slowly, and ends with the process that started it.
"""

from __future__ import annotations

import atexit
import json
import math
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.errors import InputError
from parflex.exchange.untrusted_files import MAX_DEPTH, Element, file_error, line_of, path_inside, read_xml

Array = np.ndarray
MAX_FILES = 2_000
MAX_ASSETS = 1_000_000_000  # bytes of meshes and pictures
MAX_REPEATED = (
    10_000  # elements beyond those written: the compiler takes 10 s for them, and four times as long for twice
)
ROOTS = ("mujoco", "mujocoinclude")
REPEATING = ("replicate", "composite", "flexcomp")
MAX_SECONDS = 60.0  # of its processor; where that cannot be limited, and on busy machines, PATIENCE times as long
PATIENCE = 5
OUT_OF_TIME = -int(getattr(signal, "SIGXCPU", 1000))  # status of a process that used its share
MAX_MEMORY = 4 << 30  # bytes
STARTING = 120.0  # seconds until the process answers at all

SERVES = """
import json, math, os, sys, time
sys.path[:], most = json.loads(sys.stdin.readline())
answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
except (ImportError, ValueError, OSError):
    pass
import mujoco
print(json.dumps("ready"), file=answers, flush=True)
for line in sys.stdin:
    source, out, seconds = json.loads(line)
    try:
        ends = math.ceil(time.process_time() + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (ends, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    except (NameError, ValueError, OSError):
        pass
    try:
        mujoco.mj_saveModel(mujoco.MjModel.from_xml_path(source), out)
        said = ""
    except MemoryError:
        said = "it needs too much memory"
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
    print(json.dumps(said), file=answers, flush=True)
"""


def compile_model(file: str) -> tuple[Any, Any, bool]:
    """The package mujoco, the model that its compiler makes of a file, and whether some mesh has another origin."""
    elements = check_elements(file)
    moved = any(element.get("refpos") or element.get("refquat") for element in elements if element.tag == "mesh")
    try:
        import mujoco
    except ImportError:
        text = "files of MuJoCo are read by its own compiler, which is not there"
        raise InputError(text, file=file, key="file", value=file, hint="pip install 'parflex[mujoco]'") from None
    return mujoco, mujoco_compiler().compiled(file), moved


def check_elements(file: str) -> list[Element]:
    """All elements; a file that names others outside of its folder, has entities, or is too large, is refused."""
    folder = Path(file).resolve().parent
    waiting, elements = [Path(file)], []
    roots: dict[Path, Element | None] = {}
    while waiting:
        path = waiting.pop()
        if path.resolve() in roots:
            continue
        roots[path.resolve()] = None
        if len(roots) > MAX_FILES:
            raise file_error(f"includes more than {MAX_FILES} files", file, "include", None, "take fewer")
        root = roots[path.resolve()] = read_xml(path)
        if root.tag not in ROOTS:
            hint = "give a file of MuJoCo; a URDF ends in .urdf"
            raise file_error(f"begins with <{short_text(root.tag)}>, not with <mujoco>", path, "mujoco", root.tag, hint)
        for element in root.iter():
            elements.append((path, element))
            if element.tag == "include" or (element.tag == "model" and element.get("file")):
                waiting.append(_included(folder, element, path))
    _refuse_expansion(folder, Path(file), roots)
    _check_assets(folder, elements, file)
    return [element for _, element in elements]


def _refuse_expansion(folder: Path, file: Path, roots: dict[Path, Element | None]) -> None:
    """Refuse a file whose elements are repeated too often, before the compiler makes them."""
    sizes: dict[Path, Array] = {}

    def size_of(path: Path, depth: int) -> Array:
        if path.resolve() not in sizes:
            sizes[path.resolve()] = np.zeros(2)  # a file that includes itself is refused by the compiler
            root = roots.get(path.resolve())
            if root is not None:
                sizes[path.resolve()] = size(root, path, depth)
        return sizes[path.resolve()]

    def size(element: Element, path: Path, depth: int) -> Array:
        """Return the number of elements that are made, and of those that are written."""
        if depth > MAX_DEPTH:
            raise file_error("includes are nested too deeply", file, "include", None, "include fewer levels")
        total = sum((size(child, path, depth + 1) for child in element), np.ones(2))
        if element.tag == "include":
            total = total + size_of(_included(folder, element, path), depth + 1)
        elif element.tag == "attach":  # the largest of the models that it may name
            made = (size_of(_included(folder, model, at), depth + 1) for at, model in models)
            total = total + max(made, key=max, default=0)
        if element.tag in REPEATING:  # the compiler refuses counts that are no numbers
            with suppress(ValueError):
                total = total * [math.prod(max(1.0, float(n)) for n in (element.get("count") or "").split()), 1]
        if total[0] - total[1] > MAX_REPEATED:
            text = f"<{element.tag}> in line {line_of(element)} repeats elements more than {MAX_REPEATED} times"
            raise file_error(text, path, element.tag, element.get("count"), "take a smaller count")
        return total

    named = [(path, root.iter("model")) for path, root in roots.items() if root is not None]
    models = [(path, element) for path, elements in named for element in elements if element.get("file")]
    size_of(file, 1)


def _included(folder: Path, element: Element, path: Path) -> Path:
    """A file that another one includes: from the folder of the first one or, if none is there, of the other one."""
    name, beside = element.get("file") or "", path.resolve().parent
    included = _named(folder, "", element, path, name)
    if included.is_file() or beside == folder:
        return included
    return _named(folder, str(beside.relative_to(folder)), element, path, name)


def _check_assets(folder: Path, elements: list[tuple[Path, Element]], file: str) -> None:
    """Meshes, pictures and height fields stand in the folders that the compiler is told."""
    words: dict[str, str] = {}
    for _, element in elements:
        if element.tag == "compiler":
            words |= {key: value for key, value in element.attrib.items() if key.endswith("dir") or key == "strippath"}
    strip = words.pop("strippath", "false") == "true"
    total = 0
    for path, element in elements:
        for key, name in element.attrib.items():
            if not key.startswith("file") or element.tag in ("include", "model"):
                continue
            bare = Path(name.replace("\\", "/")).name if strip else name
            directory_key = "texturedir" if element.tag in ("texture", "skin") else "meshdir"
            asset = _named(folder, words.get(directory_key) or words.get("assetdir", ""), element, path, bare)
            total += asset.stat().st_size if asset.is_file() else 0
    if total > MAX_ASSETS:
        raise file_error(f"names {total / 1e6:.0f} MB of meshes and pictures", file, "asset", None, "take smaller ones")


def _named(folder: Path, under: str, element: Element, path: Path, name: str) -> Path:
    key = f"{element.tag} (line {line_of(element)})"
    whole = f"{under}/{name}" if under and name and not Path(name).is_absolute() else name
    return path_inside(folder, whole, path, key)


class MujocoCompiler:
    """The process, which starts with the first file and again after one that ended it."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="parflex-mujoco-")  # warnings of MuJoCo are written there too
        self.process: subprocess.Popen[str] | None = None
        self.lock = threading.Lock()

    def compiled(self, file: str) -> Any:
        """The model that the compiler makes of a file."""
        import mujoco

        with self.lock:
            out = Path(self.folder.name) / "model.mjb"
            try:
                self._compile(file, out)
                return mujoco.MjModel.from_binary_path(str(out))
            except (ValueError, RuntimeError, mujoco.FatalError) as error:
                reason = " ".join(str(error).split())[:300]
                raise file_error(f"MuJoCo cannot compile it: {reason}", file, "mujoco") from None
            finally:
                with suppress(OSError):
                    out.unlink()

    def _compile(self, file: str, out: Path) -> None:
        """Raises ValueError with what the compiler says."""
        if self.process is None or self.process.poll() is not None:
            self._start()
        message = self._asked([str(Path(file).resolve()), str(out), MAX_SECONDS], PATIENCE * MAX_SECONDS)
        if message is None:
            hint = "check counts of replicates, composites and grids, and sizes of height fields"
            stopped = self.process is None or self.process.wait(PATIENCE) == OUT_OF_TIME
            what = f"is not done after {MAX_SECONDS:g} s" if stopped else "crashed"
            self.close()
            raise file_error(f"MuJoCo's compiler {what}", file, "mujoco", None, hint)
        if message:
            raise ValueError(message)

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVES],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=self.folder.name,
        )  # fmt: skip
        if self._asked([sys.path, MAX_MEMORY], STARTING) != "ready":
            self.close()
            hint = "check the installation: python -c 'import mujoco'"
            raise InputError("MuJoCo's compiler does not start", key="mujoco", hint=hint)

    def _asked(self, words: list[Any], seconds: float) -> str | None:
        """The answer of the process; None if there is none, and it is stopped if it did not end by itself."""
        process, lines = self.process, list[str]()
        assert process is not None and process.stdin is not None and process.stdout is not None
        answers = process.stdout
        try:
            process.stdin.write(json.dumps(words) + "\n")
            process.stdin.flush()
        except OSError:
            return None
        waiting = threading.Thread(target=lambda: lines.append(answers.readline()), daemon=True)
        waiting.start()
        waiting.join(seconds)
        if not lines:
            self.close()
            waiting.join()
            return None
        try:
            return str(json.loads(lines[0]))
        except ValueError:
            return None

    def close(self) -> None:
        """End the process."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    stream.close()  # type: ignore[union-attr]


@cache
def mujoco_compiler() -> MujocoCompiler:
    """The one of this process."""
    made = MujocoCompiler()
    atexit.register(made.close)
    return made
