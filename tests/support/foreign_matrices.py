"""Matrices as Abaqus, CalculiX, Nastran, MATLAB and the Matrix Market lay them out.

The layouts follow files in DICLab/MatlabAbaqus, Qinterfly/PchConverter and twmacro/pyyeti, which
`bodies/test_superelements.py` reads where they are present.
"""

from pathlib import Path

import numpy as np
import scipy.io

NUMBERS = (3, 11)  # of the nodes


def abaqus_substructure(path: Path, M: np.ndarray, K: np.ndarray) -> str:
    """Two nodes with six freedoms and internal nodes with one, lower triangles, four numbers to a line."""
    modes = len(M) - 12
    listed = [*NUMBERS, *(-k for k in range(1, modes + 1))]
    lines = ["**", "** GENERATION OF SUBSTRUCTURE Z1      ", f"*USER ELEMENT, NODES={len(listed):10d}, LINEAR"]
    lines += ["** ELEMENT NODES"]
    lines += ["**" + " ".join(f"{node:11d}," for node in listed[k : k + 10]) for k in range(0, len(listed), 10)]
    lines += ["** NODE NUMBERS WHICH ARE NOT POSITIVE INDICATE Abaqus INTERNAL NODES."]
    lines += [", ".join(f"{k:10d}" for k in range(1, 7))] + ["          3,          1"] * bool(modes)
    for word, A in (("STIFFNESS", K), ("MASS", M)):
        lines += [f"*MATRIX,TYPE={word}"]
        for row in range(len(A)):
            values = [f"{x:21.13E}" for x in A[row, : row + 1]]
            lines += [
                " ,".join(values[k : k + 4]) + (" ," if len(values[k : k + 4]) == 1 else "")
                for k in range(0, len(values), 4)
            ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def abaqus_entries(path: Path, A: np.ndarray) -> str:
    """One triangle, `node,freedom, node,freedom, value`; zeros are left out, modal freedoms are internal nodes."""
    freedoms = [(node, k) for node in NUMBERS for k in range(1, 7)] + [(-k, 1) for k in range(1, len(A) - 11)]
    text = [
        f"{freedoms[i][0]},{freedoms[i][1]}, {freedoms[j][0]},{freedoms[j][1]}, {A[i, j]: .15e}"
        for j in range(len(A)) for i in range(j, len(A)) if A[i, j]
    ]  # fmt: skip
    path.write_text("\n".join(text) + "\n")
    return str(path)


def nastran_punch(path: Path, M: np.ndarray, K: np.ndarray, places: np.ndarray | None = None, wide: bool = True) -> str:
    """KAAX and MAAX as symmetric matrices by columns, upper triangles; scalar points are modal coordinates."""
    points = [(node, k) for node in NUMBERS for k in range(1, 7)] + [(2995000 + k, 0) for k in range(1, len(M) - 11)]
    lines = ["$" + "*" * 71, "$ BOUNDARY GRID DATA", "$"]
    for node, place in zip(NUMBERS, places if places is not None else (), strict=False):
        x, y, z = (f"{value:16.9E}" for value in place)
        lines += [f"GRID*   {node:16d}{0:16d}{x}{y}", f"*       {z}{0:16d}{0:16d}{0:16d}"]
    for name, A in (("KAAX", K), ("MAAX", M)):
        lines.append(f"DMIG    {name:8s}{0:8d}{6:8d}{2:8d}{0:8d}{'':16s}{len(A):8d}")
        for j, (node, k) in enumerate(points):
            rows = [(points[i], A[i, j]) for i in range(j + 1) if A[i, j]]
            if wide:
                lines.append(f"DMIG*   {name:16s}{node:16d}{k:16d}")
                lines += [f"*       {n:16d}{c:16d}{x:16.9E}".replace("E", "D") for (n, c), x in rows]
            else:
                lines += [f"DMIG,{name},{node},{k},,{n},{c},{x:.12E}" for (n, c), x in rows]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def market(path: Path, A: np.ndarray, array: bool = False) -> str:
    scipy.io.mmwrite(path, A if array else scipy.sparse.coo_array(A), precision=16, symmetry="symmetric")
    return str(path)
