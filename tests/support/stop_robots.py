"""A ball between stops."""

from __future__ import annotations

import parflex

FILE = """
format = 1
name = "ball"
gravity = [0, 0, 0]
[[frame]]
name = "ball"
joint = "prismatic"
actuated = true
inertia = {{ mass = 2 }}
spring = {{ stiffness = {spring}, rest = 0 }}
limits = [-0.3, 0.1]
{stop}
"""


STOP = "stop = {{ stiffness = 2e4, damping = {} }}"


def ball(tmp_path, spring=50.0, damping=0.0, stop=None):
    path = tmp_path / "ball.toml"
    path.write_text(FILE.format(spring=spring, stop=STOP.format(damping) if stop is None else stop))
    return parflex.load(path)
