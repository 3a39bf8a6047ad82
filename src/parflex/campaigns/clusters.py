"""A Dask cluster as a crew: its scheduler is found by its address, and its workers have the same parflex."""

from __future__ import annotations

import logging
import re
import socket
import warnings
from concurrent.futures import Executor
from typing import Any

from parflex.campaigns.chunk_tasks import check_source, own_source
from parflex.campaigns.crews import Crew
from parflex.errors import InputError, ParflexWarning

PATIENCE = 10  # s until a scheduler has answered


def cluster(address: Any) -> Crew:
    """The workers of a Dask scheduler."""
    client = _client(address)
    try:
        _check_workers(client)
    except BaseException:
        client.close()
        raise

    def begin() -> Executor:
        return client.get_executor(pure=False)

    def workers() -> int:
        return sum(client.nthreads().values())

    def end(executor: Executor) -> None:
        executor.shutdown(wait=False)
        client.close()

    return Crew(begin, workers, "cluster", far=True, end=end)


def _client(address: Any) -> Any:
    place = re.fullmatch(r"(?:[a-z]+://)?(\[[^\]]+\]|[^:/\s]+):(\d+)/?", address) if isinstance(address, str) else None
    if place is None:
        raise _absent(address)
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "a cluster needs Dask, which is not installed",
            key="cluster",
            value=address,
            hint="pip install 'parflex[cluster]'",
        ) from None
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is said in our own words
    try:
        socket.create_connection((place[1].strip("[]"), int(place[2])), PATIENCE).close()  # says no at once
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception:  # whatever answers there is no scheduler
        raise _absent(address) from None


def _absent(address: Any) -> InputError:
    return InputError(
        f"no Dask scheduler answers at '{address}'",
        key="cluster",
        value=str(address),
        hint="start one with 'dask scheduler' and give its address, such as tcp://127.0.0.1:8786",
    )


def _check_workers(client: Any) -> None:
    """Refuse workers with another parflex, or with none; say that there are none yet."""

    def source() -> tuple[str, str]:  # sent whole: what it needs may not be there
        import importlib

        try:
            return importlib.import_module("parflex.campaigns.chunk_tasks").own_source()
        except ImportError:
            pass
        try:
            return importlib.import_module("parflex").__version__, "without campaigns"
        except ImportError:
            return "", ""

    known = client.run(source)
    for worker, there in known.items():
        if not there[0]:
            raise InputError(
                f"the worker {worker} has no parflex", key="cluster", value=worker, hint="install it there too"
            )
        check_source(own_source(), there, f"the worker {worker}")
    if not known:
        warnings.warn("the cluster has no workers yet: waiting for them", ParflexWarning, stacklevel=4)
