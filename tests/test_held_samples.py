"""Records whose values are held over rows, as those of a slow bus: samples are found, or the record is refused."""

from __future__ import annotations

import numpy as np
import pytest
from support.geared_arm import FILE, GEAR, recorded

import parflex
from parflex import InputError
from parflex.identification.column_map import read_column_map
from parflex.identification.measured_files import read_measurement


@pytest.fixture
def arm(tmp_path):
    (tmp_path / "geared.toml").write_text(FILE.format(GEAR))
    return parflex.load(tmp_path / "geared.toml")


def held(record, rows, words=("q.", "effort.")):
    """Columns with these words stand at the last of these rows."""
    last = np.asarray(rows)[np.searchsorted(rows, np.arange(len(record["t"])), side="right") - 1]
    return {name: values[last] if name.startswith(words) else values for name, values in record.items()}


def read(robot, record):
    return read_measurement(record, read_column_map(None, list(robot.actuated_names)), robot)


@pytest.mark.parametrize("words", [("q.", "effort."), ("q.",)])
def test_samples_that_are_held_are_used_once(arm, words):
    record = recorded()
    found = read(arm, held(record, np.arange(0, 3000, 5), words))
    assert found.position == pytest.approx(np.stack([record["q.motor"], record["q.elbow"]], 1)[::5], rel=1e-12)
    assert found.effort == pytest.approx(np.stack([record["effort.motor"], record["effort.elbow"]], 1)[::5], rel=1e-12)
    assert found.t == pytest.approx(record["t"][::5]) and "one of 5 rows" in found.warnings[0]
    assert ("all values" in found.warnings[0]) == (len(words) == 2)
    assert not read(arm, record).warnings


def test_encoders_with_lines_are_not_held(arm):
    record = recorded()
    line = 2 * np.pi / 400  # of the elbow: it stands for many rows, and efforts do not
    assert len(read(arm, record | {"q.elbow": line * np.round(record["q.elbow"] / line)}).t) == 3000


def test_samples_at_unknown_times_are_refused(arm):
    record, rng = recorded(), np.random.default_rng(0)
    rows = np.r_[0, np.cumsum(rng.integers(4, 7, 700))]
    with pytest.raises(InputError, match="held for 4 to 6 rows"):
        read(arm, held(record, rows))
    slow = held(held(record, np.arange(0, 3000, 5), ("q.",)), np.r_[0, np.arange(2, 3000, 5)], ("effort.",))
    with pytest.raises(InputError, match=r"one of 5 rows, .* at other instants"):
        read(arm, slow)
