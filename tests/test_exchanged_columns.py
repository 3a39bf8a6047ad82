"""Columns of two motors that are exchanged, and records that are no files, by the names that warnings give them."""

from __future__ import annotations

import pytest
from support.recordings import BY_HAND, axis_record, slide
from support.sliding_axis_records import led, led_record

import parflex

EXCHANGED = {"positions": ("q",), "efforts": ("effort",), "all columns": ("q", "effort")}


@pytest.mark.parametrize("what", EXCHANGED)
@pytest.mark.parametrize("name", ["scara", pytest.param("rx90", marks=pytest.mark.verify)])
def test_what_is_exchanged_is_named_by_the_file(name, what):
    robot, record = led(name)[0], led_record(name, 0.0, 1e-3)
    first, second = robot.actuated_names[:2]
    pairs = [(f"{word}.{first}", f"{word}.{second}") for word in EXCHANGED[what]]
    record = record | {a: record[b] for a, b in pairs} | {b: record[a] for a, b in pairs}
    warnings = parflex.identify(robot, record, friction="symmetric").warnings
    said = [text for text in warnings if "exchanged" in text]
    assert said and all(f"with {what} of '{first}' and '{second}' exchanged" in text for text in said)


def test_records_that_are_no_files_have_numbers(tmp_path):
    two = [axis_record(2.0, noise=0.01), axis_record(noise=0.012)]
    columns = BY_HAND | {"payload": {"record 1": [2.0, 0, 0, 0.1], "record": [1.0, 0, 0, 0]}}
    found = parflex.identify(slide(tmp_path), two, columns, friction="direction", cutoff=50, validate=two[0])
    assert [one.name for one in found.measurements] == ["record 1", "record 2", "validation"]
    assert found.parameters["M[axis]"].value == pytest.approx(8.0, rel=0.02)  # the payload is 25 %
    assert any("payload of 'record' is not used" in text and "record 1, record 2" in text for text in found.warnings)
    assert any(text.startswith("validation: its samples are those of a record of the fit") for text in found.warnings)
