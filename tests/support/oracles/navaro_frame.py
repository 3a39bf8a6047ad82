"""The NaVARo as a frame of beams with the base joints locked: [Germain2015], with the errata of this project.

`Navaro` is the model to be timed: the assembly of a pose is a handful of array operations over its eighteen
elements, and LAPACK gives the six lowest of its ninety modes. `navaro_model` is the same robot made of joints and
nodes, with lumped masses and springs in the clutches on request.
"""

import numpy as np
import scipy.linalg

from .beam_element import Bar, element
from .frame import FrameModel

E = 74e9
LINK = Bar(E, E / 2.66, 2800, 2.4e-4, 1.152e-8, 2.0e-9, 5.902e-9, 1.352e-8, rotary=True)
ARM = Bar(E, E / 2.66, 2800, 4e-4, 3.333e-9, 5.333e-8, 1.123e-8, 5.6663e-8, rotary=True)
GAMMA = np.array([np.pi / 2, -5 * np.pi / 6, -np.pi / 6])
BASE, BAR, REACH = 0.7 / np.sqrt(3), 0.21, 0.2027
LEG = 28  # unknowns of a leg: four joints with three displacements, two common turns and two turns about their axis
COUNT = 3 * LEG + 6
TURN = -np.pi / 3
POSES = {
    1: (0.0, 0.0, 0.0),
    2: (0.0, 0.0, TURN),
    **{
        number: (radius * np.cos(angle), radius * np.sin(angle), TURN)
        for number, (radius, angle) in enumerate(
            [(radius, np.deg2rad(angle)) for angle in (30, 150, -90) for radius in (0.135, 0.21)], start=3
        )
    },
}


def directions(x: float, y: float, theta: float) -> np.ndarray:
    """Angles of the bars of each leg (3 x 3): A to D, D to E, E to the centre P. Not a number where it cannot reach."""
    A = BASE * np.exp(1j * GAMMA)
    arm = GAMMA + np.pi / 3 + theta
    to_E = x + 1j * y + REACH * np.exp(1j * arm) - A
    with np.errstate(invalid="ignore"):
        half = np.arccos(np.abs(to_E) / (2 * BAR))  # A, D, E have two equal sides; D on the right of A to E
    return np.stack([np.angle(to_E) - half, np.angle(to_E) + half, arm + np.pi], axis=-1)


class Navaro:
    """Constant parts of the model; `matrices` turns them into place at a pose."""

    def __init__(self) -> None:
        parts = [(BAR, LINK)] * 5 + [(REACH, ARM)]
        local = [element(length, bar) for length, bar in parts]
        self.K, self.M = (np.tile(np.array([pair[k] for pair in local]), (3, 1, 1)) for k in (0, 1))
        places = np.array([self._places(leg) for leg in range(3)]).reshape(18, 12)
        rows, columns = places[:, :, None], places[:, None, :]
        self.used = ((rows >= 0) & (columns >= 0)).ravel()  # what is clamped has the number -1
        self.target = (rows * COUNT + columns).ravel()[self.used]

    @staticmethod
    def _places(leg: int) -> list[list[int]]:
        """Unknowns of the elements AD, AB, BC, CD, DE, EP of a leg."""

        def joint(number: int, side: int) -> list[int]:
            first = leg * LEG + 7 * number
            return [*range(first, first + 5), first + 5 + side]

        ground, centre = [-1] * 6, list(range(3 * LEG, COUNT))
        D, B, C, E = range(4)
        return [
            ground + joint(D, 0),
            ground + joint(B, 0),
            joint(B, 1) + joint(C, 0),
            joint(C, 1) + joint(D, 1),
            joint(D, 1) + joint(E, 0),
            joint(E, 1) + centre,
        ]

    def matrices(self, x: float, y: float, theta: float) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and mass over the ninety unknowns."""
        AD, DE, EP = directions(x, y, theta).T
        angles = np.stack([AD, DE + np.pi, AD, DE, DE, EP], axis=-1).ravel()
        c, s = np.cos(angles), np.sin(angles)
        T = np.zeros((18, 4, 3, 4, 3))
        for k in range(4):
            T[:, k, 0, k, 0], T[:, k, 1, k, 1], T[:, k, 2, k, 2] = c, c, 1.0
            T[:, k, 0, k, 1], T[:, k, 1, k, 0] = s, -s
        T = T.reshape(18, 12, 12)
        turned = [(T.transpose(0, 2, 1) @ matrix @ T).ravel()[self.used] for matrix in (self.K, self.M)]
        K, M = (np.bincount(self.target, part, COUNT * COUNT).reshape(COUNT, COUNT) for part in turned)
        return K, M

    def modes(self, x: float, y: float, theta: float) -> tuple[np.ndarray, np.ndarray]:
        """The six lowest frequencies in Hz and their shapes."""
        K, M = self.matrices(x, y, theta)
        values, shapes = scipy.linalg.eigh(K, M, subset_by_index=[0, 5], overwrite_a=True, overwrite_b=True)
        return np.sqrt(values) / (2 * np.pi), shapes


def navaro_model(
    pose: tuple[float, float, float],
    masses: dict[str, float] | None = None,
    springs: tuple[float, float] | None = None,
    driven: str = "",
    disc: float = 0.0,
) -> FrameModel:
    """The robot of nodes and joints; masses at B to E, springs at A; `driven` digits: the link each clutch holds."""
    model = FrameModel()
    centre = model.node([pose[0], pose[1], 0])
    for leg, (gamma, (AD, DE, EP)) in enumerate(zip(GAMMA, directions(*pose), strict=True)):
        ways = {name: BAR * np.array([np.cos(angle), np.sin(angle), 0]) for name, angle in (("AD", AD), ("DE", DE))}
        A = BASE * np.array([np.cos(gamma), np.sin(gamma), 0])
        at = {"A": A, "D": A + ways["AD"], "B": A - ways["DE"]}
        at["C"], at["E"] = at["B"] + ways["AD"], at["D"] + ways["DE"]
        assert np.allclose(at["E"] + REACH * np.array([np.cos(EP), np.sin(EP), 0]), model.positions[centre])
        ends = {bar: [model.node(at[bar[0]]), model.node(at[bar[1]])] for bar in ("AD", "AB", "BC", "CD", "DE")}
        for first, last in ends.values():
            model.beam(first, last, LINK, _in_plane(model, first, last))
        arm = model.node(at["E"])
        model.beam(arm, centre, ARM, _in_plane(model, arm, centre))
        model.tie(ends["CD"][1], ends["DE"][0])
        for one, two in ((ends["AD"][1], ends["CD"][1]), (ends["AB"][1], ends["BC"][0])):
            model.tie(one, two, "revolute")
        model.tie(ends["BC"][1], ends["CD"][0], "revolute")
        model.tie(ends["DE"][1], arm, "revolute")
        for number, link in enumerate(("AD", "AB")):
            free = bool(driven) and driven[leg] != str(number + 1)
            model.tie(ends[link][0], None, "revolute" if free or springs is not None else "welded")
            if free:
                model.mass(ends[link][0], 0.0, np.diag([0, 0, disc]))
            elif springs is not None:
                model.spring([0, 0, 1], springs[number], ends[link][0])
        for name, mass in (masses or {}).items():
            model.mass({"B": ends["AB"][1], "C": ends["BC"][1], "D": ends["AD"][1], "E": ends["DE"][1]}[name], mass)
    return model


def _in_plane(model: FrameModel, first: int, last: int) -> np.ndarray:
    """Where y of the section points: in the plane of the robot, normal to the bar."""
    return np.cross([0, 0, 1], model.positions[last] - model.positions[first])
