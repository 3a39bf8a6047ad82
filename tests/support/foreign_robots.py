"""Random files of other programs: trees of bodies on joints of all kinds, written in the many ways there are."""

import numpy as np

from support.paths import DATA

FOREIGN = DATA / "foreign"  # files written by hand

TURNS = ("quat", "euler", "axisangle", "xyaxes", "zaxis")


def row(values) -> str:
    return " ".join(f"{value:.6g}" for value in np.ravel(values))


def tensor(rng) -> np.ndarray:
    """The inertia of a body that can be, about axes of no symmetry."""
    A = rng.normal(size=(3, 3))
    Sigma = 0.01 * (A @ A.T + 0.1 * np.eye(3))
    return np.trace(Sigma) * np.eye(3) - Sigma


def random_mjcf(seed: int, loops: int = 0) -> str:
    """A file of MuJoCo with angles in degrees or radians, default classes, several joints in one body, and loops."""
    rng = np.random.default_rng(seed)
    degrees, sequence = bool(rng.integers(2)), rng.choice(["xyz", "XYZ", "zyx", "ZXZ"])
    per = 180 / np.pi if degrees else 1.0
    count = int(rng.integers(3, 7))
    parents = [int(rng.integers(-1, k)) for k in range(count)]
    lines = {k: [] for k in range(-1, count)}

    def turn() -> str:
        kind = rng.choice([*TURNS, ""])
        if kind == "quat":
            return f'quat="{row(rng.normal(size=4))}"'
        if kind == "euler":
            return f'euler="{row(rng.uniform(-2, 2, 3) * per)}"'
        if kind == "axisangle":
            return f'axisangle="{row([*rng.normal(size=3), rng.uniform(-3, 3) * per])}"'
        if kind == "xyaxes":
            return f'xyaxes="{row(rng.normal(size=6))}"'
        return f'zaxis="{row(rng.normal(size=3))}"' if kind == "zaxis" else ""

    def mass() -> str:
        m, way = rng.uniform(0.2, 3), rng.integers(3)
        if way == 0:
            I = tensor(rng)
            entries = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
            return f'<inertial pos="{row(rng.normal(0, 0.1, 3))}" mass="{m:.5g}" fullinertia="{row(entries)}"/>'
        if way == 1:
            I = np.linalg.eigvalsh(tensor(rng))
            return f'<inertial pos="{row(rng.normal(0, 0.1, 3))}" {turn()} mass="{m:.5g}" diaginertia="{row(I)}"/>'
        box = f'<geom type="box" size="{row(rng.uniform(0.02, 0.2, 3))}" pos="{row(rng.normal(0, 0.1, 3))}" {turn()}/>'
        return box + f'<geom type="sphere" size="0.05" mass="{m:.5g}" pos="0.1 0 0.2"/>'

    def joint(name: str, last: bool) -> str:
        kind = rng.choice(["hinge", "hinge", "slide", "ball" if last else "hinge"])
        words = f'name="{name}" type="{kind}" pos="{row(rng.normal(0, 0.1, 3))}"'
        if kind == "ball":
            return f"<joint {words}/>"
        unit = per if kind == "hinge" else 1.0
        axis = np.eye(3)[rng.integers(3)] * rng.choice([-1, 2]) if rng.random() < 0.5 else rng.normal(size=3)
        words += f' axis="{row(axis)}" armature="{rng.uniform(0, 0.1):.4g}"'
        if rng.random() < 0.5:
            words += f' ref="{rng.uniform(-1, 1) * unit:.5g}" damping="{rng.uniform(0, 1):.4g}"'
        if rng.random() < 0.4:
            words += f' stiffness="{rng.uniform(1, 9):.4g}" springref="{rng.uniform(-1, 1) * unit:.4g}"'
        if rng.random() < 0.4:
            words += f' frictionloss="{rng.uniform(0, 1):.4g}" range="{row(np.array([-4, 5]) * unit)}"'
        return f"<joint {words}/>" if rng.random() < 0.7 else f'<joint class="stiff" {words}/>'

    kinds = ["free" if parents[k] < 0 and rng.random() < 0.3 else "chain" for k in range(count)]
    for k in reversed(range(count)):
        joints = rng.integers(0, 3) if kinds[k] == "chain" else 0
        text = (
            f'<freejoint name="j{k}"/>'
            if kinds[k] == "free"
            else "".join(joint(f"j{k}.{i}x", i == joints - 1) for i in range(joints))
        )
        name = f'name="b{k}"'
        child = 'childclass="soft"' if rng.random() < 0.3 else ""
        place = f'pos="{row(rng.normal(0, 0.3, 3))}" {turn()}'
        lines[parents[k]].insert(0, f"<body {name} {child} {place}>{text}{mass()}{''.join(lines[k])}</body>")
    ties = []
    for n in range(loops):
        ends = f'body1="b{count - 1}" body2="b{rng.integers(count - 1)}"'
        kind = rng.choice(["connect", "weld", "pin"])
        for point in ("", "far") if kind == "pin" else ("",):  # a pin is held at two points
            word = "connect" if kind == "pin" else kind
            ties.append(f'<{word} name="tie{n}{point}" {ends} anchor="{row(rng.normal(0, 0.2, 3))}"/>')
    return (
        f'<mujoco model="random {seed}"><compiler angle="{"degree" if degrees else "radian"}" eulerseq="{sequence}"/>'
        '<option><flag contact="disable"/></option><default><joint damping="0.3"/>'
        '<default class="soft"><joint armature="0.02"/></default><default class="stiff"><joint damping="2"/></default>'
        f"</default><worldbody>{''.join(lines[-1])}</worldbody><equality>{''.join(ties)}</equality></mujoco>"
    )


def random_urdf(seed: int) -> str:
    """A URDF of links on joints of all kinds, some without mass, some fixed."""
    rng = np.random.default_rng(seed)
    count, text = int(rng.integers(3, 9)), '<link name="root"/>'
    for k in range(count):
        parent = "root" if k == 0 else f"l{rng.integers(k)}" if rng.random() < 0.8 else "root"
        I, fixed = tensor(rng), rng.random() < 0.25
        kind = "fixed" if fixed else rng.choice(["revolute", "continuous", "prismatic", "revolute", "floating"])
        entries = dict(zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), I[np.triu_indices(3)], strict=True))
        words = [f'{word}="{value:.6g}"' for word, value in entries.items()]
        inertial = (
            f'<inertial><origin xyz="{row(rng.normal(0, 0.1, 3))}" rpy="{row(rng.uniform(-3, 3, 3))}"/>'
            f'<mass value="{rng.uniform(0.2, 3):.5g}"/>'
            f"<inertia {' '.join(words)}/></inertial>"
        )
        axis = np.eye(3)[rng.integers(3)] * rng.choice([-1, 1]) if rng.random() < 0.5 else rng.normal(size=3)
        more = f'<axis xyz="{row(axis)}"/>' if rng.random() < 0.9 else ""
        more += '<limit lower="-3" upper="3" effort="9" velocity="9"/>' if kind in ("revolute", "prismatic") else ""
        if rng.random() < 0.5:
            more += f'<dynamics damping="{rng.uniform(0, 1):.4g}" friction="{rng.uniform(0, 1):.4g}"/>'
        text += f'<link name="l{k}">{"" if fixed and rng.random() < 0.5 else inertial}</link>'
        text += (
            f'<joint name="j{k}" type="{kind}"><parent link="{parent}"/><child link="l{k}"/>'
            f'<origin xyz="{row(rng.normal(0, 0.3, 3))}" rpy="{row(rng.uniform(-3, 3, 3))}"/>'
            f"{more if kind not in ('fixed', 'floating') else ''}</joint>"
        )
    return f'<robot name="random {seed}">{text}</robot>'
