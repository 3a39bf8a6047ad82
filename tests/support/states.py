"""Random states of a robot over its workspace."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from parflex import Configuration, ParflexError, Robot, configure

CONDITION_LIMIT = 1e4
MAX_RATE = 10.0


@dataclass
class Draws:
    """How many draws were states, out of reach, or too near a singularity."""

    states: int = 0
    unreachable: int = 0
    rejected: int = 0

    @property
    def rejected_share(self) -> float:
        return self.rejected / max(self.states + self.rejected, 1)


@dataclass(frozen=True)
class State:
    """A pose with a motion, by words as a user writes them."""

    configuration: Configuration
    velocity: dict[str, float]
    acceleration: dict[str, float]


def random_pose(robot: Robot, rng: np.random.Generator, spread: float) -> dict[str, float]:
    """A pose drawn about home: of the platform if there is one, else of the motors."""
    tree = robot.tree
    free = next((link for link in tree.links if link.joint.kind in ("free", "planar")), None)
    if free is None:
        home = {name: robot.home[tree.position_names.index(name)] for name in robot.actuated_names}
        return {name: value + rng.uniform(-2, 2) for name, value in home.items()}
    place = robot.home[free.q]
    if tree.planar:
        x, y = place[:2] + rng.uniform(-spread, spread, 2)
        return {"x": x, "y": y, "theta": place[2] + rng.uniform(-1, 1)}
    x, y, z = place[:3] + rng.uniform(-spread, spread, 3)
    if robot.mobility.freedoms(tree.n) < 6:
        return {"x": x, "y": y, "z": z}
    turn = rng.standard_normal(3)
    turn *= rng.uniform(0, 0.8) / np.linalg.norm(turn)
    from parflex.spatial.rotations import quaternion_product, vector_quaternion

    quaternion = quaternion_product(place[3:], vector_quaternion(turn))
    return {"x": x, "y": y, "z": z} | dict(zip(("qw", "qx", "qy", "qz"), quaternion, strict=True))


def random_motion(configuration: Configuration, rng: np.random.Generator) -> tuple[dict, dict]:
    """Velocity up to 10 rad/s in the fastest joint, and an acceleration, given by the platform or by motors."""
    robot, tree = configuration.robot, configuration.robot.tree
    motions = []
    for size in (MAX_RATE, 10 * MAX_RATE):
        rates = configuration.null_space @ rng.standard_normal(configuration.null_space.shape[1])
        rates *= rng.uniform(0.2, 1.0) * size / np.abs(rates).max()
        full = np.zeros(tree.n)
        full[robot.free] = rates * tree.rate_units[robot.free]
        motions.append(full)
    freedoms = robot.mobility.freedoms(len(robot.free))
    driven = list(robot.actuated)[:freedoms]  # spare motors follow
    if rng.random() < 0.5 or not any(link.joint.kind in ("free", "planar") for link in tree.links):
        return tuple({tree.rate_names[k]: motion[k] for k in driven} for motion in motions)
    twists = [configuration.frame_rows(tree.end_effector) @ motion for motion in motions]
    words = {0: "x", 1: "y", 5: "theta"} if tree.planar else dict(enumerate(("x", "y", "z", "rx", "ry", "rz")))
    velocity = {word: twists[0][k] for k, word in words.items()}
    chosen = list(words)[:freedoms]  # of an acceleration only as many components as there are freedoms can be chosen
    return velocity, {words[k]: twists[1][k] for k in chosen}


def random_states(robot: Robot, count: int, seed: int, draws: Draws, spread: float | None = None) -> Iterator[State]:
    """`count` states; draws out of reach and near singularities are counted, not hidden."""
    rng = np.random.default_rng(seed)
    spread = 0.35 * robot.tree.length if spread is None else spread
    while draws.states < count:
        if draws.unreachable + draws.rejected > 60 * count:
            raise AssertionError(f"too few states of {robot.name}: {draws}")
        try:
            configuration = configure(robot, random_pose(robot, rng, spread))
        except ParflexError:
            draws.unreachable += 1
            continue
        assert configuration.closure_error < 1e-12  # Newton's method ends at rounding, not at its limit of 1e-10
        condition = configuration.condition
        if max(condition.platform, condition.closures, *condition.legs.values(), 1.0) > CONDITION_LIMIT:
            draws.rejected += 1
            continue
        draws.states += 1
        yield State(configuration, *random_motion(configuration, rng))
