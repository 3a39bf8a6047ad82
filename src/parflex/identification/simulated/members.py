"""Robots that differ in base parameters alone: one compiled program, many numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.codegen.family import family_model, member_model
from parflex.codegen.model import Model
from parflex.codegen.outputs import contact_gaps
from parflex.control.plant import Plant
from parflex.dynamics.contact_state import with_gates_for_run, with_sticking, with_tree
from parflex.errors import InputError
from parflex.forces.base_parameters import PARAMETERS, body_from_parameters, body_parameters
from parflex.identification.base_columns import BaseColumns
from parflex.identification.linear_elements import fields_of, with_element_numbers
from parflex.identification.regressors import Regressor
from parflex.identification.unknowns import SPRINGS, by_direction
from parflex.robot.robot import Robot
from parflex.simulation.problem import Problem
from parflex.tree.force_elements import has_contacts
from parflex.tree.tree import JointTerms, Link

Array = np.ndarray
OFF = 0.37  # of each number, or kg and m: by so much another member differs, so that all of them are inputs
TINY = 1e-12  # N, N s/m: of an element in place of zero, which would leave it out of the program
LEAST = 1e-9  # of the Coulomb friction of the file: less would let the joint slide in another program


class PlantMembers:
    """Plants of one program, by values of the base parameters."""

    def __init__(self, regressor: Regressor, base: BaseColumns) -> None:
        self.regressor, self.base = regressor, base
        self.by_file = np.array([one.value for one in regressor.unknowns])
        if not base.kept:
            raise InputError("no motion of the motors tells a parameter", key="robot", value=regressor.robot.name,
                             hint="give a robot with bodies that move")  # fmt: skip
        first = self.robot(self.base.groups @ self.by_file)
        self.rates = family_model(first, self._other(first), "state-rates")
        self.watch: Model = family_model(first, first, "watch")
        # cables and play, whose numbers stay those of the file: when they pull, and when they are slack
        self.gaps = contact_gaps(first) if has_contacts(first.tree) else None

    def parameters(self, values: Array, carried: Mapping[int, float] = {}) -> Array:
        """All parameters: those of the file, of which the base columns have what differs; and a payload."""
        found = self.by_file.copy()
        found[self.base.kept] += values - self.base.groups @ self.by_file
        for column, more in carried.items():
            found[column] += more
        return found

    def robot(self, values: Array, carried: Mapping[int, float] = {}) -> Robot:
        """The robot with these base parameters, whose joints stick."""
        theta = self.parameters(values, carried)
        tree, every = self.regressor.robot.tree, self.regressor.unknowns
        own: dict[int, dict[str, float]] = {}
        elements: dict[str, dict[str, float]] = {}
        for one, value in zip(every, theta, strict=True):
            if one.element:
                elements.setdefault(one.element, {})[one.symbol] = float(value) or TINY
            else:
                own.setdefault(one.link, {})[one.symbol] = float(value)
        smooth = self.regressor.friction != "file"
        motors = {tree.link_of_rate[k] for k in self.regressor.robot.actuated} if smooth else set()
        links = []
        for j, link in enumerate(tree.links):
            numbers = own.get(j, {})
            terms = _terms(link, numbers, by_direction(every, j), j in motors)
            links.append(replace(link, body=_body(link, numbers), terms=terms))
        changed = with_tree(
            self.regressor.robot, replace(with_element_numbers(tree, elements), links=tuple(links))
        )  # fmt: skip
        return with_gates_for_run(with_sticking(changed, False))

    def plant(self, values: Array, carried: Mapping[int, float] = {}) -> Plant:
        """The plant with these numbers."""
        robot = self.robot(values, carried)
        problem = Problem(robot, member_model(self.rates, robot), "efforts", (), 0.0, gaps=self.gaps)
        return Plant(robot, problem, self.watch)

    def _other(self, first: Robot) -> Robot:
        """A robot that differs in all numbers that base columns and payloads change."""
        chosen = {self.regressor.unknowns[k].link for k in self.base.kept}
        place = first.tree.places[first.tree.end_effector].link
        symbols = {(one.link, one.symbol) for one in self.regressor.unknowns}
        links = []
        for j, link in enumerate(first.tree.links):
            if (j in chosen or j == place) and any((j, symbol) in symbols for symbol in PARAMETERS):
                body = link.body.as_rigid()
                off = RigidBody(body.m + OFF, body.S + OFF * np.array([1.0, 1.1, 1.2]), body.Sigma + OFF * SPREAD)
                link = replace(link, body=off)
            words: dict[str, Any] = {}
            for symbol, fields in FIELDS.items():
                if (j, symbol) in symbols:
                    words |= {word: getattr(link.terms, word) + OFF for word in fields}
            links.append(replace(link, terms=replace(link.terms, **words)))
        own: dict[str, dict[str, float]] = {}
        for one in self.regressor.unknowns:
            if one.element:
                # rests differ, too
                own.setdefault(one.element, {})[one.symbol] = (3 if one.symbol == "k_rest" else 2) * one.value + OFF
        return with_tree(first, replace(with_element_numbers(first.tree, own), links=tuple(links)))


SPREAD = np.array([[1.0, 0.11, 0.12], [0.11, 1.2, 0.13], [0.12, 0.13, 1.4]])
FIELDS: dict[str, tuple[str, ...]] = {  # of a joint, that follow from unknowns
    "IA": ("motor_inertia",), "FV": ("viscous",), "FS": ("coulomb",), "FV_back": ("more_viscous",),
    "FS_back": ("more_coulomb",), "offset": ("offset",), "k": ("stiffness",),
    "d": ("damper",), "k_rest": ("rest",),
}  # fmt: skip


def _body(link: Link, numbers: Mapping[str, float]) -> Any:
    if not any(symbol in numbers for symbol in PARAMETERS):
        return link.body
    before = body_parameters(link.body.as_rigid())
    values: Sequence[float] = [numbers.get(symbol, value) for symbol, value in zip(PARAMETERS, before, strict=True)]
    return body_from_parameters(np.array(values))


def _terms(link: Link, numbers: Mapping[str, float], both: bool, smooth: bool) -> JointTerms:
    """Terms of a joint with these numbers; a joint that rubs in the file, or among the unknowns, still rubs."""
    terms = link.terms
    words: dict[str, Any] = {}
    if smooth:
        words |= dict.fromkeys(("viscous", "coulomb", "static", "more_viscous", "more_coulomb", "offset"), 0.0)
    if "IA" in numbers:
        words["motor_inertia"] = numbers["IA"]
    words |= fields_of({symbol: numbers[symbol] for symbol in SPRINGS if symbol in numbers}, damping="damper")
    if "offset" in numbers:
        words["offset"] = numbers["offset"]
    for forth, back, plain, more in (
        ("FV", "FV_back", "viscous", "more_viscous"), ("FS", "FS_back", "coulomb", "more_coulomb"),
    ):  # fmt: skip
        if forth not in numbers:
            continue
        one, two = numbers[forth], numbers.get(back, numbers[forth]) if both else numbers[forth]
        if plain == "coulomb":
            least = LEAST * max(abs(terms.coulomb), 1e-3)
            one, two = max(one, least), max(two, least)
        words |= {plain: (one + two) / 2, more: (one - two) / 2}
    return replace(terms, **words)
