"""Build the tree from a description: links, places and beam meshes.

A beam has nodes at the ends of equal elements, and wherever a load other than its inertia acts. Cubic shapes are exact
if loads act at nodes alone; between two nodes they lack the deflection of a beam clamped at both nodes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.bodies.elastic import Body, Node
from parflex.bodies.rigid import RigidBody
from parflex.robotfile import schema
from parflex.robotfile.checks import refuse, refuse_unknown
from parflex.robotfile.values import INSIDE, LIMIT_KEYS, position_along_beam, split_place
from parflex.spatial.rotations import compose, mdh_transform, rotation_from_vector
from parflex.tree import joints
from parflex.tree.build_elements import (
    inner_point_error,
    place_named,
    read_element,
    read_modal,
    read_reduced,
    read_superelement,
    with_elements,
)
from parflex.tree.force_elements import JointTerms, coupled_spring
from parflex.tree.tree import GROUND, Link, Place, Tree, new_link, node_of, place_on_node

Array = np.ndarray
SAME_PLACE = 1e-6  # of the extent of a body: points that were rounded otherwise are still the same
AXIS_NAMES = {
    "universal": (("1", "revolute", 2), ("2", "revolute", 0)),
    "cylindrical": (("1", "revolute", 2), ("2", "prismatic", 2)),
}

MAX_BEAM_ELEMENTS = 32  # equal ones, into which a beam is cut so that its nodes are where something is mounted
SAME_NODE = Fraction(1, 10**9)  # of the length of a beam
# of an element: so near to a node, a beam clamped at both nodes deflects by less than 1e-7 of what it does in its
# middle, and a node of its own would need an element that is 1e9 times as stiff as the others
SHORT = Fraction(1, 1000)


class _Builder:
    def __init__(self, robot: schema.RobotFile, refine: int, nodes: Collection[str]) -> None:
        self.robot = robot
        self.refine = refine
        self.more_nodes = _by_body(nodes)
        self.planar = robot.motion == "planar"
        self.links: list[Link] = []
        self.nodes: dict[int, dict[str, int]] = {}  # of each body given by modes, the links on its nodes
        self.roots: dict[int, str] = {}  # of each super-element that its frame holds, the node there
        self.places: dict[str, Place] = {"base": Place(GROUND, np.eye(3), np.zeros(3))}
        self.mounts, self.pulls = _by_body(mounted_names(robot)), _by_body(pulled_names(robot))

    def build(self) -> Tree:
        robot = self.robot
        if robot.platform is not None:
            platform = robot.platform
            joint = joints.planar() if self.planar else joints.free()
            start = joints.start_values(joint, platform.start, f"{platform.name}: start")
            flexible = platform.modal is not None or platform.superelement is not None
            rigid = read_body(platform.inertia, platform.point_masses), None
            body, root = self._flexible_body(platform, free=True) if flexible else rigid
            self._add_link(platform.name, self.places["base"], joint, body, start)
            if flexible:
                self._add_nodes(platform.name, body, root)
        waiting: list[schema.Frame | schema.Point] = [*robot.frame, *robot.point]
        while waiting:
            later = []
            for entry in waiting:
                parent = self._parent(entry)
                if parent is not None:
                    self._add(entry, parent)
                else:
                    later.append(entry)
            if len(later) == len(waiting):
                entry, key = later[0], f"'{later[0].name}': "
                if isinstance(entry, schema.Point):
                    refuse_unknown(entry.frame, self.places, "frame or node", f"point {key}frame")
                else:
                    refuse_unknown(entry.parent, self.places, "frame or node", f"frame {key}parent")
            waiting = later
        check_ends(robot, self.places, self.links)
        refuse(not self.links, "no joint of the robot moves", "frame", None, "give at least one frame a joint")
        coupled = {name for coupling in robot.coupling for name in (coupling.joint, *coupling.others)}
        self.links = [replace(link, counted=True) if link.name in coupled else link for link in self.links]
        moving = [frame.name for frame in robot.frame if _moves(frame)]
        last = robot.platform.name if robot.platform is not None else moving[-1]
        end, gravity = robot.end_effector or last, np.array(robot.gravity)
        tree = with_elements(Tree(tuple(self.links), self.places, gravity, self.planar, end), robot)
        elastic = [coupling for coupling in robot.coupling if coupling.stiffness is not None]
        return replace(tree, springs=tuple(coupled_spring(coupling, tree.links) for coupling in elastic))

    def _flexible_body(self, entry: schema.Frame | schema.PlatformTable, free: bool) -> tuple[Body, str | None]:
        """Return a modal body or superelement, and the name of its clamped node if it has several.

        No mode may move the body at the frame or node where it is clamped.
        """
        if entry.superelement is not None:
            return read_superelement(self.robot, entry.name, entry.superelement, free)
        assert entry.modal is not None
        body = read_modal(self.robot, entry.name, entry.modal)
        if free:
            return body, None
        origin_nodes = [n for n in body.nodes.values() if np.linalg.norm(n.r0) < SAME_PLACE * self._extent(body)]
        clamped = any(not n.Phi_d.any() and n.turns and not n.Phi_r.any() for n in origin_nodes)
        message, key = "the modes move the body at the origin of its frame", f"frame '{entry.name}': modal.file"
        hint = "give modes of the body clamped at the origin of its frame, with a node there"
        refuse(not clamped, message, key, entry.modal.file, hint)
        return body, None

    def _parent(self, entry: schema.Frame | schema.Point) -> Place | None:
        """Return the place on which an entry is mounted, if it exists; a point may be inside a flexible body."""
        if isinstance(entry, schema.Frame):
            location = self.places.get(entry.parent)
            if location is not None and location.inner is not None:
                raise inner_point_error(f"frame '{entry.name}': parent", entry.parent)
            return location
        owner, _ = split_place(entry.frame) or ("", "")
        if entry.frame in self.places or not (f"{owner}.tip" in self.places or self._number(owner) in self.nodes):
            return self.places.get(entry.frame)
        return place_named(entry.frame, f"point '{entry.name}': frame", self.places, self.links)

    def _number(self, name: str) -> int | None:
        return self.places[name].link if name in self.places else None

    def _add(self, entry: schema.Frame | schema.Point, parent: Place) -> None:
        if isinstance(entry, schema.Point):
            rotation, position = rotation_from_vector(entry.rotation), np.array(entry.position)
        elif entry.mdh is not None:
            rotation, position = mdh_transform(**vars(entry.mdh))
        else:
            place = entry.place or schema.Placement()
            rotation, position = rotation_from_vector(place.rotation), np.array(place.position)
        location = Place(parent.link, *compose(parent.rotation, parent.position, rotation, position), parent.inner)
        location = self._on_node(location, entry)
        if isinstance(entry, schema.Point):
            self.places[entry.name] = location
            return
        body = read_body(entry.inertia, entry.point_masses)
        if entry.beam is not None:
            self._add_beam(entry, entry.beam, location, body)
        elif entry.modal is not None or entry.superelement is not None:
            flexible, root = self._flexible_body(entry, entry.joint == "free")
            self._add_joint(entry, location, flexible)
            self._add_nodes(entry.name, flexible, root)
        elif entry.joint == "fixed":
            self.places[entry.name] = location
            if location.link != GROUND:
                carrier = self.links[location.link]
                carried_body = body.in_parent(location.rotation, location.position)
                self.links[location.link] = replace(carrier, body=carrier.body.with_rigid(carried_body))
        else:
            self._add_joint(entry, location, body)

    def _add_joint(self, frame: schema.Frame, location: Place, body: Body) -> None:
        if frame.joint == "fixed":
            self._add_link(frame.name, location, joints.fixed(), body, np.zeros(0), leg=frame.name)
            return
        if self.planar:
            self._check_in_plane(frame, location)
        key = f"frame '{frame.name}': start"
        if frame.joint in AXIS_NAMES:
            parts = AXIS_NAMES[frame.joint]
            values = frame.start or (0.0,) * len(parts)
            unequal = len(values) != len(parts)
            refuse(unequal, f"one start value for {len(parts)} axes", key, None, "give one for each")
            for number, ((label, kind, axis), value) in enumerate(zip(parts, values, strict=True)):
                joint = joints.AROUND_AXIS[kind](axis)
                last = number == len(parts) - 1
                name = f"{frame.name}.{label}"
                self._add_link(name, location, joint, body if last else RigidBody(), np.array([value]), leg=frame.name)
                location = Place(len(self.links) - 1, np.eye(3), np.zeros(3))
            self.places[frame.name] = location
            return
        joint = joints.JOINTS[frame.joint]() if frame.pitch is None else joints.helical(frame.pitch)
        joint = joints.planar() if self.planar and joint.moves_freely else joint
        start = joints.start_values(joint, frame.start, key)
        self._add_link(frame.name, location, joint, body, start, joint_terms(frame), frame, leg=frame.name)

    def _add_beam(self, frame: schema.Frame, spec: schema.Beam, location: Place, rigid: RigidBody) -> None:
        """Add the elements of a beam in series, each after the first on the node of the previous element."""
        wrong, message = frame.joint in ("universal", "cylindrical"), "a beam needs a joint with one axis or none"
        refuse(wrong, message, f"frame '{frame.name}': beam", None, "add a frame for it")
        attachments = self.mounts.get(frame.name, ()), self.pulls.get(frame.name, ())
        mesh = beam_mesh(frame.name, spec.elements, self.refine, *attachments, self.more_nodes.get(frame.name, ()))
        ends, bodies = self._parts(frame.name, spec, mesh)
        self._add_joint(frame, location, bodies[0].with_rigid(rigid))
        nodes = {0: self.places[frame.name]}
        for number, before, body in zip(ends, bodies, [*bodies[1:], RigidBody()], strict=True):
            name, tip = mesh.names[number], before.nodes["tip"]
            mount = Place(len(self.links) - 1, np.eye(3), tip.r0)
            self._add_link(name, mount, joints.fixed(), body, np.zeros(0), leg=frame.name, node=tip)
            nodes[number] = self.places[name]
        self.places |= {f"{frame.name}{INSIDE}{where}": nodes[number] for where, number in mesh.tied.items()}
        if spec.reduce is not None:
            self._name_inner_nodes(mesh, spec.elements, nodes)

    def _parts(self, name: str, spec: schema.Beam, mesh: BeamMesh) -> tuple[list[int], list[Body]]:
        """Return the nodes along a beam, and the body before each: elements, or a reduced body from tie to tie."""
        last = len(mesh.names) - 1
        if spec.reduce is None:
            counts = mesh.counts()
            elements = {count: read_element(self.robot, name, spec, count) for count in set(counts)}
            return list(range(1, last + 1)), [elements[count] for count in counts]
        acts = {**mounted_names(self.robot), **pulled_names(self.robot)}
        inner = {number for number in range(1, last) if mesh.names[number] in acts}
        ends = sorted({*inner, *mesh.acting, 0, last})
        bodies: list[Body] = [
            read_reduced(self.robot, name, spec, b - a, float(mesh.shares[b] - mesh.shares[a]))
            for a, b in pairwise(ends)
        ]
        return ends[1:], bodies

    def _name_inner_nodes(self, mesh: BeamMesh, elements: int, nodes: dict[int, Place]) -> None:
        """Name the unloaded nodes of a reduced beam as places inside it."""
        ends = sorted(nodes)
        for number, share in enumerate(mesh.shares):
            if number not in nodes and (share * elements).denominator == 1:
                after = next(end for end in ends if end > number)
                before = ends[ends.index(after) - 1]
                first, second = mesh.shares[before], mesh.shares[after]
                link, xi = nodes[before].link, float((share - first) / (second - first))
                inside = self.links[link].body.inner
                assert inside is not None
                self.places[mesh.names[number]] = place_on_node(link, self.links[link], inside.node(repr(xi)))

    def _add_nodes(self, name: str, body: Body, root: str | None) -> None:
        """Add a massless link on every interface node of a modal body; the clamped node is its frame.

        Nodes on which the file mounts something are added too; unknown nodes are refused with the key that
        names them.
        """
        carrier = len(self.links) - 1
        self.nodes[carrier] = {}
        if root is not None:
            self.places[f"{name}.{root}"] = Place(carrier, np.eye(3), np.zeros(3))
            self.roots[carrier] = f"{name}.{root}"
        nodes = {f"{name}.{node_name}": node for node_name, node in body.nodes.items()}
        inside = [where for where in self.mounts.get(name, ()) if f"{name}.{where}" not in {*self.places, *nodes}]
        if body.inner is not None:
            inner = {f"{name}{INSIDE}{where}": node_of(body, where) for where in inside}
            nodes |= {where: node for where, node in inner.items() if node is not None}
        for node_name, node in nodes.items():
            mount = Place(carrier, np.eye(3), node.r0)
            self._add_link(node_name, mount, joints.fixed(), RigidBody(), np.zeros(0), leg=name, node=node)
            self.nodes[carrier][node_name] = len(self.links) - 1
        for where in self.mounts.get(name, ()):
            if f"{name}.{where}" in self.places:
                self.places[f"{name}{INSIDE}{where}"] = self.places[f"{name}.{where}"]

    @staticmethod
    def _extent(body: Body) -> float:
        return max((float(np.linalg.norm(node.r0)) for node in body.nodes.values()), default=0.0) or 1.0

    def _on_node(self, location: Place, entry: schema.Frame | schema.Point) -> Place:
        """Return a place on a modal body as a place on one of its nodes."""
        if location.link not in self.nodes or location.inner is not None or location.link in self.roots:
            return location  # what sits on the frame of a super-element sits on the node that is held there
        kind = "point" if isinstance(entry, schema.Point) else "frame"
        body = self.links[location.link].body
        distances = {
            name: float(np.linalg.norm(self.links[link].position - location.position))
            for name, link in self.nodes[location.link].items()
        }
        nearest = min(distances, key=lambda name: distances[name], default=None)
        where = f", the nearest node '{nearest}' is {distances[nearest]:.3g} m away" if nearest else ""
        far = nearest is None or distances[nearest] > SAME_PLACE * self._extent(body)
        message = f"there is no node of '{self.links[location.link].name}' at this position{where}"
        value, hint = tuple(map(float, location.position)), "place it on a node, or make the modal data with one there"
        refuse(far, message, f"{kind} '{entry.name}'", value, hint)
        node_link = self.nodes[location.link][str(nearest)]
        fixed = kind == "frame" and not self.links[node_link].node.turns  # type: ignore[union-attr]
        hint = "give them in the modal data; only a spherical closure is possible without them"
        message = f"the rotations of the node '{nearest}' are not known"
        refuse(fixed, message, f"frame '{entry.name}': parent", nearest, hint)
        return Place(node_link, location.rotation, np.zeros(3))

    def _check_in_plane(self, frame: schema.Frame, location: Place) -> None:
        """Raise unless revolute axes are normal to the plane and prismatic axes in it, at any pose."""
        normal = (self._neutral_rotation(location.link) @ location.rotation)[2, 2]
        slides = frame.joint == "prismatic"
        wrong = abs(normal) > 1e-9 if slides else abs(abs(normal) - 1) > 1e-9
        message = f"the z axis of a {frame.joint} joint must {'lie in' if slides else 'be normal to'} the plane"
        key, hint = f"frame '{frame.name}': ", 'correct the placement, or use motion = "spatial"'
        refuse(wrong, message, key + ("mdh" if frame.mdh else "place"), None, hint)

    def _neutral_rotation(self, link: int) -> Array:
        """Return the world rotation of a link with all joints at zero; planar poses add rotations about z."""
        rotation = np.eye(3)
        while link != GROUND:
            rotation = self.links[link].rotation @ rotation
            link = self.links[link].parent
        return rotation

    def _add_link(
        self,
        name: str,
        location: Place,
        joint: joints.Joint,
        body: Body,
        start: Array,
        terms: JointTerms = JointTerms(),
        limits_of: schema.Frame | None = None,
        leg: str | None = None,
        node: Node | None = None,
    ) -> None:
        more: dict[str, Any] = {} if limits_of is None else {key: getattr(limits_of, key) for key in LIMIT_KEYS}
        more |= {"terms": terms, "leg": self.robot.leg_of.get(leg) if leg else None, "node": node}
        self.links.append(new_link(self.links, name, location, joint, body, start, **more))
        self.places[name] = Place(len(self.links) - 1, np.eye(3), np.zeros(3))


def _moves(frame: schema.Frame) -> bool:
    flexible = (frame.beam, frame.modal, frame.superelement)
    return frame.joint != "fixed" or any(body is not None for body in flexible)


def build_tree(robot: schema.RobotFile, refine: int = 1, nodes: Collection[str] = ()) -> Tree:
    """Return the tree of a checked description; each beam element is divided into `refine`, then at `nodes`."""
    return _Builder(robot, refine, nodes).build()


def read_body(inertia: schema.Inertia, point_masses: tuple[schema.PointMass, ...] = ()) -> RigidBody:
    """Return the body of a frame with its point masses."""
    if inertia.mass is not None:
        body = RigidBody.from_centre(inertia.mass, inertia.centre, schema.central_matrix(inertia.about_centre))
    else:
        i = inertia
        body = RigidBody.from_khalil(i.M, (i.MX, i.MY, i.MZ), i.XX, i.XY, i.XZ, i.YY, i.YZ, i.ZZ)
    for point in point_masses:
        body = body + RigidBody.from_centre(point.mass, point.position, schema.central_matrix(point.about_centre))
    return body


def joint_terms(frame: schema.Frame) -> JointTerms:
    """Return the terms of the joint of a frame; directional friction as mean and difference."""
    spring, friction = frame.spring, frame.friction
    viscous, coulomb = friction.viscous + frame.inertia.FV, friction.coulomb + frame.inertia.FS
    (viscous, more_viscous), (coulomb, more_coulomb) = (
        _mean_and_asymmetry(viscous, friction.viscous_back),
        _mean_and_asymmetry(coulomb, friction.coulomb_back),
    )
    return JointTerms(
        motor_inertia=frame.motor_inertia + frame.inertia.IA,
        viscous=viscous,
        coulomb=coulomb,
        stiffness=spring.stiffness if spring else 0.0,
        rest=spring.rest if spring else 0.0,
        damper=frame.damper,
        static=friction.static - more_coulomb if friction.static else 0.0,
        more_viscous=more_viscous,
        more_coulomb=more_coulomb,
        offset=friction.offset,
    )


def _mean_and_asymmetry(forward: Any, backward: Any | None) -> tuple[Any, Any]:
    """Return the mean of a number for positive and negative rates, and the deviation of the first."""
    return (forward, 0.0) if backward is None else ((forward + backward) / 2, (forward - backward) / 2)


def check_ends(robot: schema.RobotFile, places: Mapping[str, Place], links: Sequence[Link]) -> None:
    """Raise unless all named frames exist, and frames that need a link are not inside a body."""
    for name in (robot.end_effector, *(motion.frame for motion in robot.motions.values())):
        if name is not None and place_named(name, "end_effector", places, links) is None:
            refuse_unknown(name, places, "node", "end_effector")
    end = robot.end_effector
    if end is not None and places[end].inner is not None:
        raise inner_point_error("end_effector", end)
    for visual in robot.visual:
        refuse_unknown(visual.frame, places, "frame or node", "visual.frame")
    for closure in robot.closure:
        _check_closure(closure, places, links)


def _check_closure(closure: schema.Closure, places: Mapping[str, Place], links: Sequence[Link]) -> None:
    """Raise unless both ends exist on two bodies; nodes without rotations need ball joints."""
    key = f"closure '{closure.name or '~'.join(closure.between)}'"
    for end in closure.between:
        refuse_unknown(end, places, "node", f"{key}: between")
        if places[end].inner is not None:
            raise inner_point_error(f"{key}: between", end)
        link = places[end].link
        node = links[link].node if link != GROUND else None
        unknown = node is not None and not node.turns and closure.joint != "spherical"
        message = f"the rotations of the node at '{end}' are not known"
        hint = 'give them in the modal data, or use joint = "spherical"'
        refuse(unknown, message, f"{key}: joint", closure.joint, hint)
    first_link, second_link = (places[end].link for end in closure.between)
    message, hint = "both ends of the closure are on the same body", "name places on two bodies, or remove the closure"
    same = first_link == second_link  # its rows are zero but for rounding, which would count as constraints
    refuse(same, message, f"{key}: between", closure.between, hint)


@dataclass(frozen=True)
class BeamMesh:
    """Nodes of a beam from root to tip, as shares of its length and by name.

    `tied` are the nodes at places with loads, by place; `acting` includes nodes very near to such places.
    """

    shares: tuple[Fraction, ...]
    names: tuple[str, ...]
    tied: Mapping[str, int]
    acting: frozenset[int]

    def counts(self) -> list[int | float]:
        """Return for each element the number of such elements in the whole beam."""
        counts = [1 / (b - a) for a, b in pairwise(self.shares)]
        return [int(count) if count.denominator == 1 else float(count) for count in counts]


def beam_mesh(
    name: str,
    elements: int,
    refine: int,
    mounted: Collection[str],
    pulled: Collection[str],
    more: Collection[str] = (),
) -> BeamMesh:
    """Return the mesh of a beam with mounted and pulled places; elements are divided into `refine`.

    Mounted places subdivide all elements equally while the number stays small; otherwise a node divides one
    element. Nodes at the places `more` are added last, under names such as `BEAM@0.37`, and move no other node.
    """
    places = {
        where: Fraction(repr(s)) for where in (*mounted, *pulled) if (s := position_along_beam(where)) is not None
    }
    total = elements * _equal_parts(elements, [places[where] for where in mounted if where in places])
    base = [Fraction(k, total) for k in range(total + 1)]
    for where in sorted(places, key=lambda where: where not in mounted):
        _add_node(base, places[where], f"{name}@{where}" if where in mounted else None, Fraction(1, total))
    shares = [a + (b - a) * k / refine for a, b in pairwise(base) for k in range(refine)] + [Fraction(1)]
    named = dict(zip(shares, _names(name, shares, elements), strict=True))
    for where in more:
        _add_node(shares, Fraction(where), None, Fraction(1, total * refine))
        named.update({share: f"{name}{INSIDE}{where}" for share in shares if share not in named})
    nodes = {where: _nearest(shares, s) for where, s in places.items()}
    tied = {where: k for where, k in nodes.items() if abs(shares[k] - places[where]) < SAME_NODE}
    acting = frozenset({*nodes.values(), *(_nearest(shares, Fraction(where)) for where in more)})
    return BeamMesh(tuple(shares), tuple(named[share] for share in shares), tied, acting)


def _equal_parts(elements: int, places: Iterable[Fraction]) -> int:
    """Return the number of equal parts of each element with nodes at the places; 1 if that is too many."""
    for parts in range(1, max(MAX_BEAM_ELEMENTS // elements, 1) + 1):
        along = [s * elements * parts for s in places]
        if all(abs(x - round(x)) < SAME_NODE * elements * parts for x in along):
            return parts
    return 1


def _add_node(shares: list[Fraction], s: Fraction, mounted: str | None, element: Fraction) -> None:
    """Add a node at a place without one; very near to a node, only mounted places need their own."""
    gap = abs(shares[_nearest(shares, s)] - s)
    if gap >= max(SHORT * element, SAME_NODE):
        shares.insert(bisect_left(shares, s), s)
    elif gap >= SAME_NODE and mounted is not None:
        message = f"something is mounted on '{mounted}', {float(gap / element):.2g} elements from a node: "
        message += "such a short element is too stiff for floating point"
        hint = f"mount it on the node, at {float(shares[_nearest(shares, s)]):.6g}, or take fewer elements"
        refuse(True, message, f"frame '{mounted.partition('@')[0]}': beam.elements", mounted, hint)


def _nearest(shares: list[Fraction], s: Fraction) -> int:
    return min(range(len(shares)), key=lambda k: abs(shares[k] - s))


def _names(beam: str, shares: list[Fraction], elements: int) -> list[str]:
    """Return node names: BEAM.2 is the second node of the file, BEAM.2.1 the first after it."""
    names, subindex = [beam], 0
    for s in shares[1:-1]:
        element = s * elements
        subindex = 0 if element.denominator == 1 else subindex + 1
        names.append(f"{beam}.{int(element)}.{subindex}" if subindex else f"{beam}.{int(element)}")
    return [*names, f"{beam}.tip"]


def mounted_names(robot: schema.RobotFile) -> dict[str, None]:
    """Return the names of places with frames, closures or the end effector."""
    ties = [closure.between for closure in robot.closure]
    ties += [element.between for element in robot.element if element.kind == "rod" or element.measured]
    names = [*(frame.parent for frame in robot.frame), *(end for between in ties for end in between)]
    return dict.fromkeys([*names, robot.end_effector or ""])


def pulled_names(robot: schema.RobotFile) -> dict[str, None]:
    """Return the names of nodes and places of beams on which elements act, also through points."""
    beams = {frame.name for frame in robot.frame if frame.beam is not None}
    points = {point.name: point.frame for point in robot.point}
    pulling = [element for element in robot.element if element.kind != "rod" and not element.measured]
    names = [end for element in pulling for end in element.between]
    while any(name in points for name in names):  # a point may be on another one
        names = [points.get(name, name) for name in names]
    return dict.fromkeys(name for name in names if (split_place(name) or (name.rpartition(".")[0],))[0] in beams)


def _by_body(names: Iterable[str]) -> dict[str, list[str]]:
    places_by_body: dict[str, list[str]] = {}
    for owner, where in filter(None, map(split_place, names)):
        places_by_body.setdefault(owner, []).append(where)
    return places_by_body
