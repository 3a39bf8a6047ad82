"""Equilibria to which loads that grow lead: potentials of their own, and random mechanisms of one and two freedoms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from support.truss import TRUSS

import parflex
from parflex.models.elastic.equilibrium import BEYOND

ARM = """
format = 1
name = "arm"
motion = "planar"
gravity = [0, -9.81, 0]
end_effector = "arm"
[[frame]]
name = "motor"
joint = "revolute"
actuated = true
start = 1.0
[[frame]]
name = "arm"
parent = "motor"
joint = "revolute"
spring = { stiffness = 15.0 }
inertia = { mass = 2.0, centre = [1.0, 0, 0], about_centre = [0, 0, 0.1] }
"""
COLUMN = """
format = 1
name = "column"
motion = "planar"
gravity = [0, 0, 0]
end_effector = "rod.tip"
[materials.steel]
elastic_modulus = 210e9
density = 7850
[sections.bar]
shape = "rectangle"
y = 0.004
z = 0.03
[[frame]]
name = "turn"
joint = "revolute"
actuated = true
[[frame]]
name = "rod"
parent = "turn"
beam = { length = 0.8, material = "steel", section = "bar", elements = 2 }
"""


def written(folder, text: str):
    path = folder / "robot.toml"
    path.write_text(text)
    return parflex.load(str(path))


def test_an_arm_that_its_weight_pulls_far_down_comes_to_rest_where_its_spring_holds_it(tmp_path):
    """At the pose its stiffness is negative under all of the weight: Newton's method goes up from there."""
    rest = parflex.equilibrium(written(tmp_path, ARM))
    own = scipy.optimize.brentq(lambda sag: 15.0 * sag + 2.0 * 9.81 * np.cos(1.0 + sag), -2.0, 0.0, xtol=1e-14)
    assert rest.configuration.q[1] == pytest.approx(own, abs=1e-10)  # rounding over the stiffness
    assert rest.stable and not rest.snaps


@pytest.mark.parametrize("times", [1.1, 60.0])  # of the limit load; Newton's method finds nothing, or jumps unseen
def test_a_truss_beyond_its_limit_load_rests_on_its_other_side_and_that_is_said(tmp_path, times):
    height = np.linspace(0.0, 0.05, 100001)
    pull = 1000 * (np.hypot(1, 0.05) / np.hypot(1, height) - 1) * height
    force = times * pull.max()

    def left(z: float) -> float:
        return 1000 * (np.hypot(1, 0.05) / np.hypot(1, z) - 1) * z - force

    bent = parflex.deflection(written(tmp_path, TRUSS), {"lift": 0.0}, wrench={"roof": [0, 0, -force]})
    own = scipy.optimize.brentq(left, -1.0, -0.05, xtol=1e-14)
    assert bent.frames["roof"][2] == pytest.approx(own - 0.05, abs=1e-9)
    assert BEYOND in bent.warnings


@pytest.mark.verify
def test_a_column_that_leans_buckles_to_the_side_it_leans_to(tmp_path):
    """Above its buckling load; Newton's method from the pose ends on the other side, or upright."""
    buckling = np.pi**2 * 210e9 * 0.03 * 0.004**3 / 12 / 4 / 0.8**2
    column = written(tmp_path, COLUMN)
    rest = parflex.equilibrium(column, {"turn": np.pi / 2 + 0.02}, wrench={"rod.tip": [0, -1.2 * buckling, 0]})
    tip = rest.configuration.at.of(column.tree.places["rod.tip"])[1]
    assert rest.stable and not rest.snaps and tip[0] < -0.25


# -- random mechanisms -----------------------------------------------------------------------------------


@pytest.mark.few
@pytest.mark.parametrize("lean", [3e-2, 1e-3, -1e-4])
def test_a_column_that_leans_little_bends_far_beyond_its_critical_load(lean, tmp_path):
    """Three bars on springs, the stiffest at the foot; its own potential over absolute angles, loads grown."""
    k, load, n = np.array([60.0, 30.0, 30.0]), 21.0, 3  # the load is 1.3 times that at which a straight one buckles
    begun = np.pi / 2 + lean * np.arange(1, n + 1)
    text = 'format = 1\nname = "column"\nmotion = "planar"\ngravity = [0, 0, 0]\nend_effector = "tip"\n'
    text += '[[frame]]\nname = "motor"\njoint = "revolute"\nactuated = true\ninertia = { mass = 1 }\n'
    for i, (parent, turn) in enumerate(zip(["base", "bar0", "bar1"], np.diff(begun, prepend=0.0), strict=True)):
        place = "place = { position = [0.5, 0, 0] }\n" * (i > 0)
        text += f'[[frame]]\nname = "bar{i}"\nparent = "{parent}"\njoint = "revolute"\nstart = {turn}\n{place}'
        text += f"spring = {{ stiffness = {k[i]}, rest = {turn} }}\ninertia = {{ mass = 0.1, centre = [0.5, 0, 0] }}\n"
    text += '[[point]]\nname = "tip"\nframe = "bar2"\nposition = [0.5, 0, 0]\n'
    rest = parflex.equilibrium(written(tmp_path, text), wrench={"tip": [0, -load, 0]})
    difference = np.eye(n) - np.eye(n, k=-1)
    stiff, angles = difference.T @ np.diag(k) @ difference, begun.copy()
    critical = np.linalg.eigvalsh(stiff)[0] / 0.5
    assert 1.2 * critical < load < 1.4 * critical
    for share in np.linspace(0, 1, 4001)[1:]:
        for _ in range(3):
            slope = stiff @ (angles - begun) + share * load * 0.5 * np.cos(angles)
            angles = angles - np.linalg.solve(stiff - np.diag(share * load * 0.5 * np.sin(angles)), slope)
    assert rest.stable and not rest.snaps
    assert np.cumsum(rest.configuration.q[1:]) == pytest.approx(
        angles, abs=1e-8
    )  # both by Newton's method, to rounding
    assert abs(angles - begun).max() > 0.5 and np.sign(angles[-1] - np.pi / 2) == np.sign(lean)


class Mechanism:
    """One or two joints in a row with springs, weights, a force and a moment at the tip, and a spring to the ground."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.n = n = int(draw.integers(1, 3))
        self.g = float(draw.choice([0.0, -9.81]))
        self.turns = draw.random(n) < 0.7
        self.lengths, self.masses = draw.uniform(0.3, 1.0, n), draw.uniform(0.2, 3.0, n)
        self.start = np.where(self.turns, draw.uniform(-3, 3, n), draw.uniform(-0.3, 0.3, n))
        self.k = np.where(self.turns, 10 ** draw.uniform(0.3, 2, n), 10 ** draw.uniform(1.5, 3, n))
        self.rests = self.start + np.where(draw.random(n) < 0.4, draw.uniform(-0.5, 0.5, n), 0.0)
        self.force = draw.uniform(-1, 1, 2) * 10 ** draw.uniform(0.0, 2.5)
        self.moment = float(draw.uniform(-1, 1) * 10 ** draw.uniform(-1, 1) * (draw.random() < 0.3))
        self.tied, self.anchor = bool(draw.random() < 0.4), draw.uniform(-1, 1, 2)
        self.tie = float(10 ** draw.uniform(1, 2.5))
        stretch = float(draw.choice([0.0, draw.uniform(-0.2, 0.2)]))
        self.tie_rest = float(np.linalg.norm(self.places(self.start)[0][-1] - self.anchor)) + stretch

    def places(self, q, xp=np):
        angle, here, found = 0.0, xp.zeros(2), []
        for k in range(self.n):
            if self.turns[k]:
                angle = angle + q[k]
            along = xp.stack([xp.cos(angle), xp.sin(angle)])
            here = here + along * (self.lengths[k] + (0.0 if self.turns[k] else q[k]))
            found.append(here)
        return found, angle

    def text(self) -> str:
        words = [
            f'format = 1\nname = "m"\nmotion = "planar"\ngravity = [0, {self.g}, 0]\nend_effector = "tip"\n'
            '[[frame]]\nname = "motor"\njoint = "revolute"\nactuated = true\ninertia = { mass = 1, about_centre = '
            "[0, 0, 1] }\n"
        ]
        parent = "base"
        for k in range(self.n):
            length = self.lengths[k]
            kind = "revolute" if self.turns[k] else "prismatic"
            centre = f"[{length}, 0, 0]" if self.turns[k] else f"[0, 0, {length}]"
            place, back = ("", "") if self.turns[k] else ('place = { rotation = [0, "pi/2", 0] }\n',
                                                         ', rotation = [0, "-pi/2", 0]')  # fmt: skip
            words.append(
                f'[[frame]]\nname = "j{k}"\nparent = "{parent}"\njoint = "{kind}"\n{place}start = {self.start[k]}\n'
                f"spring = {{ stiffness = {self.k[k]}, rest = {self.rests[k]} }}\n"
                f"inertia = {{ mass = {self.masses[k]}, centre = {centre}, about_centre = [0.01, 0.01, 0.01] }}\n"
                f'[[frame]]\nname = "p{k}"\nparent = "j{k}"\nplace = {{ position = {centre}{back} }}\n'
            )
            parent = f"p{k}"
        words.append(f'[[point]]\nname = "tip"\nframe = "{parent}"\n')
        if self.tied:
            x, y = self.anchor
            words.append(
                f'[[point]]\nname = "anchor"\nframe = "base"\nposition = [{x}, {y}, 0]\n[[element]]\nname = "tie"\n'
                f'kind = "spring"\nbetween = ["anchor", "tip"]\nstiffness = {self.tie}\nrest = {self.tie_rest}\n'
            )
        return "".join(words)

    def slopes(self):
        """First and second derivative of the potential with a share of the loads, by JAX."""
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        xp = jax.numpy

        def inner(q):
            found = 0.5 * xp.sum(self.k * (q - self.rests) ** 2)
            if self.tied:
                length = xp.sqrt(xp.sum((self.places(q, xp)[0][-1] - self.anchor) ** 2))
                found = found + 0.5 * self.tie * (length - self.tie_rest) ** 2
            return found

        def loads(q):
            places, angle = self.places(q, xp)
            weights = sum(m * self.g * place[1] for m, place in zip(self.masses, places, strict=True))
            return -(xp.sum(self.force * places[-1]) + self.moment * angle + weights)

        held = jax.grad(inner)(xp.array(self.start))
        potential = lambda q, s: inner(q) + s * loads(q) - (1 - s) * xp.sum(held * q)  # noqa: E731
        return jax.jit(jax.grad(potential)), jax.jit(jax.hessian(potential))

    def led(self, first, second) -> np.ndarray | None:
        """Where shares that grow by a thousandth and less lead in stable states; None where they lead no further."""
        q, share, step = self.start.copy(), 0.0, 1e-3
        while share < 1.0:
            ahead = min(1.0, share + step)
            change = first(q, 1.0) - first(q, 0.0)
            told = -np.linalg.solve(second(q, share), change) * (ahead - share)
            there, good = q + told, bool(np.abs(told).max() < 0.02)
            for _ in range(12 if good else 0):
                move = -np.linalg.solve(second(there, ahead), first(there, ahead))
                there = there + move
            good = good and np.abs(move).max() < 1e-11 and np.linalg.eigvalsh(second(there, ahead)).min() > 0.0
            if good and np.abs(there - q - told).max() < 0.5 * np.abs(told).max() + 1e-9:
                q, share, step = there, ahead, min(2e-3, 2 * step)
                continue
            step /= 2
            if step < 1e-9:
                return None
        return q


@pytest.mark.verify
@pytest.mark.parametrize("tens", range(20))
def test_equilibria_are_those_to_which_loads_lead_in_a_potential_of_its_own(tens, tmp_path):
    for seed in range(10 * tens, 10 * tens + 10):
        own = Mechanism(seed)
        first, second = own.slopes()
        robot = written(tmp_path, own.text())
        names = list(robot.tree.position_names)
        try:
            rest = parflex.equilibrium(robot, wrench={"tip": [*own.force, own.moment]})
        except parflex.ParflexError:
            rest = None
        found = None if rest is None else rest.configuration.q[[names.index(f"j{k}") for k in range(own.n)]]
        if found is not None:  # whatever is answered is an equilibrium, and stable where that is said
            size = np.abs(own.k).max() + np.abs(own.force).max()
            assert np.abs(first(found, 1.0)).max() < 1e-8 * size, seed
            assert rest.stable == (np.linalg.eigvalsh(second(found, 1.0)).min() > 0.0), seed
        if np.linalg.eigvalsh(second(own.start, 0.0)).min() <= 0.0:  # the pose itself is not stable
            continue
        led = own.led(first, second)
        if led is None:
            assert rest is None or rest.snaps or rest.lost or not rest.stable, seed
        else:
            assert rest is not None and rest.stable and not rest.snaps and not rest.lost, seed
            assert np.abs(found - led).max() < 1e-7, seed  # both end at rounding over the softest stiffness
