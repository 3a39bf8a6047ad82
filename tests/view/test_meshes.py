"""Meshes of imported robots: named where they are, read with care, and drawn on their frames."""

import contextlib
import random
from pathlib import Path

import numpy as np
import pytest
from support.damaged import damaged
from support.robots import load_robot

import parflex
from parflex.recursion.kinematics import pose
from parflex.view import meshes
from parflex.view.meshes import mesh_of
from parflex.view.scene import scene

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3.0]])
SIDES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def binary(corners=CORNERS, name: bytes = b"solid by a program that says so") -> bytes:
    rows = np.zeros(len(SIDES), np.dtype([("numbers", "<f4", (4, 3)), ("colour", "<u2")]))
    rows["numbers"][:, 1:] = corners[SIDES]
    return name.ljust(80) + np.uint32(len(SIDES)).tobytes() + rows.tobytes()


def text() -> bytes:
    facets = [
        "facet normal 0 0 0\n outer loop\n" + "".join(f"  vertex {x:g} {y:g} {z:g}\n" for x, y, z in CORNERS[side])
        + " endloop\nendfacet\n" for side in SIDES
    ]  # fmt: skip
    return ("solid tetra\n" + "".join(facets) + "endsolid tetra\n").encode()


def wavefront() -> bytes:
    """The same by numbers of vertices, as Blender writes them, the last face counted from the end, a square cut."""
    lines = ["# Blender", "mtllib /etc/passwd", "o part", *(f"v {x:g} {y:g} {z:g}" for x, y, z in CORNERS), "vn 0 0 1"]
    lines += ["usemtl none", "s off", *(f"f {a + 1}//1 {b + 1}//1 {c + 1}//1" for a, b, c in SIDES[:3]), "f -3 -2 -1"]
    return "\n".join(lines).encode()


def own_format() -> bytes:
    """MuJoCo's: counts, then vertices, a normal for each, no textures, faces."""
    counts = np.array([4, 4, 0, 4], "<i4").tobytes()
    return counts + CORNERS.astype("<f4").tobytes() + bytes(48) + SIDES.astype("<i4").tobytes()


KINDS = {"binary.stl": binary, "text.STL": text, "wavefront.obj": wavefront, "own.msh": own_format}


@pytest.mark.parametrize("name", KINDS)
def test_triangles_are_read_from_every_format(name, tmp_path):
    (tmp_path / name).write_bytes(KINDS[name]())
    points, faces = mesh_of(str(tmp_path / name))
    assert len(points) == 4  # corners of several triangles are one
    assert {tuple(map(tuple, points[face])) for face in faces} == {tuple(map(tuple, CORNERS[side])) for side in SIDES}


def robot_with(file: Path, scale: float | list[float] = 0.5) -> parflex.Robot:
    return load_robot("arm-with-mesh", settings={"visual.0.file": str(file), "visual.0.scale": scale})


@pytest.mark.parametrize("scale", [0.5, [1, -2, 3]])
def test_a_mesh_is_drawn_on_its_frame(tmp_path, scale):
    (tmp_path / "tetra.stl").write_bytes(binary())
    robot = robot_with(tmp_path / "tetra.stl", scale)
    drawn = scene(robot)
    mesh = next(mesh for mesh in drawn.meshes if mesh.name == "meshes")
    found = drawn.vertices(robot.home)[mesh.vertices]
    factors = np.ones(3) * scale
    own = (CORNERS * factors)[:, [1, 0, 2]] * [-1, 1, 1] + [0.1, 0.2, 0.3]  # a quarter of a turn about z
    at = pose(robot.tree, robot.home)
    expected = own @ at.rotation[0].T + at.position[0]
    assert np.abs(np.sort(found, axis=0) - np.sort(expected, axis=0)).max() < 1e-6  # STL has single precision
    a, b, c = found[mesh.faces].transpose(1, 0, 2)
    volume = np.einsum("ni,ni->", a, np.cross(b, c)) / 6
    assert volume == pytest.approx(abs(np.prod(factors)), rel=1e-5)  # faces look outwards, also of a mirrored one


BAD = {
    "cut.stl": (binary()[:-60], "is not a whole STL file"),
    "words.stl": (text()[: len(text()) // 2], "is not a whole STL file"),
    "number.obj": (wavefront().replace(b"f -3", b"f 99"), "is not a whole OBJ file"),
    "nan.obj": (wavefront().replace(b"v 1 0 0", b"v nan 0 0"), "no triangles of finite size"),
    "part.ply": (b"ply", "reads no '.ply' meshes: it is not shown; convert it to STL or OBJ"),
    "far.msh": (own_format()[:-4] + b"\x09\0\0\0", "is not a whole MSH file"),
    "missing.stl": (None, "is not there"),
}


@pytest.mark.parametrize("name", BAD)
def test_unreadable_meshes_are_reported_and_the_robot_is_drawn(name, tmp_path):
    content, says = BAD[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    robot = robot_with(tmp_path / name)
    with pytest.warns(parflex.ParflexWarning, match=says):
        drawn = scene(robot)
    assert "meshes" not in [mesh.name for mesh in drawn.meshes] and drawn.meshes


@pytest.mark.parametrize("name", KINDS)
def test_damaged_meshes_are_read_or_refused_in_a_sentence(name, tmp_path):
    rng, file = random.Random(5), tmp_path / name
    for _ in range(100):
        file.write_bytes(damaged(KINDS[name](), rng))
        meshes._read.cache_clear()
        with contextlib.suppress(parflex.InputError):
            points, faces = mesh_of(str(file))
            assert np.isfinite(points).all()
            assert faces.max() < len(points)


URDF = """<robot name="r"><link name="ground"/><link name="arm">
  <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  <visual><origin xyz="0.1 0 0" rpy="0 0 0.3"/><geometry>
    <mesh filename="{}" scale="0.001 0.001 0.001"/></geometry></visual>
  <collision><geometry><mesh filename="hull.stl"/></geometry></collision></link>
  <joint name="j" type="revolute"><parent link="ground"/><child link="arm"/><origin xyz="0 0 1"/>
  <axis xyz="0 1 0"/></joint></robot>"""


@pytest.mark.parametrize(
    ("named", "stands", "why"),
    [
        ("meshes/arm.stl", "urdf/meshes/arm.stl", ""),
        ("package://bot/meshes/arm.stl", "meshes/arm.stl", ""),
        ("package://other/arm.stl", "../other/arm.stl", ""),
        ("package://bot/../../arm.stl", "../../arm.stl", "there is no such file"),
        ("/etc/passwd", "meshes/arm.stl", "there is no such file"),
        ("meshes/arm.ply", "urdf/meshes/arm.ply", "viewers show STL, OBJ and MSH: convert it"),
    ],
)
def test_meshes_of_a_urdf_are_named_where_they_are(tmp_path, named, stands, why):
    """As packages of ROS have them: `bot/urdf/robot.urdf`, `bot/meshes`; the robot file is written into `bot`."""
    home = tmp_path / "here" / "bot"
    (home / "urdf").mkdir(parents=True)
    mesh = home / stands
    mesh.parent.mkdir(parents=True, exist_ok=True)
    mesh.write_bytes(binary())
    (home / "urdf" / "robot.urdf").write_text(URDF.format(named))
    found = parflex.import_robot(home / "urdf" / "robot.urdf", home / "robot.toml")
    assert found.check["ok"], found.check
    assert ("collision mesh", "arm") in [(one.kind, one.name) for one in found.dropped]
    robot = parflex.load(found.file)
    if why:
        assert not robot.description.visual
        assert why in next(one.why for one in found.dropped if one.kind == "mesh")
        return
    drawn = scene(robot)
    mesh = next(mesh for mesh in drawn.meshes if mesh.name == "meshes")
    points = drawn.vertices(robot.home)[mesh.vertices]
    c, s = np.cos(0.3), np.sin(0.3)
    expected = 0.001 * CORNERS @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]).T + [0.1, 0, 1]
    assert np.abs(np.sort(points, axis=0) - np.sort(expected, axis=0)).max() < 1e-9


MJCF = """<mujoco><compiler meshdir="parts"/><asset><mesh name="m" file="a.stl" scale="0.5 1 2" {}/>
  <mesh name="hull" file="a.stl"/><mesh name="box" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
  <worldbody><geom type="mesh" mesh="box"/><body pos="1 0 0"><joint axis="1 1 0"/>
    <geom type="mesh" mesh="m" pos="0.1 0.2 0.3" euler="20 30 40" contype="0" conaffinity="0"/>
    <geom type="mesh" mesh="hull"/></body></worldbody></mujoco>"""


def test_meshes_of_a_file_of_mujoco_stand_where_it_puts_them(tmp_path):
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.stl").write_bytes(binary())
    file = tmp_path / "robot.xml"
    file.write_text(MJCF.format(""))
    shown, placed, dropped = mesh_beside_mujoco(mujoco, file)
    assert dropped.keys() == {"hull", "box"}
    assert np.abs(np.sort(shown, axis=0) - np.sort(placed, axis=0)).max() < 1e-6  # single precision
    file.write_text(MJCF.format('refpos="0.1 0 0"'))
    moved = parflex.import_robot(file, tmp_path / "moved.toml")
    assert "its origin is moved in the source" in {part.why for part in moved.dropped}


def test_a_sample_mesh_of_mujoco_is_drawn_where_mujoco_places_it(tmp_path):
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    sample = Path(mujoco.__file__).parent / "testdata" / "abdomen_1_body.msh"
    if not sample.exists():
        pytest.skip("this MuJoCo comes without the sample")
    (tmp_path / "a.msh").write_bytes(sample.read_bytes())
    geom = '<worldbody><body><joint axis="1 1 0"/><geom type="mesh" mesh="m" pos="0.1 0 0.3"/></body></worldbody>'
    (tmp_path / "r.xml").write_text(f'<mujoco><asset><mesh name="m" file="a.msh"/></asset>{geom}</mujoco>')
    shown, placed, dropped = mesh_beside_mujoco(mujoco, tmp_path / "r.xml")
    assert not dropped
    assert np.abs(np.sort(shown, axis=0) - np.sort(np.unique(placed, axis=0), axis=0)).max() < 1e-6


def mesh_beside_mujoco(mujoco, file: Path) -> tuple[np.ndarray, np.ndarray, dict[str, str]]:
    """Vertices of the first mesh in the scene of the imported robot, by MuJoCo, and meshes that are left out."""
    imported = parflex.import_robot(file, file.with_suffix(".toml"))
    robot, model = parflex.load(imported.file), mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    own = model.mesh_vert[model.mesh_vertadr[0] : model.mesh_vertadr[0] + model.mesh_vertnum[0]]
    geom = int(np.flatnonzero(model.geom_dataid == 0)[0])
    placed = own @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
    drawn = scene(robot)
    mesh = next(mesh for mesh in drawn.meshes if mesh.name == "meshes")
    dropped = {part.name: part.why for part in imported.dropped if part.kind == "mesh"}
    return drawn.vertices(robot.home)[mesh.vertices], placed, dropped
