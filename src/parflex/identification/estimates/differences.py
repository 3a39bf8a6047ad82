"""Whether rates may be differences of neighbours, as in print.

Two neighbours miss (2 pi f h)^2/3 of an acceleration. Where samples are fast for the motion that is nothing, and what
is found is that of the printed procedure. Where it moves a parameter by a share of its deviation, rates come from the
spectrum of the positions.
"""

from __future__ import annotations

from dataclasses import replace

from parflex.identification.estimates.least_squares import EffortRows, fit
from parflex.identification.estimates.reversals import deviations_moved

HOLDS = 0.5  # deviations by which differences may move a parameter: an interval of 95 % then holds 92 %


def differences_hold(whole: EffortRows, by_differences: EffortRows) -> bool:
    """Whether rows whose rates are differences of neighbours move no parameter of those with whole rates."""
    plain = replace(whole, instruments=None)
    judged = fit(plain, "wls")
    change = (by_differences.W - whole.W) @ judged.values - (by_differences.y - whole.y)
    return deviations_moved(judged, plain, change * plain.mask) < HOLDS
