"""A ball between stops."""

import parflex
from support.robots import load_robot


def ball(spring: float = 50.0, stiffness: float = 2e4, damping: float = 0.0) -> parflex.Robot:
    """Return a mass of 2 kg on a spring with stops at -0.3 m and 0.1 m."""
    stop = {"stiffness": stiffness, "damping": damping}
    return load_robot("ball-between-stops", settings={"frame.ball.spring.stiffness": spring, "frame.ball.stop": stop})
