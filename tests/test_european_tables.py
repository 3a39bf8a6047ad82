"""Tables of European spreadsheets: semicolons between numbers, decimal commas. What is unclear is refused."""

from __future__ import annotations

import numpy as np
import pytest

from parflex import InputError
from parflex.simulation.table_files import read_table

PLAIN = "t,q.axis\n0,-1.5\n0.001,2e-3\n"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", ";").replace(".", ",").replace("q,axis", "q.axis"),
        "sep=;\r\n" + PLAIN.replace(",", ";").replace("0.001", "0,001").replace("-1.5", "-1,5").replace("\n", "\r\n"),
        PLAIN.replace(",", "\t"),
    ],
)
def test_tables_are_read_with_semicolons_tabs_and_decimal_commas(tmp_path, text):
    path = tmp_path / "record.csv"
    path.write_text("\ufeff" + text, encoding="utf-8", newline="")
    found = read_table(str(path), "record")
    np.testing.assert_array_equal(np.stack([found["t"], found["q.axis"]]), [[0, 0.001], [-1.5, 2e-3]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t;q\n0;1.234,5\n", "numbers have points and commas"),
        ("t;q\n0;1,234,567\n", "several commas"),
        ("t,q\n0,0,1,5\n", "rows have 4 numbers and 2 names: commas stand between numbers and in them"),
        ("t;q\n0;a\n", "is not a table of numbers"),
    ],
)
def test_tables_that_may_mean_two_things_are_refused(tmp_path, text, message):
    path = tmp_path / "record.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(str(path), "record")
