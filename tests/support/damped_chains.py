"""Chains of masses, springs and dampers with known frequencies."""

import numpy as np

import parflex
import parflex.updating.modes
from support.robots import with_constants

TRUE = np.array([900.0, 400.0, 150.0])
KEYS = ["constants.first", "constants.second", "constants.third"]


def chain(tmp_path, stiffness=(1100.0, 320.0, 180.0)):
    path = tmp_path / "chain.toml"
    path.write_text(with_constants("spring-chain", **dict(zip(("first", "second", "third"), stiffness, strict=True))))
    return parflex.load(path)


DAMPERS = np.array([3.0, 0.8, 0.2])
DAMPER_KEYS = ["constants.first_damper", "constants.second_damper", "constants.third_damper"]


def damped_chain(tmp_path, dampers=(2.0, 1.0, 0.3)):
    settings = dict(zip(DAMPER_KEYS, dampers, strict=True))
    chain(tmp_path)
    return parflex.load(tmp_path / "chain.toml", settings=settings)
