"""Serial chains of any length."""

from pathlib import Path


def chain(joints: int, folder: Path) -> Path:
    """A serial chain of revolute joints with three kinds of links in turn."""
    lines = ["format = 1", 'name = "chain"', "gravity = [0, 0, -9.81]"]
    for k in range(1, joints + 1):
        lines += ["[[frame]]", f'name = "{k}"', f'parent = "{k - 1 if k > 1 else "base"}"']
        lines += ['joint = "revolute"', "actuated = true"]
        lines += [f"mdh = {{ alpha = {(0, 1.1, -0.7)[k % 3]}, d = 0.3, r = 0.1 }}"]
        lines += ["inertia = { mass = 2, centre = [0.15, 0.05, 0.1], about_centre = [0.1, 0.2, 0.25] }"]
    file = folder / f"chain-{joints}.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file
