"""The page for users of other libraries: the tasks give the same numbers in all libraries."""

import re
from typing import Any

import numpy as np
import pytest
from support.paths import ROOT

import parflex

PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
FOLDER = ROOT / "examples" / "coming_from"
TOOLS = ("parflex", "Pinocchio", "MuJoCo", "Exudyn")


# names that the code of a task shares; those of the first two are equal, not close
NAMES = {1: ["freedoms"], 2: ["names", "motors"], 3: ["position"], 4: ["J"], 5: ["effort"], 6: ["qdd", "force"]}
NAMES |= {7: ["energy", "M"], 8: ["frequencies"], 9: ["end"], 10: ["efforts"]}
WITHOUT = {("Exudyn", "M")}  # its mass matrix is that of absolute coordinates


def tasks(tool: str) -> dict[int, str]:
    """Return the code of a library for each task, from the page or from its file; imports belong to the first."""
    text = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)[0]
    if tool != "parflex":
        text = (FOLDER / f"tasks_{tool.lower()}.py").read_text(encoding="utf-8")
    start, *parts = re.split(r"^# (\d+)\. .*$", text, flags=re.M)
    code = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    return code | {1: start + code[1]}


def tolerances(tool: str) -> dict[int, float]:
    """What the table of the page allows a tool, by task."""
    table = PAGE.partition("## Agreement")[2].partition("## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "|" in line]
    column = rows[0].index(tool)
    allowed = {}
    for row in rows[2:]:
        for task in row[0].partition(":")[0].split(","):
            allowed[int(task)] = float(row[column].partition(":")[0])
    return allowed


def answers(tool: str, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[int, str], Any]:
    """Return what the tasks of a library compute, in their order."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.syspath_prepend(str(FOLDER))
    names: dict[str, Any] = {"__name__": "page"}
    found = {}
    for number, code in tasks(tool).items():
        exec(compile(code, f"{tool}, task {number}", "exec"), names)
        for name in NAMES[number]:
            if (tool, name) not in WITHOUT:
                found[number, name] = np.array(names[name])
    return found


@pytest.fixture(scope="module")
def ours() -> dict[tuple[int, str], Any]:
    with pytest.MonkeyPatch.context() as patch:
        return answers("parflex", patch)


def test_the_page_has_ten_tasks_and_says_how_well_they_agree() -> None:
    table = PAGE.partition("## Ten tasks")[2].partition("## ")[0]
    assert re.findall(r"^\| (\d+) ", table, flags=re.M) == [str(number) for number in NAMES]
    for tool in TOOLS:
        assert list(tasks(tool)) == list(NAMES)
        assert tool == "parflex" or sorted(tolerances(tool)) == list(range(3, 11))


@pytest.mark.parametrize(
    ("tool", "module", "oldest"),
    [("Pinocchio", "pinocchio", "4.0"), ("MuJoCo", "mujoco", "3.2.3"), ("Exudyn", "exudyn", None)],
    ids=TOOLS[1:],
)
def test_snippets_of_another_tool_agree_with_ours(
    tool: str, module: str, oldest: str | None, ours: dict[tuple[int, str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(module, minversion=oldest)
    allowed = tolerances(tool)
    for (task, name), theirs in answers(tool, monkeypatch).items():
        expected = ours[task, name]
        if task in allowed:
            difference = np.abs(theirs - expected).max() / np.abs(expected).max()
            assert difference < allowed[task], f"task {task}, {name}: {difference:.2g}"
        else:
            assert theirs.tolist() == expected.tolist(), f"task {task}, {name}"


def says(row: str, tool: str) -> str:
    """Cell of the table of conventions."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("|")]
    column = next(k for k, head in enumerate(lines[0]) if head.startswith(tool))
    return next(line for line in lines if line[0] == row)[column + 1].replace("`", "")


def turned(order: str) -> list[float]:
    """Quaternion of a quarter turn about z."""
    return [{"w": np.sqrt(0.5), "x": 0.0, "y": 0.0, "z": np.sqrt(0.5)}[letter] for letter in order.split()]


def parflex_body() -> tuple[np.ndarray, str]:
    robot = parflex.load("space")
    body = robot.tree.links[0]
    q, rates = np.array(robot.home), np.zeros(robot.tree.n)
    q[body.q], rates[body.v.start] = [0, 0, 0, *turned(says("quaternion", "parflex"))], 1.0
    return (parflex.Configuration(robot, q).frame_rows(body.name) @ rates)[:3], "v w in body axes"


def pinocchio_body() -> tuple[np.ndarray, str]:
    pin = pytest.importorskip("pinocchio")
    model = pin.Model()
    body = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "body")
    data, q = model.createData(), np.array([0, 0, 0, *turned(says("quaternion", "Pinocchio"))])
    pin.forwardKinematics(model, data, q, np.array([1.0, 0, 0, 0, 0, 0]))
    return pin.getVelocity(model, data, body, pin.LOCAL_WORLD_ALIGNED).linear, "v w in body axes"


def mujoco_body() -> tuple[np.ndarray, str]:
    mujoco = pytest.importorskip("mujoco")
    body = '<body name="b"><freejoint/><geom size="1"/><site name="s"/></body>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    data, twist = mujoco.MjData(model), np.zeros(6)  # rotation first
    data.qpos[3:], data.qvel[:] = turned(says("quaternion", "MuJoCo")), [1, 0, 0, 1, 0, 0]
    mujoco.mj_forward(model, data)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, data.body("b").id, twist, 0)
    assert twist[3:] == pytest.approx([1, 0, 0])
    return twist[:3], "v in world axes, w in body axes"


@pytest.mark.parametrize(
    ("tool", "body"), [("parflex", parflex_body), ("Pinocchio", pinocchio_body), ("MuJoCo", mujoco_body)]
)
def test_free_bodies_have_the_coordinates_of_the_table(tool: str, body) -> None:
    """A quarter turn about z, then one unit of the first rate, in axes of the body: it goes along y."""
    velocity, words = body()
    assert velocity == pytest.approx([0, 1, 0])
    assert says("rates of a free body", tool) == words
