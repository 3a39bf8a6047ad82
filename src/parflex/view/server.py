"""The local web server of the viewer: viser on 127.0.0.1, which refuses foreign pages and requests without its token.

Other users and programs of the machine reach the port too, but do not know the token in the address of the page.
"""

from __future__ import annotations

import contextlib
import errno
import http
import http.client
import io
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from parflex.errors import InputError

HOST = "127.0.0.1"
TOKEN_BYTES = 16  # 128 random bits cannot be guessed
FIRST_PORT, TRIES = 8080, 50
MISSING = "the viewer needs the package 'viser', which is not installed"
_starting = threading.Lock()


def require_viser() -> Any:
    """Return the package viser, or refuse with the command that installs it."""
    try:
        import viser
    except ImportError:
        hint = "install it with: pip install 'parflex[view]'"
        raise InputError(MISSING, key="view", value="viser", hint=hint) from None
    return viser


def usable_port(port: int | None) -> int:
    """Return a port that can be bound: the requested one, or the next free one after it; 0 lets the system choose.

    A port that is not permitted is refused here: viser itself would wait for ever.
    """
    if port is not None and not 0 <= port <= 65535:
        raise InputError(f"{port} is not a port", key="port", value=port, hint="give a number from 1024 to 65535")
    first = FIRST_PORT if port is None else port
    for candidate in range(first, min(first + TRIES, 65536)):
        problem = _probe(candidate)
        if problem is None:
            return candidate
        if problem != errno.EADDRINUSE:
            text = f"port {candidate} cannot be used ({errno.errorcode.get(problem, problem)})"
            raise InputError(text, key="port", value=candidate, hint="give a number from 1024 to 65535")
    text, hint = f"the ports {first} to {candidate} are all in use", "give another port, or 0 for any free one"
    raise InputError(text, key="port", value=first, hint=hint)


def _probe(port: int) -> int | None:
    """Return the number of the error of binding a port, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
            trial.listen(1)
        except OSError as error:
            return error.errno or errno.EINVAL
    return None


def start_server(port: int | None = None, label: str | None = None) -> Any:
    """Start a server whose page opens only by its `address`; its port may differ from the requested one."""
    viser = require_viser()
    desired = usable_port(port)

    class PrivateServer(viser.ViserServer):  # type: ignore[name-defined]
        """A server that gives no public address, which the page could request although its button is hidden."""

        def request_share_url(self, verbose: bool = True) -> None:
            """Refuse: nothing leaves this machine."""

    token = secrets.token_urlsafe(TOKEN_BYTES)
    with _starting, _quiet(), _guarded(partial(_refusal, token)):
        server = PrivateServer(host=HOST, port=desired, label=label, verbose=False)
    server.address = f"http://{HOST}:{server.get_port()}/{token}/"
    try:
        _prove_refusal(server.get_port(), token)
    except BaseException:
        stop_server(server)
        raise
    return server


def stop_server(server: Any) -> None:
    """End a server without output."""
    with _quiet():
        server.stop()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress messages of viser on stdout, which belongs to the answer of the command."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


@contextlib.contextmanager
def _guarded(refusal: Callable[[Any, Any], Any]) -> Iterator[None]:
    """Make servers that start here pass every request, of pages and of sockets, to `refusal` first."""
    import websockets.asyncio.server as module

    original = module.serve

    def serve(*arguments: Any, **options: Any) -> Any:
        answer = options.get("process_request")

        def guarded(connection: Any, request: Any) -> Any:
            refused = refusal(connection, request)
            return refused if refused is not None or answer is None else answer(connection, request)

        return original(*arguments, **{**options, "process_request": guarded})

    module.serve = serve  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        module.serve = original  # type: ignore[misc]


def _refusal(token: str, connection: Any, request: Any) -> Any:
    """Return 403 for a request without the token, from another page, or for another host.

    The token is the first part of the path; the server below gets the path behind it.
    """
    port = connection.local_address[1]
    ours = {f"{name}:{port}" for name in (HOST, "localhost")}
    origins = request.headers.get_all("Origin")
    first, _, rest = request.path.partition("?")[0].removeprefix("/").partition("/")
    known = secrets.compare_digest(first.encode("utf-8", "replace"), token.encode())
    local = request.headers.get("Host") in ours and all(
        origin in {f"http://{name}" for name in ours} for origin in origins
    )
    if known and local:
        request.path = f"/{rest}"
        return None
    return connection.respond(http.HTTPStatus.FORBIDDEN, "Open the address that 'parflex view' printed.\n")


def _prove_refusal(port: int, token: str) -> None:
    """Send requests of a foreign page and without the token, and refuse a server that answers them."""
    for path, headers in ((f"/{token}/", {"Origin": "http://elsewhere.example"}), ("/", {})):
        connection = http.client.HTTPConnection(HOST, port, timeout=10)
        connection.request("GET", path, headers=headers)
        status = connection.getresponse().status
        connection.close()
        if status != http.HTTPStatus.FORBIDDEN:
            hint = "install a version that parflex names: pip install 'parflex[view]'"
            text = f"the installed viser answers foreign requests (status {status})"
            raise InputError(text, key="view", value=status, hint=hint)
