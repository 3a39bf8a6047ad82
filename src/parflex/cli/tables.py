"""Tables that fit the width of the terminal and show every number and every name whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console

GAP = 2  # spaces between columns, those of rich
WHOLE_LABEL = 24  # characters: longer labels of rows wrap at spaces, so that two numbers fit next to them


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Iterable[Any]], styles: Mapping[str, str] | None = None
) -> None:
    """Print a table in blocks of columns, or one value per line if the width cannot hold a block.

    `styles` are styles of rich by the text of a cell.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False)  # names of parameters have brackets
    values = [tuple(row) for row in rows]
    cells = [[_cell(value) for value in row] for row in values]
    if title:
        console.print(Text(title, style="italic"), soft_wrap=True)
    labels = _label_count(cells, len(columns))
    natural, least = zip(*(_widths(k, labels, columns, cells) for k in range(len(columns))), strict=True)
    blocks = _blocks(least, labels, console.width)
    if any(_total(least, block) > console.width for block in blocks):
        _print_lines(console, labels, columns, cells)
        return
    for number, block in enumerate(blocks):
        if number:
            console.print()
        numeric = {k for k in block if all(row[k] is None or isinstance(row[k], int | float) for row in values)}
        _print_block(console, block, columns, cells, numeric, natural, least, styles or {})


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(entry) for entry in value)
    return str(value)


def _label_count(cells: list[list[str]], columns: int) -> int:
    """Return how many leading columns distinguish the rows; every block repeats them."""
    for count in range(1, columns):
        if len({tuple(row[:count]) for row in cells}) == len(cells):
            return count
    return 1


def _widths(index: int, labels: int, columns: Sequence[str], cells: list[list[str]]) -> tuple[int, int]:
    """Return the width of a column on one line per cell, and the least width that breaks no word."""
    from rich.cells import cell_len

    texts = [columns[index], *(row[index] for row in cells)]
    natural = max(map(cell_len, texts))
    if index < labels and natural <= WHOLE_LABEL:
        return natural, natural
    return natural, max((cell_len(word) for text in texts for word in text.split()), default=0)


def _blocks(least: Sequence[int], labels: int, width: int) -> list[list[int]]:
    """Return the columns of each block: the labels, then as many others as fit."""
    blocks = [list(range(labels))]
    for index in range(labels, len(least)):
        if len(blocks[-1]) > labels and _total(least, [*blocks[-1], index]) > width:
            blocks.append(list(range(labels)))
        blocks[-1].append(index)
    return blocks


def _total(widths: Sequence[int], block: list[int]) -> int:
    return sum(widths[index] + GAP for index in block) - GAP


def _print_block(
    console: Console,
    block: list[int],
    columns: Sequence[str],
    cells: list[list[str]],
    numeric: set[int],
    natural: Sequence[int],
    least: Sequence[int],
    styles: Mapping[str, str],
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    spare = console.width - _total(least, block)
    for index in block:
        more = min(spare, natural[index] - least[index])
        spare -= more
        justify: Literal["left", "right"] = "right" if index in numeric else "left"
        table.add_column(Text(columns[index]), justify=justify, width=least[index] + more)
    for row in cells:
        table.add_row(*(Text(row[index], style=styles.get(row[index], "")) for index in block))
    console.print(table)


def _print_lines(console: Console, labels: int, columns: Sequence[str], cells: list[list[str]]) -> None:
    """Print a line of labels, name of the column and value for each value."""
    from rich.text import Text

    if len(columns) == 1:
        lines = [[columns[0]], *cells]
    else:
        lines = [[*row[:labels], columns[index], row[index]] for row in cells for index in range(labels, len(columns))]
    for line in lines:
        console.print(Text(" ".join(text for text in line if text)), soft_wrap=True)
