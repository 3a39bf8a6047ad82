"""Explain the model of a robot: bodies, coordinates, loops, formulation and equations."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from parflex.closure.constraints import Coupling, Distance, coupling_row
from parflex.errors import InputError, ParflexError
from parflex.forces.forces import element_values
from parflex.formulations.base import (
    COORDINATE_MODELS,
    MODELS,
    Formulation,
    ModelRequest,
    refuse_unknown_coordinates,
)
from parflex.formulations.choice import choose
from parflex.records import Record, count_of
from parflex.robot.configuration import Configuration
from parflex.robot.load import with_numbers
from parflex.robot.robot import Robot
from parflex.tree.force_elements import CoupledSpring
from parflex.tree.tree import GROUND, Link, Tree, beam_elements

KINDS = {"free": "free in space", "planar": "free in the plane", "fixed": "fixed"}

TERMS = {
    "motor_inertia": "motor inertia",
    "viscous": "viscous friction",
    "coulomb": "Coulomb friction",
    "offset": "offsets of friction",
    "stiffness": "springs",
    "damper": "dampers",
}

TOLD = ("inverse", "direct", "mass-matrix", "kinematics", "step", "state-rates", "state-rates-driven")  # in words

INDENT = "    "

WRAP_OPTIONS: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}

EQUATIONS: dict[int, str] = {
    1: "Rot(z, gamma) Trans(z, b) Rot(x, alpha) Trans(x, d) Rot(z, theta) Trans(z, r)",
    2: "dP/dt = R v        dQ/dt = Q (0, w) / 2",
    3: "\n".join(
        [
            "f = m (a - g) + al x S + w x (w x S)",
            "m = S x (a - g) + I al + w x (I w)",
        ]
    ),
    4: "\n".join(
        [
            "v_j  = X (v_i + w_i x p) + S_v qd",
            "w_j  = X w_i + S_w qd",
        ]
    ),
    5: "\n".join(
        [
            "a_j  = X (a_i + al_i x p + w_i x (w_i x p)) + S_v qdd + 2 (X w_i) x (S_v qd)",
            "al_j = X al_i + S_w qdd + (X w_i) x (S_w qd)",
        ]
    ),
    6: "\n".join(
        [
            "force along the rates of j:  S_v^T f_j + S_w^T m_j",
            "f_i += R f_j        m_i += R m_j + p x (R f_j)",
        ]
    ),
    7: "IA qdd + FV qd + FS sign(qd) + offset + k (q - q0) + damper qd",
    8: "f_tot = M_tot qdd_tot + c_tot",
    9: "\n".join(
        [
            "             position     velocity           acceleration",
            "translation  n.rho = 0    n.rel = 0          n.(a2 - a1 - al1 x rho - w1 x (w1 x rho) - 2 w1 x rel) = 0",
            "rotation                  n.(w2 - w1) = 0    n.(al2 - al1 - w1 x (w2 - w1)) = 0",
        ]
    ),
    10: "\n".join(
        [
            "u1.u2 = 0",
            "(u2 x u1).(w2 - w1) = 0",
            "(u2 x u1).(al2 - al1) + ((w2 x u2) x u1 + u2 x (w1 x u1)).(w2 - w1) = 0",
        ]
    ),
    11: "J_tot qd_tot = 0        J_tot qdd_tot + b_star = 0",
    12: "qd_tot = J qd        qdd_tot = J qdd + b",
    13: "J = 1 on independent rows, -J_f^-1 J_0 on dependent ones; b = -J_f^-1 b_star on dependent rows, else 0",
    14: "J^T f_tot = J_a^T tau",
    15: "tau = J_a^-T J^T f_tot",
    16: "tau = f_a + J_a^-T J_o^T f_o        a: rows of the motors, o: all others",
    17: "M qdd = J_a^T tau - c        M = J^T M_tot J        c = J^T (M_tot b + c_tot)",
    18: "J_tot^T lam = f_tot - (tau in the rows of the motors)",
    19: "J_i qd_i = v + w x r_i        J_i qdd_i = a + al x r_i + w x (w x r_i) - b_i",
    20: "f_i = J_i^-T H_i        what leg i takes from the platform, at its end",
    21: "B tau = F_p + sum (f_i; r_i x f_i)        B: columns (h; r_i x h), h = J_i^-T e_motor",
    22: "A = A_p + sum J_pi^T M_i J_pi        J_pi = J_i^-1 [1, -hat(r_i)]",
    23: "U = I_A S    D = S^T U + IA    u = tau - S^T p_A    I_A' = I_A - U D^-1 U^T    p_A' = p_A + I_A' c + U D^-1 u",
    24: "f   = m a + U S + 2 w x (sum e_dot_k S_k) + sum e_ddot_k S_k",
    25: "m   = S x a + axial(U Sigma + 2 hat(w) P^T + Q^T)",
    26: "s_k = S_k . a + <U, int phi_k r^T> + 2 <hat(w), int phi_k rd^T> + sum_j tr(G_kj) e_ddot_j + (K e + D e_dot)_k",
    27: "u = Phi_d e        R = exp(hat(th)), th = Phi_r e        u_dot = Phi_d e_dot, w = L(th) Phi_r e_dot",
    28: "M = J^T M_tot J        K = J^T K_tot J        D = J^T D_tot J        K v = omega^2 M v",
    29: "e_dot  = Lb^-1 (t_B - T t_A)",
    30: "e_ddot = Lb^-1 (td_B - T td_A - h)    h = [w x (w x r_B) + 2 w x e_d_dot; w x (L e_r_dot) + L_dot e_r_dot]",
    31: "A x + f = forces of the motors        A = sum int N^T N, over beams and bodies",
    32: "S_a = sum_n m_n f_a(n)        G_ab = sum_n (m_n f_a f_b^T + C_a Sigma_n C_b^T)",
    33: "M_y = (P^T M_ee^-1 P)^-1        L = M_ee^-1 P M_y        Pi = M_ee^-1 - L P^T M_ee^-1",
    34: "M_y y + L^T (A_re^T Vd + s) = f        edd = L y - Pi (A_re^T Vd + s)",
    35: "J_sys^-T = (J_x M^-1 J_x^T)^-1 J_x M^-1 J_a^T",
    36: "P M Z ydd + P D Z yd + P K Z y = 0",
    37: "u_m = u_x + 1/2 e^T H e        e^T H e = int_0^L (v'^2 + w'^2) dx",
    38: "U = 1/2 e^T K_0 e + EA/(2 L) u_m^2        N = EA/L u_m\ns = K_0 e + D_0 e_dot + (N + c u_m_dot) du_m/de",
    39: "qdd = -J^+ b_star + N z        N^T M N z = N^T (f - M (-J^+ b_star))",
    40: "min 1/2 d^T d  subject to  c(q) = g          grad(1/2 d^T d) + J^T lambda = 0",
    41: "v = v_g + Z y          (Z^T H Z) y = -Z^T H v_g",
    42: "q_j - sum_k rho_k q_k = offset        rho = lead/(2 pi) for a screw",
    43: "d = q_j - sum_k rho_k q_k - offset        s = k d + c d_dot        j: s        k: -rho_k s",
    44: "t = k (l - l_0) + c l_dot        f_1 = t u        f_2 = -t u        u = (p_2 - p_1)/l",
    45: "|p_2 - p_1| = l_0        |p_2 - p_1| = q_s for a strut",
    46: "tau_g = W^-1 A^T (A W^-1 A^T)^-1 g",
    47: "[A; S] tau_0 = [0; e]        S: rows of the unit matrix for the motors with the stated efforts e",
    48: "tau = tau_g + tau_0 + N z        min z^T z  subject to  lower <= tau <= upper",
    49: "-rho_k (1 + mu) lambda        mu = sigma ((a - b) sigma + sign(lambda) (a + b))/2\na = 1/eta - 1        "
    "b = 1 - eta_b        sigma = v/sqrt(v^2 + w^2)        v = sum_k rho_k q_k_dot",
    50: "K = V'' + J_a^T K_s J_a - sum_k tau_k q_ak''",
    51: "s = max(k d + c d_dot, 0)  where  d > 0",
    52: "f = f_t - sum f_l + m a + sum B_a S_a\nm = m_t - sum m_l + S x a + axial(sum B_a G_ab c_b) - r x f",
    53: "(N, Vy, Vz) = -R^T f        (T, My, Mz) = -R^T m        R = exp(hat(Phi_r e))",
    54: "|N|/A + |My| z/Iy + |Mz| y/Iz        round: |N|/A + sqrt(My^2 + Mz^2) rho/I",
    55: "u = T b + sum_{j<=k} phi_j q_j        K phi_j = mu_j M phi_j  with both ends held",
    56: "lambda <= lambda_k <= lambda mu/(mu - lambda)        f_k - f <= f (1/sqrt(1 - f^2/f_mu^2) - 1)",
    57: "(M + J_s^T H J_s) qdd + c + J_s^T (lam + H b_s) = J_a^T tau        lam <- lam + H (J_s qdd + b_s)",
    58: "(1 - h mu Jv - h^2 mu^2 Jq) d_mu = (T^-1 m)_mu        da_i = sum T_i,mu d_mu",
    59: "d = m - P (A + c1 D + c2 K)^-1 (c1 D + c2 K) E m        c1 = h mu        c2 = h^2 mu^2",
    60: "r(q, p) = 0        t(q, p) = 0        dq/dp = -[r_q; t_q]^-1 [r_p; t_p]",
    61: "dlambda/dp = d/dp [psi^T K psi - lambda psi^T M psi]        psi^T M psi = 2 T(q, psi)",
    62: "C = P K^-1 P^T:    dC/dp = d/dp [P Psi + Psi^T P^T - Psi^T K Psi]        Psi = J K^-1 P^T",
    63: "J^T d(F - J_tot^T lam) = 0 for constant lam        r(q, p) = 0",
    64: "d/dp min_i f_i(p) along dp = min over active i of df_i/dp dp",
    65: "J_v^T U e_i + J_w^T (e_i x a)",
    66: "max t    f_i + u^T (sum_k A_ik dp_k) u >= t  for all u, |u| = 1        |dp| <= trust",
    67: "X = [1, -hat(p); 0, 1] per node, 0 per mode    X^T M X = [m, -m hat(c); m hat(c), I]    K X = 0",
    68: "T = 1/2 V^T M V  at e = 0        V = X (v, w) + E e_dot",
    69: "phi_a = t_a + B_a (r - c) + psi_a        B_a = hat(th_a) + Z_a Sigma_c^-1\n"
    "S_a = m t_a        G_0a = m c t_a^T + Sigma_c B_a^T\n"
    "G_ab = m t_a t_b^T + B_a Sigma_c B_b^T + W_ab/3",
    70: "u_m = f . e/k + 1/2 e^T (K_G/k) e        k = f . K^-1 f        N = k u_m",
    71: "rho = s + delta   delta = w^T b / w^T N w   r^2 = c / w^T N w - delta^2   c = max(1, (p - s)^2 / (p - s')^2)",
    72: "|lambda - rho| <= epsilon + tau^2 / (p - s - tau)        tau = 1.1 (|delta| + epsilon) <= 0.1 (p - s)",
    73: "eta = -K_ii^-1 M_ib xdd        f = -M_bi eta_ddot = C d2(xdd)/dt2        C = M_bi K_ii^-1 M_ib\n"
    "m z_ddot + d z_dot + k z = c_ddot,  c = x^T C qdd        m z = c - int_0^t (k h + d h_dot)(t - s) c(s) ds\n"
    "m = 1 + x^T C x k/m",
}

LOSSES = 49  # number of the equation of the losses

REDUCED = (55, 56)  # numbers of the equations

SUPER = (67, 68, 69)  # numbers of the equations

STRESS_STIFFENING_EQUATION = 70


def explain(robot: Robot, coordinates: str | None = None) -> Explanation:
    """Explain how the model of a robot is made, in words and equations.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    coordinates : str, default None
        As in `model`: 'platform', 'motors', 'independent' or 'all'; None: those of the form.

    Returns
    -------
    Explanation
        Sections on bodies, coordinates, loops, motors and the form of the programs; `as_text()`, `as_markdown()`.
    """
    if coordinates is not None:
        refuse_unknown_coordinates(coordinates)
    configuration = Configuration(robot, robot.home)
    forms = {model: _asked(robot, model, coordinates) for model in MODELS}
    form = forms["direct"] or choose(robot, ModelRequest("state-rates"))  # this one every robot has
    names = {model: None if formulation is None else formulation.name for model, formulation in forms.items()}
    sections = [
        _bodies(robot),
        _coordinates(robot),
        *([_loops(robot), _dependent(configuration, form)] if robot.closures.size else []),
        _motors(robot),
        _models(robot),
        _programs(form, names),
        _data(robot),
    ]
    return Explanation(
        robot.name,
        robot.description.title or robot.name,
        form.name,
        _sizes(robot, form),
        tuple(sections),
        (*robot.warnings, *configuration.condition.warnings()),
        names,
    )


def _asked(robot: Robot, model: str, coordinates: str | None) -> Formulation | None:
    """The form of a model, None where the robot has no such model."""
    try:
        return choose(robot, ModelRequest(model, coordinates=coordinates if model in COORDINATE_MODELS else None))
    except ParflexError:
        return None


def _sizes(robot: Robot, form: Formulation) -> dict[str, int]:
    rank, free = robot.mobility.rank, len(robot.free)
    sizes = {
        "links": len(robot.tree.links),
        "positions": robot.tree.nq,
        "rates": free,
        "elastic": len(robot.tree.elastic),
        "closure_rows": robot.closures.size,
        "rank": rank,
        "independent": free - rank,
        "degrees_of_freedom": _freedoms(robot),
        "motors": len(robot.actuated),
    }
    return sizes | form.sizes


def _freedoms(robot: Robot) -> int:
    """Freedoms of the robot with its bodies stiff."""
    rigid = robot.locking(robot.deformations)
    return rigid.mobility.freedoms(len(rigid.free))


# -- the tree ---------------------------------------------------------------------------------------------------
def _bodies(robot: Robot) -> ExplanationSection:
    tree = robot.tree
    heavy = [link for link in tree.links if link.heavy]
    where = "moves in the plane" if tree.planar else "moves in space"
    text = [
        f"The robot {where}. Its frames make {count_of(len(tree.links), 'link')}, {len(heavy)} of them with mass; each "
        "is placed in its parent by a constant rotation and position and then moved by its joint. What is fixed to a "
        "link is part of it.",
        *_rows(robot),
    ]
    bending = [link for link in tree.links if link.elastic_labels]
    if bending:
        text += [
            f"{count_of(len(bending), 'body is flexible', 'bodies are flexible')}: a material point is "
            "where the rigid body would have it, plus shapes times elastic coordinates; all inertial terms follow from "
            "integrals over the undeformed body.",
            *_shapes(robot),
            *_axial(bending),
        ]
    rows = (1,) if any(frame.mdh is not None for frame in robot.description.frame) else ()
    nonlinear = (37, 38) if any(link.body.acting for link in bending) else ()
    bent = (24, 25, 26, 27, *nonlinear) if bending else ()
    entries = (*robot.description.frame, *((robot.description.platform,) if robot.description.platform else ()))
    modal = (32,) if any(entry.modal is not None for entry in entries) else ()
    reduced = REDUCED if any(link.body.reduced for link in bending) else ()
    superelements = [link for link in bending if link.body.found is not None]
    matrices = (
        (*SUPER, *((STRESS_STIFFENING_EQUATION,) if any(link.body.acting for link in superelements) else ()))
        if superelements
        else ()
    )
    return ExplanationSection("bodies", "Bodies", tuple(text), (*rows, 3, *bent, *modal, *reduced, *matrices))


def _rows(robot: Robot) -> list[str]:
    """Links and joints; legs that are alike in one row."""
    groups: dict[tuple[str, ...], list[str]] = {}
    alone = []
    for leg in dict.fromkeys(link.leg for link in robot.tree.links):
        links = [link for link in robot.tree.links if link.leg == leg and link.node is None]
        if leg is None:
            alone = [_link_description(robot, link, link.name) for link in links]
        else:
            descriptions = tuple(_link_description(robot, link, link.name.removeprefix(f"{leg}.")) for link in links)
            groups.setdefault(descriptions, []).append(leg)
    rows = [f"- {row}" for row in alone]
    for parts, legs in groups.items():
        head = f"legs {listed(legs)}, each" if len(legs) > 1 else f"leg {legs[0]}"
        rows.append(f"- {head}: {'; '.join(parts)}")
    return rows


def _link_description(robot: Robot, link: Link, name: str) -> str:
    rates = set(range(link.v.start, link.v.stop))
    words = [KINDS.get(link.joint.kind, link.joint.kind)]
    if rates & set(robot.actuated):
        words.append("motor")
    if rates and rates <= robot.locked:
        words.append("locked")
    if link.terms.stiffness:
        words.append("spring")
    if any(frame.stop is not None for frame in robot.description.frame if frame.name == link.name):
        words.append("stops in simulation")
    if link.elastic_labels:
        words.append("flexible")
    return f"{name} ({', '.join(words)})"


def _shapes(robot: Robot) -> list[str]:
    """Flexible bodies and their models; bodies that are alike in one row."""
    beams = {frame.name: frame.beam for frame in robot.description.frame if frame.beam is not None}
    groups: dict[str, list[str]] = {}
    for number, link in enumerate(robot.tree.links):
        if not link.elastic_labels:
            continue
        beam = beams.get(link.name)
        if beam is not None:
            kind = "Timoshenko" if beam.shear else "Euler-Bernoulli"
            element_count = beam.elements if link.body.reduced else len(beam_elements(robot.tree.links, number))
            what = f"{kind} beam of {beam.length:g} m in {count_of(element_count, 'element')}{_reduced(link)}"
        elif any(link.name.startswith(f"{name}.") for name in beams):
            what = f"further {'parts' if link.body.reduced else 'elements'} of these beams{_reduced(link)}"
        else:
            what = "body given by its modes" if link.body.found is None else "super-element given by reduced matrices"
        groups.setdefault(f"{what}, coordinates {listed(link.elastic_labels)}", []).append(link.name)
    return [f"- {what}: {listed(names)}" for what, names in groups.items()]


def _reduced(link: Link) -> str:
    """What is left of a beam of many elements."""
    reduction = link.body.reduced
    if reduction is None:
        return ""
    return (
        f", reduced from {count_of(reduction.elements, 'element')} to its ends and "
        f"{count_of(reduction.kept, 'mode')} with both held (frequencies up to {reduction.band:g} Hz are at most "
        f"{reduction.bound:.2g} Hz too high)"
    )


def _axial(bending: list[Link]) -> list[str]:
    """What bending does to the axial strain."""
    mean = [link.name for link in bending if link.body.acting]
    linear = [link.name for link in bending if link.body.by_tip and not link.body.acting]
    text = []
    if mean:
        text.append(
            f"Bending shortens the chord of {listed(mean)}: the axial strain is the mean one, so tension "
            "stiffens and compression softens."
        )
    if linear:
        text.append(f'Axial strain is linear (axial = "linear") in {listed(linear)}: axial load does not stiffen it.')
    return text


def _coordinates(robot: Robot) -> ExplanationSection:
    tree = robot.tree
    elastic = len(tree.elastic)
    joints = tree.n - elastic
    parts = [count_of(joints, "rate of joints and free bodies", "rates of joints and free bodies")]
    parts += [f"{elastic} of elastic coordinates"] if elastic else []
    quaternions = [link.name for link in tree.links if link.joint.quaternion]
    text = [f"All joints are open at first: q_tot has {tree.nq} positions, qd_tot {tree.n} rates ({', '.join(parts)})."]
    if quaternions:
        text.append(f"The orientation of {listed(quaternions)} is a unit quaternion; its rate is the angular velocity.")
    if robot.locked:
        locked = listed([tree.rate_names[k] for k in sorted(robot.locked)])
        text.append(f"Locked joints are fixed and leave {len(robot.free)} rates: {locked}.")
    text.append(
        "A recursion outwards gives twists and accelerations of all links, one inwards the forces along all rates; "
        + ("gravity is an acceleration of the ground upwards." if tree.gravity.any() else "there is no gravity.")
    )
    acting = [word for key, word in TERMS.items() if any(getattr(link.terms, key) for link in tree.links)]
    if tree.springs:
        text.append("Elastic couplings act as springs:")
        text += [f"- {spring_text(spring, tree)}" for spring in tree.springs]
    if tree.elements:
        text.append(f"Forces along the line between two points, at home: {_at_home(robot)}.")
    if acting:
        text.append(f"Joints add their own terms: {', '.join(acting)}.")
    equations = (
        *((2,) if quaternions else ()),
        4,
        5,
        6,
        *((7,) if acting else ()),
        8,
        *((43,) if tree.springs else ()),
        *((LOSSES,) if any(spring.lossy for spring in tree.springs) else ()),
        *((44,) if tree.elements else ()),
    )
    return ExplanationSection("coordinates", "Coordinates and the open tree", tuple(text), equations)


def _at_home(robot: Robot, most: int = 6) -> str:
    """Length and force of elements at home, at rest; the first ones."""
    values = element_values(Configuration(robot, robot.home))
    texts = [
        f"{element.name} ({element.kind}) {values[element.name]['length']:.4g} m, {values[element.name]['force']:.4g} N"
        for element in robot.tree.elements[:most]
    ]
    return "; ".join(texts) + (f"; ... ({len(robot.tree.elements)})" if len(robot.tree.elements) > most else "")


# -- loops ------------------------------------------------------------------------------------------------------
def _loops(robot: Robot) -> ExplanationSection:
    tree, loops = robot.tree, robot.closures.loops
    free = [link.name for link in tree.links if link.joint.moves_freely and link.parent == GROUND]
    couplings = [row for row in robot.closures.constraints if isinstance(row, Coupling)]
    why = "A tree has no loops, so each loop is cut where the file has a closure"
    if not loops:
        tied = "couplings relate its joints" if couplings else "rods and struts connect its bodies"
        why = f"The robot has no loop; {tied}"
    elif free:
        why += f"; {listed(free)} is a body of its own that no leg carries, so every leg ends in one"
    groups: dict[tuple[str, int], list[str]] = {}
    for loop in loops:
        groups.setdefault((loop.kind, loop.size), []).append(loop.name)
    text = [why + "."]
    for (kind, size), names in groups.items():
        text.append(f"- {kind}, {count_of(size, 'row')}{' each' if len(names) > 1 else ''}: {listed(names)}")
    text += [f"- coupling, 1 row: {coupling.equation}{loss_text(coupling)}" for coupling in couplings]
    distances = [row for row in robot.closures.constraints if isinstance(row, Distance)]
    at_home = {row.name: f", {robot.home[row.position]:.4g} m at home" for row in distances if row.number is not None}
    text += [f"- {row.kind}, 1 row: {row.equation}{at_home.get(row.name, '')}" for row in distances]
    mobility = robot.mobility
    rank_text = f"Together {count_of(robot.closures.size, 'row')} of J_tot with rank {mobility.rank}"
    if mobility.redundant:
        names = [robot.closures.row_names[k] for k in mobility.redundant]
        rank_text += f": the robot is over-constrained, {count_of(len(names), 'row repeats', 'rows repeat')} others "
        rank_text += f"({listed(names, 4)})"
    if mobility.home_rank < mobility.rank:
        rank_text += f". Home is a singular pose, where the rank is only {mobility.home_rank}"
    text.append(rank_text + ".")
    universal = any(loop.turning == "universal" for loop in loops)
    words = [word for word, rows in (("loops", loops), ("couplings", couplings), ("rods", distances)) if rows]
    title = listed(words).capitalize().replace(", ", " and ") if words else "Loops"
    rows = (*((9,) if loops else ()), *((10,) if universal else ()), 11)
    rows = (*rows, *((42,) if couplings else ()), *((45,) if distances else ()))
    rows = (*rows, *((LOSSES,) if any(coupling.lossy for coupling in couplings) else ()))
    return ExplanationSection("loops", title, tuple(text), rows)


def _dependent(configuration: Configuration, form: Formulation) -> ExplanationSection:
    robot, names = configuration.robot, configuration.robot.tree.rate_names
    chosen = configuration.reduction.partition.independent if form.dependence is None else form.independent
    dependent = [names[k] for k in robot.free if k not in set(chosen)]
    independent = [names[k] for k in chosen]
    how = form.dependence or (
        f"The square block J_f of {len(dependent)} rows and columns gives the dependent rates. QR with pivoting "
        "picks them, passive joints before motors before free bodies, so that the block is regular; another choice "
        "would give the same motion. At home they are these:"
    )
    rows = [f"- dependent: {listed(dependent)}", f"- independent ({len(independent)}): {listed(independent)}"]
    return ExplanationSection("dependent", "What depends on what", (how, *rows), (12, 13))


def _motors(robot: Robot) -> ExplanationSection:
    motors, freedoms = robot.actuated_names, _freedoms(robot)
    text = [f"{count_of(len(motors), 'motor')} ({listed(motors)}) for {count_of(freedoms, 'freedom')}."]
    if not motors:
        text = [f"No motor drives its {count_of(freedoms, 'freedom')}: it moves under gravity and external loads."]
    elif len(motors) > freedoms:
        text.append("More motors than degrees of freedom: efforts are those of least norm.")
    elif len(motors) < freedoms:
        text.append(
            "Fewer motors than degrees of freedom: the inverse model takes motions of motors; the rest moves freely."
        )
    actuations, modes = (sorted(table) for table in (robot.description.actuation, robot.description.working_modes))
    if actuations:
        text.append(f"Chosen actuation: {robot.actuation}; the file also has {listed(actuations)}.")
    if modes:
        text.append(f"Working mode: {robot.working_mode}; the file has {listed(modes)}.")
    if robot.drive_springs:
        names = [robot.tree.links[number].name for number in robot.drive_springs]
        text.append(f"Elastic drives: the springs of {listed(names)} are at rest in every pose.")
    return ExplanationSection("motors", "Motors", tuple(text))


# -- models -----------------------------------------------------------------------------------------------------
def _models(robot: Robot) -> ExplanationSection:
    closed = bool(robot.closures.size)
    size = len(robot.free) - robot.mobility.rank
    if closed:
        text = [
            f"Virtual powers take the forces of the open tree to the {count_of(size, 'independent rate')}; closures do "
            f"no work. The inverse model solves for the efforts, the direct one a {size} x {size} mass matrix."
        ]
        equations: tuple[int, ...] = (14, 16, 17, 18)
    else:
        text = [
            f"No loop: the recursion itself is the inverse model, and the direct one solves a {size} x {size} mass "
            "matrix."
        ]
        equations = (17,)
    elastic = bool(robot.tree.elastic) or any(link.terms.stiffness for link in robot.tree.links)
    elastic = elastic or bool(robot.tree.springs or robot.tree.elements)
    if elastic:
        text.append("Natural frequencies come from the same reduction of mass and stiffness, motors locked or held.")
        equations = (*equations, 28)
    return ExplanationSection("models", "Models", tuple(text), equations)


def _programs(form: Formulation, names: Mapping[str, str | None]) -> ExplanationSection:
    others: dict[str, list[str]] = {}
    for model in TOLD:
        name = names[model]
        if name is not None and name != form.name:
            others.setdefault(name, []).append(model)
    other_forms = [f"Written in the {name}: {', '.join(models)}." for name, models in others.items()]
    return ExplanationSection("programs", f"Programs: {form.name}", (*form.because, *other_forms), form.equations)


def _data(robot: Robot) -> ExplanationSection:
    reference = robot.description.reference
    text = [f"Source: {reference.source or 'not said in the file'}."]
    words = {"inferred": "inferred", "fitted": "fitted", "errata": "corrected", "notes": "note"}
    text += [f"- {word}: {line}" for key, word in words.items() for line in getattr(reference, key)]
    return ExplanationSection("data", "Where the numbers come from", tuple(text))


@dataclass(frozen=True, eq=False, repr=False)
class ExplanationSection(Record):
    """Sentences about one step of the model, and the numbers of the equations in docs/theory.md that it takes."""

    key: str
    title: str
    text: tuple[str, ...]  # paragraphs; those that begin with a dash are items of a list
    equations: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Record):
    """How the model of the robot `name` (`title`) is made: `sections` in the order of the work, and `sizes`.

    `form` is that of its direct program, `forms` that of each model (None: there is none); `warnings` are warnings.
    """

    name: str
    title: str
    form: str
    sizes: dict[str, int]
    sections: tuple[ExplanationSection, ...]
    warnings: tuple[str, ...] = ()
    forms: dict[str, str | None] = field(default_factory=dict)  # of every model; None where the robot has none

    def as_text(self, width: int = 100) -> str:
        """For a terminal of `width` characters."""
        parts = [textwrap.fill(f"{self.name}: {self.title}", width, **WRAP_OPTIONS)]
        for section in self.sections:
            lines = [section.title, "-" * len(section.title)]
            for paragraph in section.text:
                hang = "  " if paragraph.startswith("- ") else ""
                lines.append(textwrap.fill(paragraph, width, subsequent_indent=hang, **WRAP_OPTIONS))
            lines += [""] * bool(section.equations)
            lines += [line for number in section.equations for line in _numbered(number)]
            parts.append("\n".join(lines))
        return "\n\n".join(parts) + "\n"

    def as_markdown(self) -> str:
        """For a page."""
        parts = [f"# {self.name}: {self.title}"]
        for section in self.sections:
            parts.append(f"## {section.title}")
            items = [paragraph for paragraph in section.text if paragraph.startswith("- ")]
            parts += [paragraph for paragraph in section.text if not paragraph.startswith("- ")]
            parts += ["\n".join(items)] if items else []
            if section.equations:
                equation_lines = "\n".join(
                    line.removeprefix(INDENT) for n in section.equations for line in _numbered(n)
                )
                parts.append(f"```text\n{equation_lines}\n```")
        return "\n\n".join(parts) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        sections = [
            {
                "key": section.key,
                "title": section.title,
                "text": list(section.text),
                "equations": [{"number": number, "text": EQUATIONS[number]} for number in section.equations],
            }
            for section in self.sections
        ]
        head = {"name": self.name, "title": self.title, "form": self.form, "forms": self.forms, "sizes": self.sizes}
        return {**head, "sections": sections, "warnings": list(self.warnings)}

    def _told(self) -> str:
        return f"{self.name}: {self.form}, {count_of(len(self.sections), 'section')}: print it with as_text()"


def _numbered(number: int) -> list[str]:
    """The lines of an equation, its number behind the last one."""
    *lines, last = EQUATIONS[number].splitlines()
    return [INDENT + line for line in [*lines, f"{last:<88} ({number})"]]


def listed(names: list[str] | tuple[str, ...], most: int = 8) -> str:
    """Names with commas; of many the first and the last."""
    if len(names) <= most:
        return ", ".join(names)
    return ", ".join([*names[: most - 2], "...", names[-1]])


def loss_text(coupling: Coupling | CoupledSpring) -> str:
    """What a coupling loses."""
    if not coupling.lossy:
        return ""
    locked = " (self-locking)" if coupling.back <= 0 else ""
    return f"; efficiency {coupling.efficiency:.4g}, driven back {coupling.back:.4g}{locked}"


def spring_text(spring: CoupledSpring, tree: Tree) -> str:
    """An elastic coupling for people."""
    unit = "N/m" if tree.links[spring.numbers[0]].joint.unit == "m" else "N m/rad"
    parts = [f"stiffness {spring.stiffness:.4g} {unit}"]
    parts += [f"damping {spring.damping:.4g} {unit.replace('/', ' s/')}"] if spring.damping else []
    parts += [f"backlash {spring.play:.4g} {unit[-1:] if unit == 'N/m' else 'rad'}"] if spring.play else []
    parts += ["pulls only"] if spring.pulls_only else []
    return f"{coupling_row(spring, tree).equation}: {', '.join(parts)}{loss_text(spring)}"


def coupling_texts(robot: Robot) -> dict[str, str]:
    """What each coupling of a robot relates, and how it holds, by name."""
    rows = {row.name: row for row in robot.closures.constraints if isinstance(row, Coupling)}
    springs = {spring.name: spring_text(spring, robot.tree) for spring in robot.tree.springs}
    texts = {}
    for name in (coupling.name for coupling in robot.description.coupling):
        line = f"{rows[name].equation}{loss_text(rows[name])}" if name in rows else springs[name]
        texts[name] = line.removeprefix(f"{name}: ")
    return texts


def reduced_links(robot: Robot) -> list[Link]:
    """Links whose body stands for a beam of many elements."""
    return [link for link in robot.tree.links if link.body.reduced is not None]


def reduction_of(robot: Robot) -> list[dict[str, Any]]:
    """Of each reduced body: modes kept of how many, elements, lowest frequency left out, bound at the band's edge."""
    reductions = []
    for link in reduced_links(robot):
        reduction = link.body.reduced
        assert reduction is not None
        inner = (link.body.size - link.body.held) * (reduction.elements - 1)
        cut = reduction.left_out if reduction.kept < inner else None
        reductions.append(
            {
                "body": link.name,
                "kept": reduction.kept,
                "of": inner,
                "elements": reduction.elements,
                "left_out_hz": cut,
                "band_hz": reduction.band,
                "bound_hz": reduction.bound,
            }
        )
    return reductions


def without_reduction(robot: Robot) -> Robot:
    """The same robot with all elements of its beams."""
    if not reduced_links(robot):
        hint = "write reduce = { error, band } in a beam"
        raise InputError("no beam of this robot is reduced", key="reduce", hint=hint)
    frames = tuple(
        frame
        if frame.beam is None
        else frame.model_copy(update={"beam": frame.beam.model_copy(update={"reduce": None})})
        for frame in robot.description.frame
    )
    description = robot.description.model_copy(update={"frame": frames})
    return with_numbers(robot, description)


def superelements_of(robot: Robot) -> dict[str, dict[str, Any]]:
    """Of each super-element: mass, centre, inertia, positions of nodes, residual of K on rigid motions, frequencies."""
    return {
        link.name: superelement.as_dict() for link in robot.tree.links if (superelement := link.body.found) is not None
    }
