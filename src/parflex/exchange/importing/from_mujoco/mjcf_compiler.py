"""MuJoCo's compiler in a process of its own: what hangs, crashes or asks for all memory there ends there.

The process serves one file after the other, since it takes a moment to start, and ends with the one that started it.
"""

from __future__ import annotations

import atexit
import json
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from parflex.errors import InputError
from parflex.exchange.importing.foreign_files import foreign_error

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
                raise _refused(file, f"MuJoCo cannot compile it: {reason}", "correct the file") from None
            finally:
                with suppress(OSError):
                    out.unlink()

    def _compile(self, file: str, out: Path) -> None:
        """Raises ValueError with what the compiler says."""
        if self.process is None or self.process.poll() is not None:
            self._start()
        said = self._asked([str(Path(file).resolve()), str(out), MAX_SECONDS], PATIENCE * MAX_SECONDS)
        if said is None:
            hint = "check counts of replicates, composites and grids, and sizes of height fields"
            stopped = self.process is None or self.process.wait(PATIENCE) == OUT_OF_TIME
            what = f"is not done after {MAX_SECONDS:g} s" if stopped else "crashed"
            self.close()
            raise _refused(file, f"MuJoCo's compiler {what}", hint)
        if said:
            raise ValueError(said)

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


def _refused(file: str, message: str, hint: str) -> InputError:
    return foreign_error(message, file, "mujoco", None, hint)
