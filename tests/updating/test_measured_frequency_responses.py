"""Modes of measured frequency responses: poles against those of a chain by hand, CSV and UFF files, updates by them."""

import numpy as np
import pytest
from support.command_line import answered, refused
from support.damped_chains import DAMPER_KEYS, DAMPERS, KEYS, TRUE, damped_chain
from support.oracles import spring_chain, uff_text

import parflex
from parflex.updating.frequency_response import Responses, identified_modes, modes_of_responses, read_responses

pytest.importorskip("sdypy.EMA", reason="the extra 'vibration' is not installed")
pyuff = pytest.importorskip("pyuff", reason="the extra 'vibration' is not installed")
F = np.arange(0.0, 20.01, 0.04)
NODES = {"b": 1, "c": 2, "tip": 3}
NAMES = "1=b,2=c,3=tip"


def noisy(pose, seed=0, noise=0.01, dampers=DAMPERS):
    """Responses of the chain to a force on its tip, with white noise of a share of the largest value of each."""
    H, rng = spring_chain.responses(pose, TRUE, dampers, F), np.random.default_rng(seed)
    level = noise * np.abs(H).max(axis=1)[:, None]
    return H + level * (rng.standard_normal(H.shape) + 1j * rng.standard_normal(H.shape))


def as_csv(path, H, parts=("real", "imag"), inputs="tip.y"):
    values = {"real": H.real, "imag": H.imag, "magnitude": np.abs(H), "phase": np.angle(H)}
    values["phase_deg"] = np.degrees(values["phase"])
    names = [f"{sensor}/{inputs}.{part}" for sensor in spring_chain.SENSORS for part in parts]
    columns = [values[part][k] for k in range(6) for part in parts]
    head = ",".join(["frequency_hz", *names])
    np.savetxt(path, np.column_stack([F, *columns]), delimiter=",", header=head, comments="", fmt="%.12g")
    return str(path)


def as_uff(path, H, **more):
    path.write_text(uff_text.universal_file(F, H, spring_chain.SENSORS, "tip.y", NODES, **more))
    return str(path)


def off(rows, pose, dampers=DAMPERS):
    """Differences of frequencies and damping ratios from those by hand, over their deviations."""
    poles = spring_chain.poles(pose, TRUE, dampers)
    assert len(rows) == len(poles)
    found = [
        ((one.frequency - abs(pole) / (2 * np.pi)) / one.deviation,
         (one.damping + pole.real / abs(pole)) / one.damping_deviation)
        for one, pole in zip(rows, poles, strict=True)
    ]  # fmt: skip
    return np.array(found)


def test_poles_and_shapes_are_those_of_the_chain(tmp_path):
    rows, told = modes_of_responses({"responses": as_csv(tmp_path / "frf.csv", noisy("bent")), "pose": "bent"})
    assert np.abs(off(rows, "bent")).max() < 4 and "3 modes" in told[0].text
    assert all(one.deviation < 1e-3 * one.frequency and one.damping_deviation < 1e-3 for one in rows)
    for k, one in enumerate(rows):
        true, found = spring_chain.shapes("bent", TRUE)[:, k], np.array([one.shape[s] for s in spring_chain.SENSORS])
        mac = abs(np.vdot(found, true)) ** 2 / (np.vdot(found, found).real * (true @ true))
        assert mac > 0.99


def poles_off(H, high):
    """Differences of poles of the bent chain below a frequency from those by hand, over their deviations."""
    measured = Responses(F, H, spring_chain.SENSORS, ("tip.y",) * 6, "accelerance")
    poles, deviations, _ = identified_modes(measured, 0.5, high, 30)
    true = spring_chain.poles("bent", TRUE, DAMPERS)[: len(poles)]
    assert np.abs(poles) == pytest.approx(np.abs(true), rel=0.01)
    hertz = (np.abs(poles) - np.abs(true)) / (2 * np.pi * deviations[:, 0])
    return np.array([hertz, (-poles.real / np.abs(poles) + true.real / np.abs(true)) / deviations[:, 1]])


def with_noise_in_common(seed):
    clean, weights = spring_chain.responses("bent", TRUE, DAMPERS, F), np.exp(-0.5 * (np.arange(-12, 13) / 4.0) ** 2)
    noise = noisy("bent", seed) - clean
    return clean + np.array([np.convolve(row, weights / np.linalg.norm(weights), "same") for row in noise])


def test_deviations_of_poles_hold_noise_that_lines_have_in_common():
    several = np.square([poles_off(with_noise_in_common(seed), 20.0) for seed in range(4)])
    # of 24 squares of about one the mean is 0.3 off; as white noise it is taken for a seventh of what it is
    assert np.mean(several) < 1 + 3 * 0.3


def test_deviations_of_poles_hold_modes_outside_of_the_band():
    off = np.abs(poles_off(noisy("bent", noise=1e-4), 8.0))
    assert off.shape == (2, 2) and off.max() < 2.5  # 6 and more for noise alone


@pytest.mark.verify
def test_deviations_of_poles_are_those_of_noise_in_common():
    several = np.array([poles_off(with_noise_in_common(seed), 20.0) for seed in range(40)])
    assert 0.88 < np.mean(np.abs(several) < 1.96) < 0.99  # of 240


@pytest.mark.verify
def test_deviations_of_poles_are_those_of_noise():
    several = np.array([poles_off(noisy("bent", seed), 20.0) for seed in range(60)])
    assert 0.9 < np.mean(np.square(several)) < 1.15  # 360 squares of about one: a deviation is 0.075
    assert 0.92 < np.mean(np.abs(several) < 1.96) < 0.98


def test_files_of_the_same_measurement_have_equal_responses(tmp_path):
    H = noisy("bent")
    first = read_responses(as_csv(tmp_path / "a.csv", H))
    turned = as_uff(tmp_path / "e.uff", H, flipped="tip.x")
    several = [
        read_responses(as_csv(tmp_path / "b.csv", H, ("magnitude", "phase_deg"))),
        read_responses(as_csv(tmp_path / "c.csv", H, ("magnitude", "phase"))),
        read_responses(as_uff(tmp_path / "d.uff", H, even=False), nodes={"1": "b", "2": "c", "3": "tip"}),
        read_responses(turned, nodes={"1": "b", "2": "c", "3": "tip"}),
        read_responses(as_uff(tmp_path / "f.unv", H, named=True)),
    ]
    for one in several:
        assert one.frequencies == pytest.approx(first.frequencies, abs=1e-4)  # abscissas have six digits
        assert one.values == pytest.approx(first.values, rel=1e-7, abs=1e-9)
        assert (one.outputs, one.inputs, one.kind) == (first.outputs, first.inputs, "accelerance")
    assert read_responses(turned, nodes={"3": "tip.local"}).outputs[-1] == "tip.local_y"


def test_a_file_that_pyuff_wrote_is_read(tmp_path):
    H, path = noisy("home"), str(tmp_path / "theirs.uff")
    file = pyuff.UFF(path)
    for row, sensor in zip(H, spring_chain.SENSORS, strict=True):
        frame, part = sensor.split(".")
        file.write_sets(pyuff.prepare_58(
            func_type=4, rsp_node=NODES[frame], rsp_dir=uff_text.DIRECTIONS[part], ref_node=3, ref_dir=2, data=row,
            x=F, id1="hammer", binary=0, ordinate_spec_data_type=8, orddenom_spec_data_type=13,
            abscissa_spacing=1, abscissa_min=float(F[0]),
            abscissa_inc=float(F[1] - F[0]), ord_data_type=6, rsp_ent_name="NONE", ref_ent_name="NONE",
        ), "add")  # fmt: skip
    found = read_responses(path, nodes={"1": "b", "2": "c", "3": "tip"})
    assert found.values == pytest.approx(H, rel=1e-9, abs=1e-12) and found.kind == "receptance"
    assert found.outputs == spring_chain.SENSORS


@pytest.mark.verify
def test_an_update_from_universal_files_finds_stiffness_and_damping(capsys, tmp_path):
    robot = damped_chain(tmp_path, (2.0, 1.0, 0.3))
    files = [as_uff(tmp_path / f"{pose}.uff", noisy(pose)) for pose in ("home", "bent")]
    pairs = zip(DAMPER_KEYS, (2.0, 1.0, 0.3), strict=True)
    start = [word for key, value in pairs for word in ("--set", f"{key}={value}")]
    keys = [*KEYS, *DAMPER_KEYS]
    answer = answered(
        capsys, "update", robot.file, *files, *start, "--vary", ",".join(keys), "--pose", "home", "--pose", "bent",
        "--sensors", NAMES, "--band", "0.5-18", "--page", str(tmp_path / "page"), "--out", str(tmp_path / "out.toml"),
        "--prior", "1",
    )  # fmt: skip
    for key, value in zip(keys, [*TRUE, *DAMPERS], strict=True):
        low, high = answer["parameters"][key]["interval"]
        assert low < value < high or abs(answer["parameters"][key]["value"] / value - 1) < 0.003, key
    assert len(answer["pairs"]) == 6 and all(one["mac"] > 0.99 for one in answer["pairs"])
    text = (tmp_path / "page" / "index.html").read_text()
    assert all(word in text for word in ("MAC", "Cosines", "Damping ratios", "constants.third_damper"))


def test_a_roving_hammer_gives_shapes_at_its_places(tmp_path):
    path = as_csv(tmp_path / "frf.csv", noisy("bent"))
    text = (tmp_path / "frf.csv").read_text()
    for sensor in spring_chain.SENSORS:  # by reciprocity the same numbers
        text = text.replace(f"{sensor}/tip.y.", f"tip.y/@{sensor}.")
    (tmp_path / "frf.csv").write_text(text.replace("@", ""))
    rows, _ = modes_of_responses({"responses": path})
    assert set(rows[0].shape) == set(spring_chain.SENSORS)


def test_responses_that_cannot_be_used_are_refused(capsys, tmp_path):
    robot, H = damped_chain(tmp_path), noisy("home")
    path = as_csv(tmp_path / "frf.csv", H)

    def message(*words, file=path):
        return refused(capsys, "update", robot.file, file, "--vary", KEYS[0], *words)["message"]

    assert "no frequencies of the file" in message("--band", "30-40")
    assert "order" in message("--order", "1")
    assert "not a kind of response" in message("--quantity", "compliance")
    assert "2 poses are given for 1 files" in message("--pose", "home", "--pose", "bent")
    assert "does not name frames" in message("--sensors", "1")
    assert "cannot be read" in message(file=str(tmp_path / "none.uff"))
    (tmp_path / "modes.csv").write_text("pose,frequency_hz\nhome,2\n")
    assert "no file has any" in message("--band", "1-9", file=str(tmp_path / "modes.csv"))
    (tmp_path / "nan.csv").write_text((tmp_path / "frf.csv").read_text().replace("\n0.04,", "\n0.05,"))
    assert "equal steps" in message(file=str(tmp_path / "nan.csv"))


@pytest.mark.verify
def test_nodes_without_frames_give_frequencies_alone(tmp_path):
    found = parflex.update(damped_chain(tmp_path), as_uff(tmp_path / "frf.uff", noisy("home")), KEYS)
    assert any("shapes are not used" in text for text in found.warnings)
    assert len(found.pairs) == 3 and all(one["mac_of"] == "model" for one in found.pairs)
