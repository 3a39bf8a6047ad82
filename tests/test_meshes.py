"""Meshes of imported robots: named where they are, read with care, and drawn on their frames."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import numpy as np
import pytest
from damaged import damaged

import parflex
from parflex.recursion import pose
from parflex.view.scene import mesh_files
from parflex.view.scene.mesh_files import mesh_of
from parflex.view.scene.robot_scene import scene

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3.0]])
SIDES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def binary(corners=CORNERS, name: bytes = b"solid by a program that says so") -> bytes:
    """A binary STL; some begin as texts do."""
    rows = np.zeros(len(SIDES), np.dtype([("numbers", "<f4", (4, 3)), ("colour", "<u2")]))
    rows["numbers"][:, 1:] = corners[SIDES]
    return name.ljust(80) + np.uint32(len(SIDES)).tobytes() + rows.tobytes()


def text() -> bytes:
    """The same in words."""
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


def collada(faces: str, nodes: str, unit: str = "1") -> bytes:
    """A Collada file with a source of positions and one of normals, as modellers write them."""
    row = " ".join(f"{x:g}" for x in CORNERS.ravel())
    sources = "".join(
        f'<source id="{name}"><float_array id="{name}-array" count="{count}">{values}</float_array><technique_common>'
        f'<accessor source="#{name}-array" count="{count // 3}" stride="3"><param name="X" type="float"/>'
        '<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>'
        for name, count, values in (("mesh-positions", 12, row), ("mesh-normals", 3, "0 0 1"))
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" '
        f'version="1.4.1"><asset><unit name="unit" meter="{unit}"/><up_axis>Y_UP</up_axis></asset>'
        '<library_images><image id="i"><init_from>file:///etc/passwd</init_from></image></library_images>'
        f'<library_geometries><geometry id="g" name="part"><mesh>{sources}<vertices id="mesh-vertices"><input '
        f'semantic="POSITION" source="#mesh-positions"/></vertices>{faces}</mesh></geometry></library_geometries>'
        f'<library_visual_scenes><visual_scene id="Scene">{nodes}</visual_scene></library_visual_scenes>'
        '<scene><instance_visual_scene url="#Scene"/></scene></COLLADA>'
    ).encode()


INPUTS = (
    '<input semantic="VERTEX" source="#mesh-vertices" offset="{}"/>'
    '<input semantic="NORMAL" source="#mesh-normals" offset="{}"/>'
)
NODE = '<node id="n" type="NODE"><matrix sid="transform">1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</matrix>{}</node>'
USED = '<instance_geometry url="#g"/>'


def blender() -> bytes:
    """Triangles with a normal at each corner, a matrix at the node."""
    corners = " ".join(f"{k} 0" for side in SIDES for k in side)
    return collada(
        f'<triangles material="m" count="4">{INPUTS.format(0, 1)}<p>{corners}</p></triangles>', NODE.format(USED)
    )


def modeller() -> bytes:
    """Inches, a list of polygons, the normal first; nodes in nodes, one of them named from elsewhere."""
    corners = " ".join(f"0 {k}" for side in SIDES for k in side)
    faces = f'<polylist count="4">{INPUTS.format(1, 0)}<vcount>3 3 3 3</vcount><p>{corners}</p></polylist>'
    nodes = (
        '<node><rotate>0 0 1 90</rotate><node><translate>1 0 0</translate><instance_node url="#b"/></node></node>'
        f'<node id="a"><scale>0 0 0</scale><node id="b"><scale>-2 1 1</scale>{USED}</node></node>'
    )
    return collada(faces, nodes, "0.0254")


def own_format() -> bytes:
    """MuJoCo's: counts, then vertices, a normal for each, no textures, faces."""
    counts = np.array([4, 4, 0, 4], "<i4").tobytes()
    return counts + CORNERS.astype("<f4").tobytes() + bytes(48) + SIDES.astype("<i4").tobytes()


KINDS = {
    "binary.stl": binary,
    "text.STL": text,
    "wavefront.obj": wavefront,
    "blender.dae": blender,
    "own.msh": own_format,
}


@pytest.mark.parametrize("name", KINDS)
def test_triangles_are_read_from_every_format(name, tmp_path):
    (tmp_path / name).write_bytes(KINDS[name]())
    points, faces = mesh_of(str(tmp_path / name))
    assert len(points) == 4  # corners of several triangles are one
    assert {tuple(map(tuple, points[face])) for face in faces} == {tuple(map(tuple, CORNERS[side])) for side in SIDES}


def test_nodes_and_units_of_a_collada_file_place_its_geometry(tmp_path):
    (tmp_path / "part.dae").write_bytes(modeller())
    points, faces = mesh_of(str(tmp_path / "part.dae"))
    first = (CORNERS * [-2, 1, 1] + [1, 0, 0])[:, [1, 0, 2]] * [-1, 1, 1] * 0.0254  # a quarter of a turn about z
    expected = np.vstack([first, np.zeros((1, 3))])  # the second one is shrunk to a point
    assert len(points) == 5
    assert np.abs(np.sort(points, axis=0) - np.sort(expected, axis=0)).max() < 1e-12
    a, b, c = points[faces].transpose(1, 0, 2)
    assert np.einsum("ni,ni->", a, np.cross(b, c)) / 6 == pytest.approx(2 * 0.0254**3)  # mirrored faces look outwards


@pytest.mark.parametrize("made", [blender, modeller])
def test_collada_files_are_read_as_by_the_reader_of_pinocchio(made, tmp_path):
    coal = pytest.importorskip("coal")
    (tmp_path / "part.dae").write_bytes(made())
    theirs = np.array(coal.MeshLoader().load(str(tmp_path / "part.dae"), np.ones(3)).vertices())
    points, _ = mesh_of(str(tmp_path / "part.dae"))
    points = points / (0.0254 if made is modeller else 1)  # it leaves units out
    assert np.abs(points.min(axis=0) - theirs.min(axis=0)).max() < 1e-6  # single precision
    assert np.abs(points.max(axis=0) - theirs.max(axis=0)).max() < 1e-6


ROBOT = """
format = 1
name = "arm"
[[frame]]
name = "arm"
joint = "revolute"
start = 0.5
place = {{ position = [1, 0, 0], rotation = [0, "pi/2", 0] }}
inertia = {{ mass = 1, about_centre = [1, 1, 1] }}
[[visual]]
frame = "{frame}"
file = "{file}"
scale = {scale}
position = [0.1, 0.2, 0.3]
rotation = [0, 0, "pi/2"]
"""


def robot_with(folder, file: str, scale: str = "0.5", frame: str = "arm") -> parflex.Robot:
    (folder / "robot.toml").write_text(ROBOT.format(file=file, scale=scale, frame=frame))
    return parflex.load(folder / "robot.toml")


@pytest.mark.parametrize("scale", ["0.5", "[1, -2, 3]"])
def test_a_mesh_is_drawn_on_its_frame(tmp_path, scale):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "tetra.stl").write_bytes(binary())
    robot = robot_with(tmp_path, "parts/tetra.stl", scale)
    drawn = scene(robot)
    mesh = next(mesh for mesh in drawn.meshes if mesh.name == "meshes")
    found = drawn.vertices(robot.home)[mesh.vertices]
    factors = np.array([0.5] * 3) if scale == "0.5" else np.array([1, -2, 3])
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
    "empty.stl": (b"", "is not a whole STL file"),
    "nothing.obj": (b"v 1 2 3\n", "no triangles of finite size"),
    "part.ply": (b"ply", "not of a format that is shown"),
    "none.dae": (b"<COLLADA/>", "no triangles of finite size"),
    "cut.dae": (blender()[:-200], "is not a whole DAE file"),
    "far.dae": (blender().replace(b"<p>0 0", b"<p>9 0"), "is not a whole DAE file"),
    "endless.dae": (
        modeller().replace(b'id="b"><scale>', b'id="b"><instance_node url="#a"/><scale>'),
        "not a whole DAE",
    ),
    "laughs.dae": (
        collada(
            "",
            "".join(f'<node id="n{k}">' + 2 * f'<instance_node url="#n{k + 1}"/>' + "</node>" for k in range(40))
            + NODE.replace('"n"', '"n40"').format(USED),
        ),
        "not a whole DAE",
    ),
    "outside.dae": (blender().replace(b'"#g"', b'"http://x/y.dae#g"'), "is not a whole DAE file"),
    "entity.dae": (b'<!DOCTYPE x [<!ENTITY y SYSTEM "/etc/passwd">]>' + blender()[38:], "is not a whole DAE file"),
    "cut.msh": (own_format()[:-4], "is not a whole MSH file"),
    "far.msh": (own_format()[:-4] + b"\x09\0\0\0", "is not a whole MSH file"),
    "missing.stl": (None, "is not there"),
}


@pytest.mark.parametrize("name", BAD)
def test_meshes_that_cannot_be_shown_are_told_and_the_rest_is_drawn(name, tmp_path):
    content, says = BAD[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    robot = robot_with(tmp_path, name)
    with pytest.warns(parflex.ParflexWarning, match=says):
        drawn = scene(robot)
    assert "meshes" not in [mesh.name for mesh in drawn.meshes] and drawn.meshes


@pytest.mark.parametrize("name", KINDS)
def test_damaged_meshes_are_read_or_refused_in_a_sentence(name, tmp_path):
    rng, file = random.Random(5), tmp_path / name
    for _ in range(100):
        file.write_bytes(damaged(KINDS[name](), rng))
        mesh_files._read.cache_clear()
        with contextlib.suppress(parflex.InputError):
            points, faces = mesh_of(str(file))
            assert np.isfinite(points).all()
            assert faces.max() < len(points)


def test_large_meshes_are_not_read(tmp_path, monkeypatch):
    (tmp_path / "tetra.stl").write_bytes(binary())
    robot = robot_with(tmp_path, "tetra.stl")
    for limit, value, says in (("MAX_MESH_BYTES", 100, "has more than"), ("MAX_TRIANGLES", 3, "4 triangles")):
        mesh_files._read.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(mesh_files, limit, value)
            with pytest.warns(parflex.ParflexWarning, match=says):
                scene(robot)


@pytest.mark.parametrize(
    "file", ["../x.stl", "/etc/x.stl", "a/../../x.stl", "C:/x.stl", "..\\\\x.stl", "http://x/y.stl"]
)
def test_a_robot_file_names_no_mesh_outside_its_folder(file, tmp_path):
    with pytest.raises(parflex.RobotFileError, match="outside the folder") as caught:
        robot_with(tmp_path, file)
    assert caught.value.key == "visual.file"


def test_a_mesh_on_a_frame_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(parflex.RobotFileError, match="there is no frame or node 'amr'"):
        robot_with(tmp_path, "x.stl", frame="amr")


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
        ("package:///arm.stl", "urdf/arm.stl", ""),
        ("package://other/arm.stl", "../other/arm.stl", "not below the folder of the robot file"),
        ("package://bot/../../arm.stl", "../../arm.stl", "there is no such file"),
        ("../meshes/arm.stl", "meshes/arm.stl", "there is no such file"),
        ("/etc/passwd", "meshes/arm.stl", "there is no such file"),
        ("meshes/none.stl", "urdf/meshes/arm.stl", "there is no such file"),
        ("meshes/arm.ply", "urdf/meshes/arm.ply", "viewers show STL, OBJ, DAE and MSH"),
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
    (tmp_path / "robot.xml").write_text(MJCF.format(""))
    found = parflex.import_robot(tmp_path / "robot.xml", tmp_path / "robot.toml")
    assert {one.name: one.why for one in found.dropped if one.kind == "mesh"}.keys() == {"hull", "box"}
    robot = parflex.load(found.file)
    drawn = scene(robot)
    mesh = next(mesh for mesh in drawn.meshes if mesh.name == "meshes")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    own = model.mesh_vert[model.mesh_vertadr[0] : model.mesh_vertadr[0] + model.mesh_vertnum[0]]
    geom = int(np.flatnonzero(model.geom_dataid == 0)[0])
    expected = own @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
    points = drawn.vertices(robot.home)[mesh.vertices]
    assert np.abs(np.sort(points, axis=0) - np.sort(expected, axis=0)).max() < 1e-6  # single precision
    (tmp_path / "robot.xml").write_text(MJCF.format('refpos="0.1 0 0"'))
    moved = parflex.import_robot(tmp_path / "robot.xml", tmp_path / "robot.toml")
    assert "its origin is moved in the source" in {one.why for one in moved.dropped}


def test_a_mesh_in_the_format_of_mujoco_is_shown_as_its_own_sample_has_it(tmp_path):
    """The sample that comes with MuJoCo, of a human body."""
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    sample = Path(mujoco.__file__).parent / "testdata" / "abdomen_1_body.msh"
    if not sample.exists():
        pytest.skip("this MuJoCo comes without the sample")
    (tmp_path / "a.msh").write_bytes(sample.read_bytes())
    geom = '<worldbody><body><joint axis="1 1 0"/><geom type="mesh" mesh="m" pos="0.1 0 0.3"/></body></worldbody>'
    (tmp_path / "r.xml").write_text(f'<mujoco><asset><mesh name="m" file="a.msh"/></asset>{geom}</mujoco>')
    found = parflex.import_robot(tmp_path / "r.xml", tmp_path / "r.toml")
    assert not [one for one in found.dropped if one.kind == "mesh"]
    robot = parflex.load(found.file)
    drawn = scene(robot)
    mesh = next(mesh for mesh in drawn.meshes if mesh.name == "meshes")
    points = drawn.vertices(robot.home)[mesh.vertices]
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    expected = model.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    assert np.abs(np.sort(points, axis=0) - np.sort(np.unique(expected, axis=0), axis=0)).max() < 1e-6
