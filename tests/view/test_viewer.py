"""The viewer's page and studio: for this machine's browser alone, in a real browser, designs that follow sliders."""

import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from support.browser import PATIENCE, Watched, chromium, screenshot
from support.command_line import answered, refused, run
from support.paths import DATA
from support.robots import robot_file

import parflex
from parflex.design.sweep import read_design
from parflex.view.session import Playback

pytest.importorskip("viser", reason="the extra 'view' is not installed")
import viser

from parflex.view.scene import scene
from parflex.view.session import Session
from parflex.view.studio import DesignSession, StudioViewer
from parflex.view.viewer import Viewer


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


def test_the_page_is_served_to_browsers_of_this_machine_only(viewer):
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


def test_requests_without_the_token_and_sockets_of_foreign_pages_are_refused(viewer):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    root, token = f"http://127.0.0.1:{viewer.server.get_port()}", viewer.address.split("/")[3]
    assert len(token) > 20 and viewer.address == f"{root}/{token}/"
    protocol = [f"viser-v{viser.__version__}"]
    paths = ("", "/", f"/{token[:-1]}/", f"/x/{token}/", f"/?{token}", "/index.html", f"//{token}/", "/%00")
    for path in paths:
        assert status(root + path) == 403, path
    for path, origin in [*((path, origin) for path in paths for origin in (None, root)), (f"/{token}", "http://a.b")]:
        with pytest.raises(InvalidStatus, match="403"):
            connect((root + path).replace("http", "ws"), origin=origin, subprotocols=protocol)
    with connect(
        f"{root}/{token}".replace("http", "ws"), origin=root, subprotocols=protocol
    ) as own:  # as the page does
        assert own.recv(timeout=10)
    other = Viewer(parflex.load("5r"), port=0)
    other.close()
    assert other.address.split("/")[3] != token


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


def test_a_busy_port_is_skipped_and_the_used_port_reported(capsys):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen(1)
        port = busy.getsockname()[1]
        answer = answered(capsys, "view", "5r", "--port", port, "--no-browser", "--seconds", "0")
    assert answer["port"] != port and f":{answer['port']}/" in answer["address"]
    assert f"port {port} is in use" in answer["warnings"][0]


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
    viewer.panel.reactions.value = True
    wishes = {"show": None, "named": "home", "servo": 1e4, "sag": False, "motors": {"left.1": 2}}
    for what, value in wishes.items():
        viewer.ask(what, value)
        viewer.turn()
    viewer.ask("named", "home")
    viewer.turn()
    assert viewer.stage.mark is None and "cannot" not in viewer.panel.status.content


def test_a_mode_and_a_run_play():
    robot = parflex.load("dualemps")
    q = np.array([robot.tree.moved(robot.home, np.full(robot.tree.n, 0.001 * k)) for k in range(3)])
    columns = {"t": np.array([0.0, 0.01, 0.02])}
    columns |= {f"q.{name}": q[:, k] for k, name in enumerate(robot.tree.position_names)}
    columns |= {"13.stress@0": np.array([0.0, 1.0, 8e6]), "13.stress@1": np.array([0.0, 0.0, 0.0])}
    motion = parflex.Run(columns)
    made = Viewer(robot, run=Playback(robot, motion), port=0)
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
        made._do_show(None)
        assert "8 MPa" in made.panel.stress_note.content and not made.stage.meshes["beams"].visible
        assert len(made.stage.coloured) == 9  # eight colours, and beams of which nothing is known
        made.panel.time.value = 0.02
        made._do_time(None)
        assert len(made.stage.coloured[7].faces) > 1 and made.stage.coloured[7].color == (253, 231, 37)
        assert made.pictures()[0][0].levels is not None
        page = made.page()
        assert page.startswith("<!") and "__VISER_EMBED_DATA__" in page
        made.panel.stress.value = False
        made._do_show(None)
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


@pytest.mark.verify
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
def test_invalid_views_are_refused_and_nothing_written(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    refused(capsys, "view", "5r", "--no-browser", "--seconds", "0", *words)
    assert sentence in run(capsys, "view", "5r", "--no-browser", "--seconds", "0", *words).err
    assert not list(Path(tmp_path).iterdir())


@pytest.fixture(scope="module")
def desk():
    return desk_of("design")


def desk_of(name: str) -> DesignSession:
    file = DATA / f"{name}-3rrr-flexible.toml"
    return DesignSession(parflex.load("3rrr-flexible"), read_design(file), "3rrr-flexible")


def test_what_a_design_answers_is_what_its_robot_file_answers(desk, tmp_path):
    values = {"constants.proximal": 0.47, "constants.distal": 0.42}
    shown = desk.look_at(values)
    path = desk.write(values, tmp_path)
    robot = parflex.load(path)
    for word, name in (("stiffness:platform.x", "stiffness"), ("mass", "mass")):
        found = parflex.sensitivities(robot, word, "constants.arm", {"x": 0.0, "y": 0.0}).value
        assert shown.responses[name] == pytest.approx(found, rel=1e-9)
    assert desk.write(values, tmp_path) != path  # nothing is replaced


def test_what_is_seen_of_a_design_is_its_robot_where_it_is(desk):
    values = {"constants.proximal": 0.47, "constants.distal": 0.42}
    session = Session(desk.robot, {"x": 0.01, "y": -0.02, "theta": 0.05})
    sight, robot = desk.sight(session, values), desk.robot_of(values)
    place = desk.place(session)
    q = robot.assemble(place)
    assert sight.q == pytest.approx(q, abs=1e-9)  # loops close to 1e-12
    assert sight.frequencies == pytest.approx(parflex.natural_frequencies(robot, place, 4).frequencies, rel=1e-8)
    robots = (robot, sight.robot)
    own = [parflex.natural_frequencies(one, parflex.configure(one, q), 1).frequencies[0] for one in robots]
    assert own[1] == pytest.approx(own[0], rel=1e-10)
    assert scene(sight.robot).vertices(q) == pytest.approx(scene(robot).vertices(q), abs=2e-3)  # thickness follows home
    corner = {word: float(axis[0]) for word, axis in sight.axes.items()}
    lowest = parflex.natural_frequencies(robot, place | corner, 1).frequencies[0]
    assert sight.lowest[0] == pytest.approx(lowest, rel=1e-8)


def test_a_design_that_cannot_be_shown_is_not_written(desk, tmp_path):
    viewer = StudioViewer(desk, port=0, folder=tmp_path)
    try:
        viewer._warming.join()
        viewer._do_design({"constants.proximal": 0.2, "constants.distal": 0.1})
        viewer._do_write(None)
        assert viewer.tab.note.content.startswith("Not written") and not list(tmp_path.iterdir())
        viewer._do_design(desk.start)
        assert viewer.tab.note.content == ""
        viewer._do_write(None)
        assert len(list(tmp_path.iterdir())) == 1
    finally:
        viewer.close()


def test_beams_of_a_design_are_drawn_as_thick_as_they_are(desk):
    values = {"sections.rod.diameter": 0.05}
    sight, robot = desk.sight(Session(desk.robot), values, cells=False), desk.robot_of(values)
    drawn = [scene(one).vertices(sight.q) for one in (sight.robot, robot, desk.robot)]
    assert drawn[0] == pytest.approx(drawn[1], abs=1e-9)  # home is found to 1e-12, lengths follow from it
    # half of 0.05 - 0.02 m, along the axis nearest to a corner of 24: at most half of 15 degrees away, cos 0.991
    assert np.abs(drawn[2] - drawn[1]).max() == pytest.approx(0.015, rel=0.01)


# a graphics card is not needed: the browser draws in software, slowly
SOFTWARE = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
SCENE = {"x": 0, "y": 160, "width": 900, "height": 600}  # without the panel and without notes of the page


@contextmanager
def served(robot: parflex.robot.robot.Robot, make: Any = Viewer, **options: Any) -> Iterator[Viewer]:
    viewer, stop = make(robot, port=0, **options), threading.Event()

    def loop() -> None:
        while not stop.is_set():
            viewer.turn()
            time.sleep(0.03)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield viewer
    finally:
        stop.set()
        thread.join(timeout=20)
        viewer.close()


def until(page: Any, what: Callable[[], Any], reason: str) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        page.wait_for_timeout(100)
    raise AssertionError(reason)


def picture(page: Any) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(screenshot(page, clip=SCENE))).convert("RGB"), dtype=float)


def changed(first: np.ndarray, second: np.ndarray) -> float:
    return float((np.abs(first - second).max(axis=2) > 40).mean())


def steady(page: Any) -> np.ndarray:
    last = [picture(page)]

    def still() -> bool:
        page.wait_for_timeout(300)
        now = picture(page)
        same = changed(now, last[0]) == 0
        last[0] = now
        return same and float(now.min()) < 120  # something dark is there: the robot

    until(page, still, "the scene shows nothing")
    return last[0]


def field(page: Any, label: str) -> Any:
    return page.locator(f"xpath=//*[normalize-space(text())='{label}']/ancestor::*[.//input][1]//input").last


def complaints(watched: Watched) -> list[str]:
    return [text for text in watched.complaints if not text.startswith("warning")]


@pytest.mark.verify
def test_the_viewer_in_a_browser():
    robot = parflex.load("dualemps")
    with served(robot) as viewer, chromium(*SOFTWARE) as browser:
        watched = Watched(browser, viewport={"width": 1280, "height": 800})
        page = watched.page
        page.goto(viewer.address)
        page.get_by_text("End effector").wait_for(timeout=PATIENCE * 1000)
        home = steady(page)

        before = viewer.session.q.copy()
        field(page, "x (m)").fill("0.4")
        page.keyboard.press("Enter")
        until(page, lambda: np.abs(viewer.session.q - before).max() > 0.01, "the slider moves nothing")
        moved = steady(page)
        assert changed(home, moved) > 0.005
        at = viewer.session.pose_sliders()[0].value
        assert at == pytest.approx(0.4, abs=1e-9)

        viewer.panel.pose_sliders["x"].max = 3.0
        good = viewer.session.q.copy()
        page.wait_for_timeout(300)
        field(page, "x (m)").fill("3")
        page.keyboard.press("Enter")
        page.get_by_text("cannot be reached").wait_for(timeout=PATIENCE * 1000)
        assert np.array_equal(viewer.session.q, good)
        assert viewer.stage.mark is not None

        page.get_by_role("tab", name="Modes").click()
        page.get_by_text("Play the mode").wait_for()
        seen = [picture(page)]
        page.get_by_text("Play the mode").click()

        def moves() -> bool:
            page.wait_for_timeout(400)
            seen.append(picture(page))
            return changed(seen[-1], seen[-2]) > 0.002

        until(page, moves, "the mode does not play")
        assert viewer.panel.play_mode.value and viewer.panel.mode.value.endswith("Hz")

        page.get_by_role("tab", name="Show").click()
        for label, name, start in (("Save picture", "dualemps.png", b"\x89PNG"), ("Save page", "dualemps.html", b"<!")):
            with page.expect_download(timeout=PATIENCE * 1000) as download:
                page.get_by_role("button", name=label).click()
            assert download.value.suggested_filename == name
            assert Path(download.value.path()).read_bytes().startswith(start)
        assert complaints(watched) == []
        root = viewer.address.rstrip("/")
        here = (root, root.replace("http", "ws"), "data:", "blob:")
        assert all(address.startswith(here) for address in watched.requests), watched.requests


@pytest.mark.verify
def test_a_recorded_page_plays_offline(tmp_path):
    viewer = Viewer(parflex.load("dualemps"), port=0)
    try:
        viewer.begin(1, 15.0)
        path = tmp_path / "mode.html"
        path.write_text(viewer.page(), encoding="utf-8")
    finally:
        viewer.close()
    with chromium(*SOFTWARE) as browser:
        watched = Watched(browser, viewport={"width": 1280, "height": 800})
        watched.context.set_offline(True)
        watched.page.goto(path.as_uri())
        seen = [picture(watched.page)]

        def moves() -> bool:
            watched.page.wait_for_timeout(400)
            seen.append(picture(watched.page))
            dark = float(seen[-2].min()) < 120
            return dark and changed(seen[-1], seen[-2]) > 0.002

        until(watched.page, moves, "the recorded mode does not play")
        assert complaints(watched) == []
        assert all(address.startswith(("file:", "data:", "blob:")) for address in watched.requests), watched.requests


@pytest.mark.verify
def test_a_slider_of_a_design_moves_robot_and_frequencies(tmp_path):
    desk = desk_of("sliders")

    def studio(robot: Any, **options: Any) -> Viewer:
        return StudioViewer(desk, folder=tmp_path, **options)

    with served(desk.robot, studio) as viewer, chromium(*SOFTWARE) as browser:
        watched = Watched(browser, viewport={"width": 1280, "height": 800})
        page = watched.page
        page.goto(viewer.address)
        page.get_by_text("Keep to compare").wait_for(timeout=PATIENCE * 1000)
        until(page, lambda: viewer.shown is not None, "the programs are not prepared")
        first = steady(page)
        before = viewer.shown.responses["lowest"]
        page.get_by_role("button", name="Keep to compare").click()
        until(page, lambda: desk.kept is not None, "nothing is kept")
        own = "xpath=//label[normalize-space(.)='constants.proximal']/ancestor::*[.//input][1]//input"
        page.locator(own).last.fill("0.54")
        page.keyboard.press("Enter")
        until(page, lambda: viewer.shown.values["constants.proximal"] > 0.53, "the slider changes nothing")
        assert viewer.shown.responses["lowest"] != before
        lowest = f"{viewer.shown.responses['lowest']:.5g} Hz"
        until(page, lambda: lowest in page.content(), "the page does not show the new frequency")
        assert changed(first, steady(page)) > 0.002  # the robot, its ghost and the map
        page.get_by_role("button", name="Write robot file").click()
        until(page, lambda: list(tmp_path.glob("3rrr-flexible-design-*.toml")), "no robot file is written")
        if os.environ.get("PARFLEX_PICTURES"):
            screenshot(page, path=Path(os.environ["PARFLEX_PICTURES"]) / "studio.png")
        assert complaints(watched) == []
