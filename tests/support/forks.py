"""Answers of new processes: forks of this one, which have imported what it has and know nothing else."""

import json
import multiprocessing
import os
import resource
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any


def answer_of(ask: Callable[[Any], Any], seconds: int | None, memory: int | None, key: Any) -> dict[str, Any]:
    """The answer of a fork with its processor time; `crash` says why there is none, as beyond a limit (s, bytes)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        for limit, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory)):
            if most is not None:
                resource.setrlimit(limit, (most, most))
        start = time.process_time()
        try:
            content = {"answer": ask(key)}
        except BaseException:
            content = {"crash": traceback.format_exc()[-800:]}
        content["seconds"] = round(time.process_time() - start, 2)
        with os.fdopen(writer, "w") as pipe:
            pipe.write(json.dumps(content))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return json.loads(text) if text else {"crash": f"the process ended with {code}", "seconds": seconds or 0}


def answers(
    ask: Callable[[Any], Any], keys: Sequence[Any], seconds: int | None = None, memory: int | None = None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Each key with its answer, in their order; as many forks at a time as there are processors."""
    with multiprocessing.get_context("fork").Pool() as pool:
        yield from zip(keys, pool.imap(partial(answer_of, ask, seconds, memory), keys), strict=True)
