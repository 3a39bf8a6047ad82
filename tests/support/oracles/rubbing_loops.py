"""A slider-crank and a pair of gears with dry friction in any joint, in closed form; shares no code with the package.

Both have one freedom. The energy that is left when friction of each joint has taken its effort times its way gives the
rate at every angle, whatever the time; a joint turns back where its dead centre is, and friction with it. At rest each
joint takes the same share of the load of the freedom, up to what it bears.
"""

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


def shared(load: float, most: Array) -> Array:
    """Parts of a load that are alike but for those at their bounds."""
    parts, open_ones = np.zeros(len(most)), np.ones(len(most), dtype=bool)
    while open_ones.any():
        parts[open_ones] = (abs(load) - parts[~open_ones].sum()) / open_ones.sum()
        over = open_ones & (parts > most)
        if not over.any():
            break
        parts[over], open_ones[over] = most[over], False
    return np.sign(load) * parts


@dataclass(frozen=True)
class SliderCrank:
    """Crank about the origin, a rod on it, and a slider along x; weight along -y."""

    crank: float
    rod: float
    gravity: float
    slider_mass: float = 0.8
    rod_mass: float = 0.5
    rod_inertia: float = 0.01
    crank_inertia: float = 0.05

    def places(self, angle: Array) -> Array:
        """Positions of crank, rod (from the crank) and slider."""
        lean = -np.arcsin(self.crank * np.sin(angle) / self.rod)
        return np.stack([angle, lean - angle, self.crank * np.cos(angle) + self.rod * np.cos(lean)], -1)

    def ways(self, angle: Array) -> Array:
        """Rates of the three joints for a unit rate of the crank."""
        lean = -np.arcsin(self.crank * np.sin(angle) / self.rod)
        turn = -self.crank * np.cos(angle) / (self.rod * np.cos(lean))
        slide = -self.crank * np.sin(angle) - self.rod * np.sin(lean) * turn
        return np.stack([np.ones_like(angle), turn - 1, slide], -1)

    def energy(self, angle: Array, rate: Array) -> Array:
        """Kinetic and potential energy."""
        lean = -np.arcsin(self.crank * np.sin(angle) / self.rod)
        _, relative, slide = np.moveaxis(self.ways(angle), -1, 0)
        turn, half = relative + 1, self.rod / 2
        x = -self.crank * np.sin(angle) - half * np.sin(lean) * turn
        y = self.crank * np.cos(angle) + half * np.cos(lean) * turn
        inertia = self.crank_inertia + self.slider_mass * slide**2 + self.rod_inertia * turn**2
        height = self.crank * np.sin(angle) + half * np.sin(lean)
        return (inertia + self.rod_mass * (x**2 + y**2)) * rate**2 / 2 + self.rod_mass * self.gravity * height

    def load(self, angle: float) -> float:
        """What the weight does to the crank: the slope of its energy, by a closed form of the height."""
        lean = -np.arcsin(self.crank * np.sin(angle) / self.rod)
        turn = -self.crank * np.cos(angle) / (self.rod * np.cos(lean))
        slope = self.crank * np.cos(angle) + self.rod / 2 * np.cos(lean) * turn
        return -self.rod_mass * self.gravity * slope

    def travelled(self, angles: Array) -> Array:
        """How far each joint has gone on the way through all angles: forth and back between dead centres at k pi."""
        ways = np.zeros((len(angles), 3))
        for k in range(1, len(angles)):
            low, high = sorted((angles[k - 1], angles[k]))
            between = np.arange(np.floor(low / np.pi) + 1, np.ceil(high / np.pi)) * np.pi
            path = self.places(np.concatenate([[low], between, [high]]))
            ways[k] = ways[k - 1] + np.abs(np.diff(path, axis=0)).sum(axis=0)
        return ways

    def settings(self, angle: float, friction: dict[str, float]) -> dict[str, object]:
        """Numbers of `robots/slider-crank.toml`."""
        starts = zip(("crank", "rod", "slider"), self.places(np.array(angle)), strict=True)
        return {
            "constants.crank": self.crank,
            "constants.rod": self.rod,
            "gravity": [0, -self.gravity, 0],
            **{f"frame.{name}.start": float(place) for name, place in starts},
            **{f"frame.{name}.friction.coulomb": value for name, value in friction.items()},
        }
