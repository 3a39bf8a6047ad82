"""Model updating: several solutions, determined parameters, model errors, slopes of modes by numbers of the file."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.special
from scipy import linalg
from support.oracles import spring_chain, sprung_masses
from support.robots import load_robot, robot_file, with_constants, write_robot

import parflex
from parflex.design.design_state import ResponseCase, SensitiveDesign
from parflex.parameters.design_numbers import number_at
from parflex.robot.load import with_settings
from parflex.updating.fit import shared_errors
from parflex.updating.modes import modes_at
from parflex.updating.rebound_robots import ReboundRobots

KEYS = ["constants.first", "constants.second"]
SHARE = 0.002  # of the frequencies, their deviations
# priors pull numbers that are about one of their deviations away by (deviation of the fit / of the prior)^2 of it:
# (0.7 % / 30 %)^2 of 30 %, and (0.7 % / 10 %)^2 of 5 % where they are narrower: both far below a thousandth
PULLED = 1e-3


def pair(tmp_path, first, second, carried=True):
    text = with_constants("sliding-pair", first=first, second=second)
    return parflex.load(write_robot(tmp_path, text if carried else text.replace('parent = "c1"', 'parent = "drive"')))


def rows(first, second, carried=True, poses=("home",), shapes=False, numbered=True):
    frequencies, seen = sprung_masses.pair_modes(first, second, carried)
    return [
        {"pose": pose, "mode": k + 1 if numbered else "", "frequency_hz": f, "deviation_hz": SHARE * f}
        | (dict(zip(sprung_masses.SENSORS, seen[:, k], strict=True)) if shapes else {})
        for pose in poses for k, f in enumerate(frequencies)
    ]  # fmt: skip


def values(parameters):
    return [parameters[key]["value"] for key in KEYS]


def test_the_pair_by_hand_has_the_frequencies_of_its_file(tmp_path):
    for carried in (True, False):
        found = parflex.natural_frequencies(pair(tmp_path, 1500.0, 700.0, carried)).frequencies
        assert found == pytest.approx(sprung_masses.pair_modes(1500.0, 700.0, carried)[0], rel=1e-9)
    assert sprung_masses.pair_modes(1000.0, 1000.0)[0] == pytest.approx(sprung_masses.pair_modes(2000.0, 500.0)[0])


def told(found):
    return [text for text in found.warnings if "another solution fits as well" in text]


@pytest.mark.parametrize("numbered", [True, False])
def test_a_second_solution_is_named_with_its_numbers(tmp_path, numbered):
    found = parflex.update(pair(tmp_path, 1500.0, 700.0), rows(1000.0, 1000.0, numbered=numbered), KEYS)
    assert values(found.parameters) == pytest.approx([2000.0, 500.0], rel=PULLED)
    (other,) = found.alternatives
    assert values(other["parameters"]) == pytest.approx([1000.0, 1000.0], rel=PULLED)
    # both have no residuals, so priors differ: (500^2/450^2 + 300^2/210^2) - (500^2/450^2 + 200^2/210^2)
    assert other["more"] == pytest.approx((300**2 - 200**2) / 210**2, rel=0.02)  # a thousandth of 1000 in 300, squared
    (text,) = told(found)
    assert "'constants.first' = 1000" in text and f"{other['more']:+.1f}" in text


def test_a_prior_that_excludes_the_second_solution_leaves_one(tmp_path):
    found = parflex.update(pair(tmp_path, 1900.0, 520.0), rows(1000.0, 1000.0), KEYS, prior=0.1)
    assert values(found.parameters) == pytest.approx([2000.0, 500.0], rel=PULLED)
    assert not found.alternatives and not told(found)


def test_shapes_single_out_one_of_two_solutions(tmp_path):
    # springs 3000 and 250 have the same frequencies, and are as far from the file over its priors
    found = parflex.update(pair(tmp_path, 1300.0, 700.0), rows(500.0, 1500.0, shapes=True), KEYS, prior=1.0)
    assert values(found.parameters) == pytest.approx([500.0, 1500.0], rel=PULLED)
    assert not found.alternatives and all(one["mac"] > 0.999 for one in found.pairs)


def test_solutions_beside_a_fit_with_an_error_of_the_model_are_named(tmp_path):
    table = rows(1000.0, 1000.0, poses=("home", "out"))
    table = [row | {"frequency_hz": row["frequency_hz"] * (1.03 if row["pose"] == "out" else 1)} for row in table]
    found = parflex.update(pair(tmp_path, 1500.0, 700.0), table, KEYS)
    assert found.model_share["frequency"] > 0.01
    # the mean of both poses: stiffnesses larger by about 1.03, and some of the prior's pull
    both = [values(found.parameters), *(values(one["parameters"]) for one in found.alternatives)]
    assert sorted(round(one[0], -3) for one in both) == [1000.0, 2000.0] and told(found)


@pytest.mark.parametrize("true", [4500.0, 450.0])
def test_numbers_far_from_their_priors_are_found_where_the_prior_lets_them_explain_all(tmp_path, true):
    robot, table = pair(tmp_path, 1500.0, 700.0), rows(true, 700.0, poses=("home", "out"))
    found = parflex.update(robot, table, KEYS[0])
    one = found.parameters[KEYS[0]]
    assert abs(one["value"] - true) < one["deviation"] < 0.01 * true and found.model_share["frequency"] == 0
    away = abs(one["value"] / 1500 - 1) / 0.3
    warned = any(f"'constants.first' moved by {away:.2g} times the deviation of its prior" in text
                 for text in found.warnings)  # fmt: skip
    assert warned == (away > 3)


def test_a_narrow_prior_holds_a_number_and_leaves_a_model_error(tmp_path):
    table = rows(4500.0, 700.0, poses=("home", "out"))
    found = parflex.update(pair(tmp_path, 1500.0, 700.0), table, KEYS[0], prior=0.05)
    # three times the stiffness is 40 deviations: a model error of tens of per cent costs less
    assert abs(found.parameters[KEYS[0]]["value"] / 1500 - 1) < 0.15 and found.model_share["frequency"] > 0.1
    assert any("check units and mode numbers" in text for text in found.warnings)


def test_without_shapes_modes_that_cross_have_two_solutions(tmp_path):
    robot = pair(tmp_path, 1700.0, 2100.0, carried=False)
    found = parflex.update(robot, rows(2100.0, 1900.0, False), KEYS)
    assert values(found.parameters) == pytest.approx([1900.0, 2100.0], rel=PULLED)  # nearer to the file
    assert values(found.alternatives[0]["parameters"]) == pytest.approx([2100.0, 1900.0], rel=PULLED)


NOISE, OF_DAMPING = 0.003, 0.05  # of frequencies and damping ratios, their deviations


def loaded(tmp_path, text):
    return parflex.load(write_robot(tmp_path, text))


def bar(tmp_path, left=1000.0, right=1000.0):
    return loaded(tmp_path, with_constants("rocking-bar", left=left, right=right))


def frequency_rows(frequencies, noise=(0, 0, 0, 0), share=NOISE):
    return [{"pose": "home", "mode": k, "frequency_hz": f * (1 + share * n), "deviation_hz": share * f}
            for k, (f, n) in enumerate(zip(frequencies, noise, strict=False), start=1)]  # fmt: skip


def sliders(tmp_path, true, noise, of_damping=None, prior=0.3):
    frequencies, ratios = sprung_masses.slider_modes(**true)
    table = frequency_rows(frequencies, noise)
    if of_damping:
        table = [row | {"damping": z * (1 + OF_DAMPING * n), "damping_deviation": OF_DAMPING * z}
                 for row, z, n in zip(table, ratios, of_damping, strict=True)]  # fmt: skip
    keys = [f"constants.{key}" for key in true]
    return parflex.update(load_robot("sliding-chain"), table, keys, prior=prior)


def test_the_sliders_and_the_bar_by_hand_have_the_frequencies_of_their_files(tmp_path):
    found = parflex.natural_frequencies(load_robot("sliding-chain"), without=["damping"]).frequencies
    assert found == pytest.approx(sprung_masses.slider_modes(c1=0.0, c3=0.0)[0], rel=1e-9)
    found = parflex.natural_frequencies(bar(tmp_path, right=1300.0)).frequencies
    assert found == pytest.approx(sprung_masses.bar_frequencies(1000.0, 1300.0, 0.4), rel=1e-9)


def test_the_answer_has_the_least_sum(tmp_path):
    true, noise = {"k1": 60e3, "k3": 15e3}, np.array([0.8323, -0.1348, -1.0978, 1.2093])
    found = sliders(tmp_path, true, noise)
    (other,) = found.alternatives
    measured = sprung_masses.slider_modes(**true)[0]

    def total(parameters):
        now = {key: parameters[f"constants.{key}"]["value"] for key in true}
        left = (sprung_masses.slider_modes(**now)[0] / measured - 1) / NOISE - noise
        away = np.array([now[key] / sprung_masses.FIRST[key] - 1 for key in true]) / 0.3
        return left @ left + away @ away

    # 50.5e3 is the minimum next to the file, and just beyond chance; both are rounded, and 20 % from each other
    assert found.parameters["constants.k1"]["value"] == pytest.approx(60.2e3, rel=5e-3)
    assert other["parameters"]["constants.k1"]["value"] == pytest.approx(50.5e3, rel=5e-3)
    least = total(found.parameters)
    # a search ends a thousandth of a deviation from a minimum
    assert 0 < other["more"] == pytest.approx(total(other["parameters"]) - least, abs=1e-4)
    assert found.model_share["frequency"] == 0


BAR = ["constants.left", "constants.right", "constants.inertia"]


@pytest.mark.parametrize("share", [0.003, 0.01])
def test_both_mirror_solutions_are_found_from_the_saddle_between_them(tmp_path, share):
    table = frequency_rows(sprung_masses.bar_frequencies(950.0, 1250.0, 0.4), share=share)
    found = parflex.update(bar(tmp_path), table, BAR[:2])
    other = found.alternatives[0]
    one, two = ([parameters[key]["value"] for key in BAR[:2]] for parameters in (found.parameters, other["parameters"]))
    # priors pull by (deviation of the fit / of the prior)^2 of the way: (4.5 % / 30 %)^2 of 250 at most
    assert sorted(one) == pytest.approx([950.0, 1250.0], abs=15.0)
    assert one == pytest.approx(two[::-1], rel=1e-4)  # a search ends a thousandth of a deviation of 5 % from a minimum
    assert other["more"] == pytest.approx(0.0, abs=1e-6) and other["more"] >= 0
    assert all(parameter["interval"] for parameter in found.parameters.values())
    for saddle in found.alternatives[1:]:  # within the 95 % region of both, and without deviations
        assert all(number["deviation"] is None for number in saddle["parameters"].values())


def test_identical_springs_are_undetermined(tmp_path):
    table = frequency_rows(sprung_masses.bar_frequencies(1000.0, 1000.0, 0.4))
    found = parflex.update(bar(tmp_path), table, BAR[:2])
    assert all(found.parameters[key][word] is None for key in BAR[:2] for word in ("deviation", "interval", "relative"))
    (combination,) = found.undetermined
    assert abs(combination[BAR[0]]) == pytest.approx(0.5**0.5)
    assert sum(combination.values()) == pytest.approx(0, abs=1e-6)
    words = "without an interval: 'constants.left', 'constants.right': vary fewer"
    assert any(words in text for text in found.warnings)
    one = parflex.update(bar(tmp_path), table, BAR[:1])
    assert one.parameters[BAR[0]]["interval"] and not one.undetermined


def test_a_number_that_compensates_for_the_square_of_what_is_undetermined_is_so_too(tmp_path):
    """Frequencies of springs 900 and 1300 with an inertia of 0.45 are those of equal springs with another inertia."""
    lowest, highest = sprung_masses.bar_frequencies(900.0, 1300.0, 0.45)
    found = parflex.update(bar(tmp_path), frequency_rows((lowest, highest)), BAR)
    inertia = found.parameters[BAR[2]]
    assert 0.45 - inertia["value"] > 10 * NOISE * 0.45  # far outside an interval by sensitivities alone
    assert all(one["interval"] is None for one in found.parameters.values()) and len(found.undetermined) == 1


@pytest.mark.parametrize(("share", "determined"), [(0.2, False), (0.1, True)])
def test_one_number_is_determined_where_measurements_are_sharper_than_its_prior(tmp_path, share, determined):
    """A frequency goes by the root of the stiffness: its deviation counts twice, against a prior of 0.3."""
    text = with_constants("rocking-bar").replace("left = 1000.0\nright = 1000.0\n", "sum = 2000\n")
    text = text.replace('"left"', '"sum/2"').replace('"right"', '"sum/2"')
    lowest = sprung_masses.bar_frequencies(1000.0, 1000.0, 0.4)[0]
    found = parflex.update(loaded(tmp_path, text), frequency_rows([lowest], share=share), "constants.sum")
    one = found.parameters["constants.sum"]
    assert (one["interval"] is not None) == determined and bool(found.undetermined) != determined
    if determined:
        assert one["deviation"] == pytest.approx(2000 / np.hypot(1 / 0.3, 1 / (2 * share)), rel=1e-6)


MODES, NUMBERS = 6, 2


def fitted(poses, error=0.02, prior=np.inf, modes=MODES):
    """Modes that depend on the numbers alike at every pose, and deviations that are all of the model."""
    slopes = np.random.default_rng(4).standard_normal((modes, NUMBERS))
    fitting, fit, spread = of_slopes(np.tile(slopes, (poses, 1)), list(range(modes)) * poses, error, prior)
    return fitting, fit, slopes, spread


def of_slopes(S, modes, error, prior=np.inf):
    """A fit with these slopes of frequencies of 50 Hz, of modes with these numbers."""
    y = np.full(len(S), 50.0)
    spread = 0.02 * y if not error else error * y
    plain = np.linalg.inv((S / spread[:, None]).T @ (S / spread[:, None]))
    fitting = SimpleNamespace(
        y=y, kind=np.zeros(len(y), dtype=int), row_of=np.arange(len(y)), error=np.array([error, 0.0]),
        prior=np.full(S.shape[1], prior), used=lambda fit: np.ones(len(y), dtype=bool), covariance=lambda fit: plain,
        by_model=error * y, spread=lambda fit: spread, information=lambda fit: S / spread[:, None],
        freedoms=lambda fit, kind: float(len(y) - S.shape[1]),
    )  # fmt: skip
    return fitting, SimpleNamespace(modes=modes), spread[0]


@pytest.mark.parametrize("poses", [1, 4, 25])
def test_a_shared_error_does_not_cancel_over_poses(poses):
    fitting, fit, slopes, spread = fitted(poses)
    found, freedoms = shared_errors(fitting, fit)
    # n modes, k numbers, p poses: n - k errors show; residuals of p (n - k) are taken for those of n p - k
    shows = poses * (MODES - NUMBERS) / (MODES * poses - NUMBERS)
    larger = shows / shows + (1 - shows)
    assert found == pytest.approx(larger * spread**2 * np.linalg.inv(slopes.T @ slopes), rel=1e-9)  # rounding
    assert freedoms == pytest.approx(MODES - NUMBERS + 1 - shows)


def test_a_shared_error_that_the_numbers_take_up_is_as_large_as_that_of_the_rows():
    """As many modes as numbers: residuals show nothing of an error of each mode, and say nothing of its size."""
    fitting, fit, slopes, spread = fitted(3, modes=NUMBERS)
    found, freedoms = shared_errors(fitting, fit)
    assert found == pytest.approx(2 * spread**2 * np.linalg.inv(slopes.T @ slopes), rel=1e-9)  # rounding
    assert 1 <= freedoms <= NUMBERS + 1


@pytest.mark.parametrize("poses", [2, 3, 6])
@pytest.mark.parametrize("numbers", [1, 2, 3])
def test_intervals_hold_stiffnesses_of_chains_whose_masses_are_wrong(monkeypatch, poses, numbers):
    """Linear fits beside frequencies by hand: nine of ten are held, and intervals are not far wider than that needs."""
    angles = [(0.0, 0.0), (1.0, -0.5), (2.0, 1.0), (-0.7, 1.2), (0.3, 0.4), (-1.5, -0.4)][:poses]
    monkeypatch.setattr(spring_chain, "POSES", dict(enumerate(angles)))
    stiffness, masses = np.array([900.0, 400.0, 150.0]), np.array(spring_chain.MASSES)

    def logs(k=stiffness, m=masses):
        monkeypatch.setattr(spring_chain, "MASSES", m)
        return np.log(np.concatenate([spring_chain.frequencies(pose, k) for pose in spring_chain.POSES]))

    base, step = logs(), 1e-5
    S = np.stack([(logs(stiffness * (1 + step * one)) - base) / step for one in np.eye(3)[:numbers]], axis=1)
    rng, held, width, off = np.random.default_rng(5), [], [], []
    for _ in range(60):
        e = logs(m=masses * (1 + 0.05 * rng.standard_normal(3))) - base + 0.002 * rng.standard_normal(len(base))
        shift = np.linalg.lstsq(S, e, rcond=None)[0]
        left = e - S @ shift
        error = float(np.sqrt(left @ left / (len(e) - numbers)))
        fitting, fit, _ = of_slopes(50.0 * S, [0, 1, 2] * poses, error)
        covariance, freedoms = shared_errors(fitting, fit)
        reach = scipy.special.stdtrit(freedoms, 0.975) * np.sqrt(np.diag(covariance))
        held.extend(np.abs(shift) <= reach)
        width.append(reach)
        off.append(shift)
    needed = 1.96 * np.sqrt(np.mean(np.square(off), axis=0))
    # 60 to 180 intervals: 0.9 of 0.95 is two deviations of 60 below
    assert np.mean(held) >= 0.9 and (np.median(width, axis=0) < 3 * needed).all()


def test_without_an_error_of_the_model_rows_stand_for_themselves():
    fitting, fit, _, _ = fitted(4, error=0.0)
    found, freedoms = shared_errors(fitting, fit)
    assert found == pytest.approx(fitting.covariance(fit)) and freedoms == 4 * MODES - NUMBERS


def test_deviations_are_not_above_those_of_the_prior():
    fitting, fit, _, _ = fitted(25, prior=0.3)
    assert np.sqrt(np.diag(shared_errors(fitting, fit)[0])) == pytest.approx(0.3)


CONSTANTS = {"m": 2.0, "k": 900.0, "c": 12.0, "a": 0.25}
OF_ELEMENTS = [f"constants.{key}" for key in CONSTANTS]
ELEMENTS = {  # kind of element, beside the ends
    "spring": 'kind = "spring"\nstiffness = "k"\nrest = 0.3\ndamping = "c"',
    "cable": 'kind = "cable"\nstiffness = "k"\nrest = 0.3\ndamping = "c"',
    "damper": 'kind = "damper"\ndamping = "c"',
    "force": 'kind = "force"\ndamping = "c"\n'
             'table = { length = [[0.1, "-k/10"], [0.9, "k/10"]], speed = [[-1, "-c"], [1, "c"]] }',
    "spring by a table": 'kind = "spring"\ntable = [[0.1, "-k/10"], [0.4, 0], [0.9, "k/5"]]\ndamping = "c"',
}  # fmt: skip
COUPLING = """
[[coupling]]
name = "belt"
joint = "second"
terms = { first = 0.5 }
stiffness = "k/10"
damping = "c/100"
"""


def with_element(base: str, first: str, second: str, text: str) -> str:
    head = f"format = 1\nname = 'sprung'\nextends = '{robot_file(base)}'\n"
    return f'{head}[[element]]\nname = "x"\nbetween = ["{first}", "{second}"]\n{text}\n'


ROBOTS = {
    **{f"{kind} between links": with_element("sprung-links", "wall", "tip", text) for kind, text in ELEMENTS.items()},
    **{
        f"{kind} on a free platform": with_element("sprung-platform", "g2", "platform.p3", text)
        for kind, text in ELEMENTS.items()
    },
    "elastic coupling": f"format = 1\nname = 'sprung'\nextends = '{robot_file('sprung-links')}'\n{COUPLING}",
}


def poles(robot, about):
    """All that vibrate, by LAPACK on the whole matrices: frequency |pole|/(2 pi) and ratio, by frequency."""
    model = parflex.linear_model(robot, "home", about=about)
    M, D, K = (np.asarray(matrix, dtype=float) for matrix in (model.M, model.D, model.K))
    I, O = np.eye(len(M)), np.zeros_like(M)
    values = linalg.eigvals(np.block([[O, I], [-K, -D]]), np.block([[I, O], [O, M]]))
    values = values[values.imag > 1e-6]
    return np.array(sorted((abs(pole) / (2 * np.pi), -pole.real / abs(pole)) for pole in values))


@pytest.mark.few
@pytest.mark.parametrize(
    ("name", "about"),
    [
        *((name, "undeformed") for name in ROBOTS),
        *((f"{kind} between links", "equilibrium") for kind in ("spring", "cable")),
    ],
)
def test_poles_have_the_slopes_of_their_differences(name, about, tmp_path):
    path = write_robot(tmp_path, ROBOTS[name])
    robot = parflex.load(path)
    modes = modes_at(robot, "home", ResponseCase(about=about), 3, SensitiveDesign(robot, OF_ELEMENTS))
    wanted, changes = poles(robot, about), []
    for key in OF_ELEMENTS:
        value = CONSTANTS[key.split(".")[1]]
        sides = [poles(parflex.load(path, settings={key: value * (1 + way)}), about) for way in (1e-4, -1e-4)]
        changes.append((sides[0] - sides[1]) / 2e-4)
    for mode in range(2):
        f, ratio, *slopes = modes.damped(mode)
        at = int(np.argmin(np.abs(wanted[:, 0] - f)))
        assert [f, ratio] == pytest.approx(wanted[at], rel=1e-9, abs=1e-12)
        relative = np.transpose(slopes) * np.array(list(CONSTANTS.values()))[:, None]
        # differences of second order: 1e-8 of what changes, and rounding over steps of 1e-4
        assert relative == pytest.approx(np.array(changes)[:, at], rel=1e-5, abs=1e-6)


DUALEMPS = ["materials.dural.elastic_modulus", "materials.dural.density", "frame.12.inertia.M"]
CHAIN = ["constants.first", "constants.second_damper"]


def compared(robot, keys, pose, given, share=1.1, count=5):
    """Modes of the robot with all numbers at keys by a share, kept and read again; and whether the pose is kept."""
    values = np.array([share * number_at(robot, key) for key in keys])
    designs = ReboundRobots(robot, keys, given)
    designs.of(2 * values).modes(pose, count)  # nothing of another design is kept
    again = with_settings(robot, dict(zip(keys, map(float, values), strict=True)))
    anew = modes_at(again, pose, given, count, SensitiveDesign(again, keys))
    return designs.of(values).modes(pose, count), anew, designs.at(pose)


DESIGNS = {
    "materials and masses of a closed loop": ("dualemps", DUALEMPS, {}),
    "servos on motors with inertia": ("carriage", ["constants.rotor", "constants.spring"], {"servo": 1e4}),
    "springs of drives and sections": ("navaro-refined", ["legs.frame.1.spring.stiffness", "sections.platform.Iz"], {}),
    "about the equilibrium": ("dualemps", DUALEMPS[:1], {"about": "equilibrium"}),
}


@pytest.mark.parametrize("case", DESIGNS)
def test_numbers_that_move_nothing_are_put_into_the_robot_as_it_is(case):
    name, keys, words = DESIGNS[case]
    robot = load_robot(name) if name == "carriage" else parflex.load(name)
    kept, anew, pose = compared(robot, keys, "home", ResponseCase(**words))
    assert pose is not None
    # sums in another order: rounding of eigenvalues, about 1e-16 of the highest squared frequency over that of a mode
    assert kept.modes.frequencies == pytest.approx(anew.modes.frequencies, rel=1e-8)
    assert kept.modes.excess == pytest.approx(anew.modes.excess, rel=1e-6)
    for mode in range(min(3, len(kept.modes.frequencies))):
        assert kept.frequency(mode)[1] == pytest.approx(anew.frequency(mode)[1], rel=1e-7)


def test_numbers_that_move_poses_put_the_robot_together_again_and_dampers_do_not(tmp_path):
    text = with_constants("spring-chain", first=900.0, second=400.0, third=150.0)
    text += '\n[poses.turned]\nmotor-b = "first/900"\n'
    dampers = {"constants.first_damper": 2.0, "constants.second_damper": 1.0}
    robot = parflex.load(write_robot(tmp_path, text), settings=dampers)
    kept, anew, _ = compared(robot, CHAIN, "bent", ResponseCase(), count=3)
    for mine, other in zip(kept.damped(1), anew.damped(1), strict=True):
        assert mine == pytest.approx(other, rel=1e-9)
    kept, anew, pose = compared(robot, CHAIN[:1], "turned", ResponseCase(), count=3)
    assert pose is None  # a stiffness stands in the pose: 10 % more turn the joint
    assert kept.modes.frequencies == pytest.approx(anew.modes.frequencies, rel=1e-12)
    assert ReboundRobots(robot, CHAIN[:1], ResponseCase()).at("bent") is not None
    assert ReboundRobots(parflex.load("navaro"), ["constants.bar"], ResponseCase()).at("home") is None
