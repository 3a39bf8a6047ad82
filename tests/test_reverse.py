"""Reverse derivatives and sparsity against the forward ones."""

from __future__ import annotations

import numpy as np
import pytest

import parflex
from parflex.codegen.passes.optimise import make_program
from parflex.codegen.samples import sample_inputs
from parflex.codegen.traces.trace import trace
from parflex.graph.derivative import jacobian
from parflex.graph.reverse import gradient, sparsity
from parflex.models.forms.platform_frame import given_frame


@pytest.mark.few
@pytest.mark.parametrize(
    "name", ["rx90", "5r", "gough-stewart", "3-prrr"]
)  # a tree, a pivoted 2 x 2 block, legs with roots and a 6 x 6, legs with more rows than joints
def test_the_reverse_gradient_is_the_weighted_row_of_the_forward_jacobian(name):
    robot = parflex.load(name)
    traced = trace(robot, "inverse")
    inputs = [symbol for group in traced.inputs.values() for symbol in group.flat]
    outputs = list(traced.outputs["effort"])
    weights = [0.3 + 0.4 * k for k in range(len(outputs))]
    rows = np.array(jacobian(outputs, inputs), dtype=object)
    forward = np.array([sum(w * row[k] for w, row in zip(weights, rows, strict=True)) for k in range(len(inputs))])
    back = np.array(gradient(outputs, weights, inputs), dtype=object)
    program = make_program(traced.graph, "both", {"forward": forward, "back": back})
    numbers = sample_inputs(robot, traced.inputs, given_frame(robot, None))
    flat = {
        f"{group}[{','.join(map(str, index))}]": float(values[index])
        for group, values in numbers.items()
        for index in np.ndindex(values.shape)
    }
    found = program.evaluate(flat)
    first = np.array([found[f"forward[{k}]"] for k in range(len(inputs))])
    second = np.array([found[f"back[{k}]"] for k in range(len(inputs))])
    assert np.abs(first).max() > 0
    assert np.abs(first - second).max() < 1e-10 * np.abs(first).max()  # two orders of some thousand rounded operations


def test_sparsity_says_what_an_output_depends_on():
    robot = parflex.load("rx90")
    traced = trace(robot, "inverse")
    inputs = [symbol for group in traced.inputs.values() for symbol in group.flat]
    names = [f"{group}{k}" for group, symbols in traced.inputs.items() for k in range(symbols.size)]
    pattern = np.array(sparsity(list(traced.outputs["effort"]), inputs))
    slopes = jacobian(list(traced.outputs["effort"]), inputs)
    for row, line in zip(pattern, slopes, strict=True):
        for depends, slope in zip(row, line, strict=True):
            assert depends or (isinstance(slope, float) and slope == 0.0)
    # gravity is along the first axis: no effort changes with the first angle, every one with the first acceleration
    assert not pattern[:, names.index("q0")].any()
    assert pattern[:5, names.index("qdd0")].all()
