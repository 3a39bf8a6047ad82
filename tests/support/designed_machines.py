"""Made-up machines with elastic couplings, springs and starts, as files, and every number that stands in one."""

from collections.abc import Iterator
from typing import Any

import numpy as np

Rng = np.random.Generator
HEAD = 'format = 1\nname = "made-up"\nmotion = "planar"\ngravity = [0.7, -9.81, 0]\nend_effector = "tip"\n'
SLIDING = "rotation = [0, 1.5707963267948966, 0]"  # along x of what carries it


def frame(name: str, joint: str, parent: str, place: str, mass: float, reach: float, **keys: Any) -> str:
    inertia = f"{{ mass = {mass:.3f}, centre = [{reach:.3f}, 0.01, 0], about_centre = [0, 0, {0.02 * mass:.5f}] }}"
    own = {"name": f'"{name}"', "joint": f'"{joint}"', "parent": f'"{parent}"', "place": f"{{ {place} }}"}
    return "[[frame]]\n" + "".join(f"{k} = {v}\n" for k, v in {**own, "inertia": inertia, **keys}.items())


def coupling(rng: Rng, name: str, joint: str, form: str, play: bool, soft: float = 600.0) -> str:
    """An elastic coupling with an offset, and play or none."""
    lines = [f'name = "{name}"', f'joint = "{joint}"', form, f"offset = {rng.uniform(-0.2, 0.2):.3f}"]
    lines += [f"stiffness = {soft * rng.uniform(0.7, 1.5):.1f}", f"damping = {rng.uniform(0.1, 1):.2f}"]
    lines += [f"backlash = {rng.uniform(0.001, 0.004):.4f}"] * play
    return "[[coupling]]\n" + "\n".join(lines) + "\n"


def arm(rng: Rng) -> tuple[str, list[list[str]]]:
    """Links and a slide behind soft gears, some of two motors, and a joint with a spring; choices of coordinates."""
    text, motors, joints, last, play = HEAD, [], [], "base", bool(rng.random() < 0.4)
    for k in range(int(rng.integers(2, 4))):
        place = f"position = [{rng.uniform(0.2, 0.4):.3f}, {rng.uniform(-0.02, 0.02):.3f}, 0]"
        text += frame(f"m{k}", "revolute", last, place, 0.1, 0.0, actuated="true")
        start = {"start": f"{rng.uniform(-0.3, 0.3):.3f}"} if rng.random() < 0.3 else {}
        mass, reach = rng.uniform(0.5, 1.5), rng.uniform(0.1, 0.2)
        if k and rng.random() < 0.35:
            text += frame(f"a{k}", "prismatic", last, f"{place}, {SLIDING}", mass, 0.0, **start)
            screw = f'other = "m{k}"\nlead = {rng.uniform(0.1, 0.3):.3f}'
            text += coupling(rng, f"g{k}", f"a{k}", screw, play, 9e3)
            text += frame(f"b{k}", "fixed", f"a{k}", SLIDING.replace("1.57", "-1.57"), 0.1, 0.1)
            last = f"b{k}"
        else:
            text += frame(f"a{k}", "revolute", last, place, mass, reach, **start)
            other = f", m{k - 1} = {rng.uniform(0.02, 0.05):.3f}" if k and rng.random() < 0.5 else ""
            ratio = rng.uniform(0.1, 0.3) * rng.choice([-1, 1])
            text += coupling(rng, f"g{k}", f"a{k}", f"terms = {{ m{k} = {ratio:.3f}{other} }}", play)
            last = f"a{k}"
        motors, joints = [*motors, f"m{k}"], [*joints, f"a{k}"]
    sprung = ["s"] if rng.random() < 0.5 else []
    if sprung:
        spring = f"{{ stiffness = 15, rest = {rng.uniform(-0.3, 0.3):.3f} }}"
        text += frame("s", "revolute", last, "position = [0.2, 0, 0]", 0.3, 0.1, spring=spring)
        last = "s"
    text += f'[[point]]\nname = "tip"\nframe = "{last}"\nposition = [0.15, 0.02, 0]\n'
    if rng.random() < 0.4:
        text += "[poses.home]\n" + "".join(f"{name} = {rng.uniform(-2, 2):.3f}\n" for name in motors)
    mixed = [pair[int(rng.integers(2))] for pair in zip(motors, joints, strict=True)]
    return text, [motors + sprung, joints + sprung, mixed + sprung, motors + joints + sprung, motors, joints[:1]]


def five_bar(rng: Rng) -> tuple[str, list[list[str]]]:
    """Two legs behind soft gears that meet, and a wheel that follows a joint of the loop; choices of coordinates."""
    text, play = HEAD, bool(rng.random() < 0.3)
    for leg, x, start, bend in (("l", -0.2, 2.0, -1.2), ("r", 0.2, 1.1, 1.2)):
        foot = f"position = [{x}, 0, 0]"
        text += frame(f"m{leg}", "revolute", "base", foot, 0.1, 0.0, actuated="true")
        text += frame(f"a{leg}", "revolute", "base", foot, 0.6, 0.15, start=start)
        text += coupling(rng, f"g{leg}", f"a{leg}", f"terms = {{ m{leg} = {rng.uniform(0.1, 0.3):.3f} }}", play)
        text += frame(f"b{leg}", "revolute", f"a{leg}", "position = [0.3, 0, 0]", 0.4, 0.17, start=bend)
    text += frame("w", "revolute", "al", "position = [0.1, 0.05, 0]", 0.2, 0.02)
    text += coupling(rng, "gw", "w", f"terms = {{ bl = {rng.uniform(0.5, 1.5):.3f} }}", False)
    for name, leg in (("tip", "l"), ("end", "r")):
        text += f'[[point]]\nname = "{name}"\nframe = "b{leg}"\nposition = [0.35, 0, 0]\n'
    text += '[[closure]]\nname = "loop"\nbetween = ["tip", "end"]\njoint = "revolute"\n'
    return text, [["ml", "mr"], ["al", "ar"], ["ml", "ar"], ["x", "y"], ["al", "ar", "ml", "mr"], ["ml"]]


MACHINES = {"arm": arm, "five-bar": five_bar}


def keys_of(part: Any, path: str = "") -> Iterator[str]:
    """Dotted paths to all numbers of a table of a file."""
    if isinstance(part, dict):
        inner = list(part.items())
    elif isinstance(part, list | tuple):
        named = [isinstance(one, dict) and "name" in one for one in part]
        inner = [(one["name"] if own else k, one) for k, (one, own) in enumerate(zip(part, named, strict=True))]
    else:
        if isinstance(part, int | float) and not isinstance(part, bool) and path != "format":
            yield path
        return
    for word, one in inner:
        yield from keys_of(one, f"{path}.{word}" if path else str(word))
