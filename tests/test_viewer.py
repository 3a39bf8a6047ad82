"""The viewer's page: it is for this machine's own browser, says where it is, follows a file, and ends cleanly."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from support.robots import robot_file

import parflex
from parflex import InputError, Run
from parflex.cli.main import main
from parflex.view.page import server as pages
from parflex.view.page.playback import Playback

viser = pytest.importorskip("viser", reason="the extra 'view' is not installed")
Viewer = pytest.importorskip("parflex.view.page.viewer").Viewer


@pytest.fixture
def viewer():
    made = Viewer(parflex.load("5r"), port=0)
    yield made
    made.close()


def status(address: str, **headers: str) -> int:
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
    connection.request("GET", place.path or "/", headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_the_page_is_for_this_machine_s_own_browser_only(viewer):
    port, page = viewer.server.get_port(), viewer.address
    assert page.startswith(f"http://127.0.0.1:{port}/")
    for name in ("127.0.0.1", "localhost"):
        assert status(page, Host=f"{name}:{port}", Origin=f"http://{name}:{port}") == 200
    assert status(page) == 200  # a browser sends no origin when it opens a page
    for origin in ("http://elsewhere.example", "null", f"https://127.0.0.1:{port}", "http://127.0.0.1:1"):
        assert status(page, Origin=origin) == 403
    assert status(page, Host="elsewhere.example") == 403  # a name of theirs that leads to us
    with socket.socket() as outside, pytest.raises(OSError):  # other addresses of this machine are not listened on
        outside.settimeout(2)
        outside.connect(("127.0.0.2", port))


def test_requests_without_the_token_are_refused(viewer):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    root, token = f"http://127.0.0.1:{viewer.server.get_port()}", viewer.address.split("/")[3]
    assert len(token) > 20 and viewer.address == f"{root}/{token}/"
    protocol = [f"viser-v{viser.__version__}"]
    for path in ("", "/", f"/{token[:-1]}/", f"/x/{token}/", f"/?{token}", "/index.html", f"//{token}/", "/%00"):
        assert status(root + path) == 403, path
        for origin in (None, root):
            with pytest.raises(InvalidStatus, match="403"):
                connect((root + path).replace("http", "ws"), origin=origin, subprotocols=protocol)
    other = Viewer(parflex.load("5r"), port=0)
    other.close()
    assert other.address.split("/")[3] != token


def test_a_socket_of_a_foreign_page_is_refused(viewer):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    address = viewer.address.replace("http", "ws").rstrip("/")  # as the script of the page makes it
    protocol = [f"viser-v{viser.__version__}"]
    with connect(address, origin=f"http://127.0.0.1:{viewer.server.get_port()}", subprotocols=protocol) as own:
        assert own.recv(timeout=10)
    with pytest.raises(InvalidStatus, match="403"):
        connect(address, origin="http://elsewhere.example", subprotocols=protocol)


def test_no_tunnel_is_opened_for_whoever_asks(viewer, monkeypatch):
    """The page's script can ask although the button is hidden; asking calls this method."""
    import viser._viser as module

    def opened(*_arguments):
        raise AssertionError("a tunnel was opened")

    monkeypatch.setattr(module, "ViserTunnel", opened)
    from viser._messages import ShareUrlRequest

    handlers = viewer.server._websock_server._incoming_handlers[ShareUrlRequest]
    assert handlers
    for handler in handlers:
        handler(0, ShareUrlRequest())
    assert viewer.server.request_share_url() is None
    viewer.server._thread_executor.submit(lambda: None).result(timeout=10)
    assert viewer.server._share_tunnel is None


def test_a_busy_port_is_passed_over_and_the_real_one_told(capsys):
    with socket.socket() as busy:
        busy.bind((pages.HOST, 0))
        busy.listen(1)
        port = busy.getsockname()[1]
        with pytest.raises(SystemExit) as stop:
            main(["view", "5r", "--port", str(port), "--no-browser", "--seconds", "0", "--json"])
    assert not stop.value.code
    answer = json.loads(capsys.readouterr().out)
    assert answer["port"] != port and f":{answer['port']}/" in answer["address"]
    assert f"port {port} is in use" in answer["warnings"][0]


def test_a_server_that_answers_foreign_pages_is_not_left_running(monkeypatch):
    monkeypatch.setattr(pages, "_refusal", lambda token, connection, request: None)
    with pytest.raises(InputError, match="answers foreign requests"):
        pages.start_server(0)


def test_what_people_ask_for_is_done_at_the_next_turn(viewer):
    place = viewer.session.pose_sliders()[0].value
    before = viewer.stage.sent["links"].copy()
    for x in (place + 0.01, place + 0.02):  # of two wishes the last counts
        viewer.ask("pose", {"x": x, "y": 0.5})
    viewer.turn()
    assert viewer.session.pose_sliders()[0].value == pytest.approx(place + 0.02)
    assert np.abs(viewer.stage.sent["links"] - before).max() > 0.01
    good = viewer.stage.sent["links"].copy()
    viewer.ask("pose", {"x": 9.0, "y": 0.5})
    viewer.turn()
    assert "cannot be reached" in viewer.panel.status.content and viewer.stage.mark is not None
    assert np.array_equal(viewer.stage.sent["links"], good)
    for what, value in (
        ("reactions", True),
        ("named", "home"),
        ("servo", 1e4),
        ("ghost", False),
        ("motors", {"left.1": 2}),
    ):
        viewer.ask(what, value)
        viewer.turn()
    viewer.ask("named", "home")
    viewer.turn()
    assert viewer.stage.mark is None and "cannot" not in viewer.panel.status.content


def test_the_modes_follow_the_pose_once_nothing_else_is_asked():
    made = Viewer(parflex.load("dualemps"), port=0, frames=["13@0.5"])
    try:
        first = made.panel.mode.options
        made.ask("pose", {"x": 0.4, "y": 0.8})
        made.turn()
        middle = parflex.frames(made.session.robot, {"x": 0.4, "y": 0.8})["13@0.5"].position
        assert np.allclose(made.stage.frames["13@0.5"][0].position, middle, atol=1e-6)  # as the page has it
        assert made.panel.mode.options == first
        made.turn()
        assert made.panel.mode.options != first and made.panel.mode.options[0].startswith("1: ")
        assert made.panel.mode.value == made.panel.mode.options[0]
    finally:
        made.close()


def test_a_mode_and_a_run_play():
    robot = parflex.load("dualemps")
    q = np.array([robot.tree.moved(robot.home, np.full(robot.tree.n, 0.001 * k)) for k in range(3)])
    columns = {"t": np.array([0.0, 0.01, 0.02])}
    columns |= {f"q.{name}": q[:, k] for k, name in enumerate(robot.tree.position_names)}
    columns |= {"13.stress@0": np.array([0.0, 1.0, 8e6]), "13.stress@1": np.array([0.0, 0.0, 0.0])}
    run = Run(columns)
    made = Viewer(robot, run=Playback(robot, run), port=0)
    try:
        made.begin(2)
        seen = []
        for _ in range(3):
            made.turn()
            seen.append(made.stage.sent["beams"].copy())
            time.sleep(0.05)
        assert np.abs(seen[2] - seen[0]).max() > 1e-3
        assert made.stage.ghost is not None
        pictures, wait = made.pictures()
        assert len(pictures) == 60 and wait == pytest.approx(1 / 30)
        made.panel.play_mode.value = False
        made.panel.play_run.value = True
        made.turn()
        assert len(made.pictures()[0]) == 1  # 0.02 s are less than a picture
        made.panel.stress.value = True
        made._do_stress(True)
        assert "8 MPa" in made.panel.stress_note.content and not made.stage.meshes["beams"].visible
        assert len(made.stage.coloured) == 9  # eight colours, and beams of which nothing is known
        made.panel.time.value = 0.02
        made._show_run()
        assert len(made.stage.coloured[7].faces) > 1 and made.stage.coloured[7].color == (253, 231, 37)
        assert made.pictures()[0][0].levels is not None
        page = made.page()
        assert page.startswith("<!") and "__VISER_EMBED_DATA__" in page
        made._do_stress(False)
        assert not made.stage.coloured and made.stage.meshes["beams"].visible
    finally:
        made.close()


def test_a_file_that_changes_is_loaded_again_and_a_broken_one_keeps_the_last_good_robot(tmp_path):
    path = tmp_path / "pair.toml"
    text = robot_file("one-link").read_text()
    path.write_text(text)
    made = Viewer(parflex.load(path), port=0, reload=lambda: parflex.load(path), watched=path)

    def look() -> None:
        made._looked = 0.0
        made.turn()

    try:
        assert made.session.scene.size == pytest.approx(1.0)
        path.write_text(text.replace("[1.0,", "[2.5,"))
        look()
        assert made.session.scene.size == pytest.approx(2.5)
        path.write_text(text.replace("[1.0,", '["nonsense",'))
        look()
        assert "The file changed and cannot be used" in made.panel.status.content
        assert made.session.scene.size == pytest.approx(2.5)
        path.unlink()
        look()
        path.write_text(text.replace("[1.0,", "[0.5,"))
        look()
        assert made.session.scene.size == pytest.approx(0.5)
        assert "cannot" not in made.panel.status.content
    finally:
        made.close()


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_an_interrupt_ends_the_page_cleanly():
    command = [sys.executable, "-m", "parflex", "view", "5r", "--no-browser", "--port", "0", "--json"]
    listening = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **listening) as process:
        answer = json.loads(process.stdout.readline())
        assert status(answer["address"]) == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out == "" and err == "closed\n"
    with pytest.raises(OSError):
        status(answer["address"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--mode", "0"], "counted from 1"),
        (["--mode", "3", "--record", "x.html"], "choose a flexible robot"),
        (["--record", "x.png"], "use a name that ends in .html"),
        (["--pose", "x=9"], "cannot be reached"),
        (["--record", "missing/x.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["view", "5r", "--no-browser", "--seconds", "0", *words])
    found = capsys.readouterr()
    assert stop.value.code == 2
    assert sentence in found.err and found.err.count("\n") == 1
    assert not list(Path(tmp_path).iterdir())


def test_a_recorded_page_is_written_whole(tmp_path, capsys):
    path = tmp_path / "mode.html"
    with pytest.raises(SystemExit) as stop:
        main(["view", "dualemps", "--mode", "1", "--record", str(path), "--json"])
    assert not stop.value.code
    assert json.loads(capsys.readouterr().out)["file"] == str(path)
    assert path.stat().st_size > 500_000  # the viewer itself is in it
    assert [file.name for file in tmp_path.iterdir()] == ["mode.html"]
