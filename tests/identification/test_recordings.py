"""Records: columns, clocks, noise, and parameters that records hardly determine."""

import itertools

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from support.command_line import refused
from support.oracles import measured
from support.recordings import BY_HAND, arm_record, axis_record, followed, noisy, slide, three_rrr
from support.robots import load_robot, write_robot

import parflex
from parflex.identification import diagnostics, identify
from parflex.identification.estimators import EffortRows, fit_rows
from parflex.identification.preprocess import (
    FilterChoice,
    choose_filter,
    decimate_rows,
    filtered_motion,
    quantised_positions,
)
from parflex.identification.recordings import Recording, _limited


def test_columns_have_gains_offsets_and_a_known_payload():
    for load, more in ((0.0, {}), (2.0, {"payload": {"record": [2.0, 0, 0, 0.1]}})):
        found = parflex.identify(slide(), axis_record(load), BY_HAND | more, friction="direction", cutoff=50)
        assert found.measurements[0].position[0, 0] == pytest.approx(0.0, abs=1e-12)
        assert found.parameters["M[axis]"].value == pytest.approx(8.0, rel=2e-4)


def test_records_that_are_no_files_have_numbers():
    two = [axis_record(2.0, noise=0.01), axis_record(noise=0.012)]
    columns = BY_HAND | {"payload": {"record 1": [2.0, 0, 0, 0.1], "record": [1.0, 0, 0, 0]}}
    found = parflex.identify(slide(), two, columns, friction="direction", cutoff=50, validate=two[0])
    assert [record.name for record in found.measurements] == ["record 1", "record 2", "validation"]
    assert found.parameters["M[axis]"].value == pytest.approx(8.0, rel=0.02)  # the payload is 25 %
    assert any("payload of 'record' is not used" in text and "record 1, record 2" in text for text in found.warnings)
    assert any(text.startswith("validation: its samples are those of a record of the fit") for text in found.warnings)


def test_records_in_parquet_files_are_those_in_npz_files(tmp_path):
    record = axis_record(noise=0.01)
    np.savez(tmp_path / "record.npz", **record)
    pyarrow.parquet.write_table(pyarrow.table(record), tmp_path / "record.parquet")
    found = [parflex.identify(slide(), tmp_path / f"record.{end}", BY_HAND, cutoff=50) for end in ("npz", "parquet")]
    assert found[0].values == pytest.approx(found[1].values, rel=1e-12)
    (tmp_path / "broken.parquet").write_text("t,x")
    with pytest.raises(parflex.InputError, match="is not a Parquet file"):
        parflex.identify(slide(), tmp_path / "broken.parquet", BY_HAND)


STEP = 1e-3  # s
REGULAR = np.arange(4000) * STEP


def jittered(share):
    """Stamps that are off a regular clock by up to this share of a step."""
    return REGULAR + share * STEP * np.random.default_rng(3).uniform(-1, 1, len(REGULAR))


def at_times(stamps, samples):
    """Identify a mass of 8 kg with friction from samples at any times."""
    rng, t = np.random.default_rng(0).standard_normal((2, len(samples))), samples
    x = 0.1 * np.sin(2 * t) + 0.05 * np.sin(7 * t) + 1e-6 * rng[0]
    v = 0.2 * np.cos(2 * t) + 0.35 * np.cos(7 * t)
    a = -0.4 * np.sin(2 * t) - 2.45 * np.sin(7 * t)
    effort = 8 * a + 12 * v + 3 * np.sign(v) + 0.02 * rng[1]
    return parflex.identify(slide(), {"t": stamps, "q.axis": x, "effort.axis": effort}, cutoff=50)


@pytest.mark.parametrize("share", [0.01, 0.2])
@pytest.mark.parametrize("follow", [False, True])
def test_jitter_of_stamps_does_not_change_parameters(share, follow):
    stamps = jittered(share)
    found = at_times(stamps, stamps if follow else REGULAR)
    one, right = found.parameters["M[axis]"], at_times(REGULAR, REGULAR).parameters["M[axis]"]
    assert abs(one.value - right.value) < 2 * right.deviation  # interpolation leaves other noise
    (text,) = [text for text in found.steps if "off a regular clock" in text]
    assert f"up to {100 * share:.2g} % of a step" in text
    assert ("samples follow them" if follow else "samples are regular") in text
    assert (
        one.deviation_white < 1.25 * right.deviation_white
    )  # of regular samples, but for the noise of the interpolation
    assert not any("regular clock" in text for text in at_times(REGULAR, REGULAR).steps)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: np.delete(t, 1700), "samples are missing: a gap of 0.00[12]"),
        (lambda t: t + 0.01 * (t - 2.0) ** 2 / 4, "steps of time are between"),
        (  # a loop that waits after each sample: errors of steps add up
            lambda t: t[0] + np.cumsum(STEP * (1 + 0.3 * np.random.default_rng(0).uniform(-1, 1, len(t)))),
            "steps off a regular clock",
        ),
    ],
)
def test_irregular_clocks_are_refused(change, message):
    stamps = change(jittered(0.01))
    with pytest.raises(parflex.InputError, match=message):
        at_times(stamps, stamps)


def changed(**columns):
    clean = followed(1)
    return clean | {name.replace("_", "."): change(clean[name.replace("_", ".")]) for name, change in columns.items()}


def of_motors(**words):
    """Change the columns of all motors; `q` and `effort` are functions of the column and the number of the motor."""
    clean = followed(1)
    return clean | {f"{word}.{motor}": change(clean[f"{word}.{motor}"], k)
                    for word, change in words.items() for k, motor in enumerate(measured.MOTORS)}  # fmt: skip


def jump(position):
    return position + 2 * np.pi * (followed(1)["t"] > 1)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (lambda: {k: v for k, v in followed(1).items() if k != "effort.leg2.1"}, "there is no column 'effort.leg2.1'"),
        (lambda: of_motors(effort=lambda e, k: e[:-1] if k == 0 else e), "has 1999 rows, and the time has 2000"),
        (lambda: of_motors(q=lambda q, k: np.where(q == q[9], np.nan, 1)), "1 values that are no numbers"),
        (lambda: changed(t=lambda t: t + 0.3 * (t > 1)), "a gap of 0.302 s at t = 1 s"),
        (lambda: changed(t=lambda t: t[::-1]), "time does not grow"),
        (lambda: [followed(1), dict(followed(1))], "record 2 has the samples of another one"),
        (lambda: of_motors(q=lambda q, k: jump(q) if k == 1 else q), "positions of 'leg2.1' jump by 6.28. at t = 1.00"),
        (
            lambda: {k: v[:1500] if k == "t" else np.delete(v, np.r_[800:1300]) for k, v in followed(1).items()},
            "positions of 'leg1.1' jump by",
        ),
        (lambda: of_motors(q=lambda q, k: 0 * q + 1), "no motor moves"),
        (lambda: of_motors(q=lambda q, k: np.degrees(q)), "do not close.*degrees"),
    ],
)
def test_invalid_records_are_refused(record, message):
    with pytest.raises((parflex.SingularError, parflex.InputError), match=f"(?s){message}"):
        parflex.identify(three_rrr(), record())


def test_degrees_of_small_motions_are_reported(tmp_path):
    robot = load_robot("arm-of-two-links")
    record = arm_record(robot)
    assert not any("degrees" in text for text in parflex.identify(robot, record).warnings)
    turned = record | {name: np.degrees(record[name]) for name in ("q.s", "q.e")}
    warnings = parflex.identify(robot, turned).warnings
    assert np.abs(turned["q.s"]).max() < 4
    assert any("with positions in degrees: if they are, give gain = 0.0174" in text for text in warnings)
    limited = parflex.load(robot.file, settings={"frame.e.limits": [-1, 1]})
    warnings = parflex.identify(limited, turned).warnings
    assert any("of 'e' are between -2.8" in text and "beyond its limits: check its unit" in text for text in warnings)


@pytest.mark.parametrize("flicker", ["noise", "lines", "none"])
def test_a_motor_at_rest_determines_no_friction(flicker):
    robot, rng = load_robot("arm-of-two-links"), np.random.default_rng(4)
    record = arm_record(robot)
    t, still = record["t"], 1e-5 * rng.standard_normal(len(record["t"]))
    if flicker == "lines":
        still = 5e-5 * (np.sin(0.9 * t) + 0.1 * rng.standard_normal(len(t)) > 0)  # slowly, between two lines
    record |= {"q.s": 0.3 * np.sin(3 * t), "q.e": 0.2 + still, "effort.e": 0.1 * rng.standard_normal(len(t))}
    if flicker == "none":
        record |= {"q.e": 0 * t + 0.2, "effort.s": np.cos(3 * t), "effort.e": 0 * t}
    found = parflex.identify(robot, record)
    assert {"FV[e]", "FS[e]"} <= {row["name"] for row in found.undetermined}
    assert not {"FV[e]", "FS[e]"} & set(found.parameters) and np.isfinite(found.values).all()
    assert flicker != "none" or found.per_motor["e"]["relative_error"] < 1e-3


@pytest.mark.parametrize("flicker", ["noise", "lines"])
def test_a_record_at_rest_is_refused_though_encoders_flicker(flicker):
    rng, t = np.random.default_rng(3), np.arange(4000) * 1e-3
    x = 1e-3 * rng.standard_normal(len(t))
    rest = {"t": t, "x": 1e-3 * (x > 0) if flicker == "lines" else x, "i": rng.standard_normal(len(t))}
    with pytest.raises(parflex.InputError, match="no motor moves in the record"):
        parflex.identify(slide(), rest, BY_HAND)
    slow = {"t": t, "x": 0.01 * np.sin(3 * t) + x, "i": rng.standard_normal(len(t))}  # ten times its noise
    found = parflex.identify(slide(), slow, BY_HAND).parameters.values()
    assert not any(one.essential for one in found)


def test_a_steady_record_names_the_parameters_that_it_does_not_determine():
    t = np.arange(3000) * 1e-3
    steady = {"t": t, "x": 1e3 * (0.2 * t - 0.3), "i": (12 * 0.2 + 3 + 0 * t) / 2.5}
    found = parflex.identify(slide(), steady, BY_HAND, cutoff=50)
    assert len(found.parameters) == 1  # at a constant speed viscous and Coulomb friction are equal
    why = "the motion of the record does not excite it: record an exciting motion, such as that of parflex excite"
    assert found.undetermined == [{"name": name, "why": why} for name in ("M[axis]", "FS[axis]")]


def test_efforts_at_their_limit_are_reported():
    record = of_motors(effort=lambda effort, k: np.clip(effort, -1.0, 1.0) if k == 0 else effort)
    found = parflex.identify(three_rrr(), record, cutoff=40)
    assert any("stands at its limit 1 in" in text for text in found.warnings)
    t = np.arange(4000) * 1e-3
    coarse = np.round((np.sin(6 * t) + 0.4 * np.sin(13 * t)) / 0.02) * 0.02  # a value about each maximum is no limit
    assert not _limited(["axis"], coarse[:, None]) and _limited(["axis"], np.clip(coarse, -1.2, 1.2)[:, None])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[position]\naxs = "q"\n', "'axs' is not a motor; did you mean 'axis'"),
        ('[position]\naxis = "qm"\n', "the effort of 'axis' is missing"),
        ('tim = "t"\n', "unknown key 'tim'; did you mean 'time'"),
        ("[position]\naxis = { gain = 2 }\n", "the name of a column is expected"),
        ('[position]\naxis = "q"\n[effort]\naxis = { column = "i", gain = 0 }\n', "a gain of zero"),
        ('[position]\naxis = "q"\n[effort]\naxis = "i"\n[controller]\nkp = 2\n', "key 'kv' is missing"),
        ('[position]\naxis = "q"\n[effort]\naxis = "q"\n', "the column 'q' is that of position.axis, too"),
        ('[position]\naxis = "q"\n[effort]\naxis = "i"\n[payload]\n"a.csv" = [-1, 0, 0, 0]\n', "is negative"),
        ("[position", "is not TOML"),
    ],
)
def test_invalid_maps_of_columns_are_refused(tmp_path, text, message):
    path = write_robot(tmp_path, text, "map")
    with pytest.raises(parflex.InputError, match=message):
        parflex.identify(parflex.load("emps"), {"t": np.arange(200.0)}, str(path))


def test_flexible_robots_unknown_estimators_and_names_and_short_records_are_refused(capsys, tmp_path):
    for robot, words, message in (
        ("dualemps", {}, "is flexible"),
        ("emps", {"estimator": "best"}, "estimator"),
        ("emps", {"keep": ["acros"]}, "'acros' has no spring and no damper that is looked for"),
    ):
        with pytest.raises(parflex.InputError, match=message):
            parflex.identify(parflex.load(robot), {"t": np.arange(200.0)}, **words)
    (tmp_path / "table.csv").write_text("t,q.axis,effort.axis\n0,1,2\n")
    assert "the record has 1 samples" in refused(capsys, "identify", "emps", tmp_path / "table.csv")["message"]


def cutoff_of(t, x) -> float:
    position = x[:, None]
    return choose_filter([Recording("hand", t, position, 0 * position)], None, None, None).cutoff


@pytest.mark.few("1.5-250", "6.0-1000")
@pytest.mark.parametrize("rate", [250.0, 1000.0, 4000.0])
@pytest.mark.parametrize("highest", [1.5, 6.0])
def test_the_cutoff_is_where_motion_falls_below_noise(rate, highest):
    t = np.arange(round(6 * rate)) / rate
    clean = sum(np.sin(2 * np.pi * f * t + f) / f for f in (0.5, 1.0, highest))
    noises = [size * np.random.default_rng(1).standard_normal(len(t)) for size in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)]
    result = [cutoff_of(t, clean + noise) for noise in noises]
    assert all(after <= before * 1.01 for before, after in itertools.pairwise(result))
    for cutoff in result:  # lines of spectra are a third of a hertz wide, and have skirts; at most a fifth of the rate
        assert min(2.4 * highest, 0.19 * rate) < cutoff < min(10 * highest + 15, 0.21 * rate)


@pytest.mark.parametrize("decimate", [2, 10, 40])
def test_noise_is_equal_at_all_decimated_instants(decimate):
    choice = FilterChoice(100.0 / decimate, decimate, 5 * decimate)
    weights = decimate_rows(choice.inside(np.eye(80 * decimate)), choice)  # the share of each sample in an instant
    noise = (weights**2).sum(axis=1)
    assert len(noise) == 64 and noise.max() < 1.15 * noise[35]  # the first and last behind the low-pass have 40 times


@pytest.mark.parametrize("rate", [50.0, 500.0])
def test_accelerations_of_coarse_samples_are_complete(rate):
    t = np.arange(8 * rate) / rate
    x, a = np.sin(6 * np.pi * t), -((6 * np.pi) ** 2) * np.sin(6 * np.pi * t)
    record = Recording("hand", t, x[:, None], a[:, None])
    choice = choose_filter([record], 0.2 * rate, 1, None)
    left = filtered_motion(record, choice).acceleration[:, 0] - choice.inside(a)
    # at 50 Hz the low-pass takes (tan(0.06 pi)/tan(0.2 pi))^8 = 2e-5, and the slowest pole leaves 0.68^25 = 7e-5 of the
    # ends behind five periods; two neighbours would miss (6 pi h)^2/3 = 5 %, four 7e-4
    assert np.abs(left).max() < 1e-4 * a.max()


def test_an_inertia_is_that_of_coarse_samples():
    t = np.arange(600) / 50.0
    w = 2 * np.pi * np.array([0.6, 1.1, 2.5])
    x, a = (np.sin(t[:, None] * w) @ part for part in (np.array([0.3, 0.2, 0.1]), -(w**2) * [0.3, 0.2, 0.1]))
    found = parflex.identify(slide(), {"t": t, "x": x, "i": 3.0 * a}, BY_HAND)
    # of the acceleration at 2.5 Hz the low-pass at 10 Hz takes (tan(0.05 pi)/tan(0.2 pi))^8 = 5e-6
    assert found.parameters["M[axis]"].value == pytest.approx(7500.0, rel=1e-5)  # by two neighbours 2 % too much


def test_large_noise_of_positions_does_not_change_masses():
    found = parflex.identify(three_rrr(), measured.as_measured(followed(1), 0, noise=5e-4, lines=2**13))
    assert found.filter.cutoff < 25
    assert found.parameters["M[platform]"].value == pytest.approx(2.366, rel=0.1)  # by 40 Hz it is lost to noise


INERTIA, WEIGHT, VISCOUS, DRY = 0.9, 8.0, 0.4, 0.6  # kg m^2, N m, N m s/rad, N m
LINE = 2 * np.pi / 1000
TRUE = {"ZZ[arm]": INERTIA, "MX[arm]": WEIGHT / 10, "MY[arm]": 0.0, "FV[arm]": VISCOUS, "FS[arm]": DRY}


def swung(rate, seed=0, highest=0.25):
    """A pendulum that is led slowly, with an encoder of 1000 lines: its equation of motion is explicit."""
    rng, t = np.random.default_rng(seed), np.arange(20 * rate) / rate
    w = 2 * np.pi * highest * np.array([0.2, 0.6, 1.0])
    size, phase = np.array([0.3, 0.2, 0.12]), rng.uniform(0, 6, 3)
    q = np.sin(np.outer(t, w) + phase) @ size
    qd, qdd = np.cos(np.outer(t, w) + phase) @ (size * w), -np.sin(np.outer(t, w) + phase) @ (size * w**2)
    tau = INERTIA * qdd + WEIGHT * np.cos(q) + VISCOUS * qd + DRY * np.sign(qd)
    tau = tau + 0.005 * tau.std() * rng.standard_normal(len(t))
    return {"t": t, "q.arm": LINE * np.round(q / LINE), "effort.arm": tau}


@pytest.mark.parametrize("rate", [200, 1000])
def test_a_coarse_encoder_in_slow_motion_does_not_reduce_inertias(rate):
    off = []
    for seed in range(4):
        found = parflex.identify(load_robot("slow-pendulum"), swung(rate, seed))
        assert found.filter.cutoff < 6  # by the highest frequencies alone a fifth of those of the samples
        off += [(one.value - TRUE[name]) / one.deviation for name, one in found.parameters.items()]
    # 20 deviations: at 200 Hz behind 40 Hz they are 40 and more; those of right intervals have a mean square of one
    assert np.sqrt(np.mean(np.square(off))) < 1.5


def test_a_cutoff_that_lets_rounding_through_is_reported():
    warnings = parflex.identify(load_robot("slow-pendulum"), swung(200), cutoff=40).warnings
    assert any("noise of positions may move" in text for text in warnings)


def test_steps_of_an_encoder_are_read_from_the_positions():
    t = np.arange(4000) * 1e-3
    slow, fast = 0.1 * np.sin(t), 100 * np.sin(t)
    steps = quantised_positions(LINE * np.round(slow / LINE))
    assert steps.line == pytest.approx(LINE) and steps.samples > 20
    flickering = LINE * np.round((slow + LINE * np.random.default_rng(0).standard_normal(len(t))) / LINE)
    rests = np.where(t < 3, 0.0, LINE * np.round(fast / LINE))
    assert not any(quantised_positions(x) for x in (slow, LINE * np.round(fast / LINE), rests, 0 * t, flickering))
    # error of a line per 100 samples: as strong at each frequency below the rate of lines as white noise of this size
    assert quantised_positions(np.repeat(np.arange(200.0), 100)).as_white == pytest.approx(np.sqrt(1 / 12 * 50))
    # the cutoff does not follow the frequency of lines at a steady speed: 3.2 lines per second at 0.02 rad/s
    t = np.arange(20 * 500) / 500
    x = 0.2 * np.abs((0.1 * t) % 2 - 1)
    cutoffs = [cutoff_of(t, line * np.round(x / line)) for line in (LINE, 1e-9)]
    assert cutoffs[0] < 6 < 20 < cutoffs[1]  # corners of the motion have all frequencies


CORRELATED = {"FV": 0.4, "FS": 0.25}  # of the record; all else is that of the file


@pytest.mark.parametrize("instruments", [False, True])
def test_parameters_that_are_hardly_told_keep_their_deviation_whatever_their_units(instruments):
    rng = np.random.default_rng(0)
    W = rng.standard_normal((200, 1, 5))
    W[:, :, 4] = W[:, :, 3] + 3e-6 * W[:, :, 4]  # a record that tells the two apart by 3e-6 of them
    W *= np.array([1e4, 1.0, 1e-4, 1e-3, 1e-3])
    rows = EffortRows(W, rng.standard_normal((200, 1)), instruments=W.copy() if instruments else None)
    found, flat = fit_rows(rows), W[:, 0] / np.linalg.norm(W[:, 0], axis=0)
    for k in range(5):  # one over what others leave of a column
        others = np.delete(flat, k, axis=1)
        left = flat[:, k] - others @ np.linalg.lstsq(others, flat[:, k], rcond=1e-15)[0]
        noise = np.sqrt((found.residuals**2).sum() / (200 - 5))
        wanted = noise / np.linalg.norm(left) / np.linalg.norm(W[:, 0, k])
        # products of columns have the square of 3e-6 in them, and rounding: 1e-16 over 1e-11, some times
        assert np.sqrt(found.white[k, k]) == pytest.approx(wanted, rel=1e-3 if instruments else 1e-4), k


@pytest.mark.few("100.0")
@pytest.mark.parametrize(("cutoff", "moved"), [(None, False), (100.0, True)])
def test_noise_of_positions_that_moves_parameters_is_told(cutoff, moved):
    record = noisy(followed(1))
    found = parflex.identify(three_rrr(), record, cutoff=cutoff)
    told = [text for text in found.warnings if "noise of positions moves" in text]
    assert len(told) == moved and all("use iv or didim, a cutoff below 100 Hz" in text for text in told)


@pytest.mark.verify
def test_noise_of_positions_moves_parameters_by_as_much_as_is_told(monkeypatch):
    """The mean of what parameters are off by, over noises, with a cutoff at which that is about a deviation."""
    said, original = [], diagnostics.position_noise_bias

    def kept(*given):
        said.append(diagnostics.moved_by_noise(*given))
        return original(*given)

    monkeypatch.setattr(identify, "position_noise_bias", kept)
    off, spread = [], []
    for seed in range(40):
        found = parflex.identify(three_rrr(), noisy(followed(1), seed), cutoff=40.0)
        every = found.parameters.items()
        off.append([one.value - CORRELATED.get(name.partition("[")[0], one.file_value) for name, one in every])
        spread.append([one.deviation for _, one in every])
    mean, told, one = np.mean(off, axis=0), np.mean(said, axis=0), np.mean(spread, axis=0)
    assert np.abs(told / one).max() > 1.0
    # means of 40 have a deviation of 0.16: 25 of them are within 0.5
    assert mean / one == pytest.approx(told / one, abs=0.5)
