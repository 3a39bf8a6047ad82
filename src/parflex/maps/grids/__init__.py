"""Maps over grids: cells in rows, files that keep them, and the lowest value over some axes."""
