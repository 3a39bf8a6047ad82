"""What a fit says: intervals of the numbers and of what was held out, and what stays in doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from parflex.updating.mode_fitting import FittedModes, Fitting
from parflex.updating.shared_errors import shared_errors
from parflex.updating.solved.minima import Minimum
from parflex.updating.solved.other_solutions import alternatives, told_of
from parflex.updating.solved.second_order import CurvedValleys
from parflex.updating.solved.solutions import STRAINED
from parflex.updating.updated import Updated

Array = np.ndarray
ALIKE = 0.95  # cosine from which two numbers are not told apart
OPEN = 0.2  # of the prior, or of a prior of 30 %: where measurements leave less, numbers are told however alike
SAID = 0.1  # of the prior, that measurements must take away
MOVED = 0.5  # of the prior, by which measurements that say nothing do not move a number
USUAL = 0.3  # of a number, a prior where none is given
UNLIKE = 0.8  # MAC below which a mode is another one
TAKEN = 0.75  # of the squares of residuals, that numbers take where their priors are what the data contradict
MOST_NAMED = 3  # pairs in doubt
SURELY = 1e-6  # of a row, that others must tell
TAKEN_UP = (
    "intervals hold it as one error of each mode at all poses, but not what the numbers take up of it: they are of "
    "this model, and may be far from those of the robot"
)
FEW = 3.0  # freedoms below which an error is known to a factor of three at best
MIXED = 0.3  # of the largest part of a combination, one that is named
BENT = 0.5  # of a deviation, what numbers that are not told add by the squares of theirs: more is told
COUNTS = 1e-3  # of a number, a shift by few elements that is told


class FitAnswers:
    """The answer of an update, from the model of the file and the updated one."""

    def __init__(
        self, fitting: Fitting, before: FittedModes, fit: FittedModes, others: Sequence[Minimum] = ()
    ) -> None:  # fmt: skip
        self.fitting, self.before, self.fit, self.others = fitting, before, fit, others
        self.shift = fitting.shift_by_elements(fit)
        self.plain = fitting.covariance(fit)
        plain, self.freedoms = shared_errors(fitting, fit)
        self.shifted = np.abs(self.shift) > np.maximum(np.sqrt(np.diag(plain)), COUNTS * np.abs(fit.shares))
        curved = CurvedValleys(fitting, fit).covariance()
        self.curved = np.diag(curved) > (BENT**2) * np.diag(plain)
        self.covariance = plain + np.outer(self.shift, self.shift) + curved
        self.used = fitting.used(fit)
        known = not fitting.error.any()
        self.width = float(scipy.special.ndtri(0.975) if known else scipy.special.stdtrit(self.freedoms, 0.975))
        S = fitting.information(fit)
        sizes = np.linalg.norm(S, axis=0)
        self.cosines = (S.T @ S) / np.maximum(np.outer(sizes, sizes), 1e-300)
        open_part = np.einsum("ij,jk,ik->i", fit.slopes, self.covariance, fit.slopes)
        self.predicted = np.sqrt(open_part + fitting.doubt(fit) ** 2)

    def updated(self, warnings: Sequence[str]) -> Updated:
        """All of it."""
        fitting = self.fitting
        parameters, pairs = self._parameters(), self._pairs()
        left = ((fitting.y - self.fit.values) / fitting.given)[self.used]
        freedoms = max(sum(fitting.freedoms(self.fit, kind) for kind in (0, 1)), 1.0)
        error = float(np.sqrt(left @ left / freedoms))
        shares = {"frequency": float(fitting.error[0])}
        shares |= {"damping": float(fitting.error[1])} if fitting.damped else {}
        lost = [{"pose": one.pose, "measured": one.frequency}
                for one, mode in zip(fitting.rows, self.fit.modes, strict=True) if mode < 0]  # fmt: skip
        solutions = alternatives(fitting, self.others, self.fit)
        return Updated(
            fitting.robot.name, parameters, self.covariance * np.outer(fitting.first, fitting.first), self.cosines,
            pairs, self._macs(), error, shares, self._errors(pairs), fitting.keys, lost,
            [*told_of(solutions), *warnings, *self._doubts(pairs, parameters, lost)], solutions,
        )  # fmt: skip

    def _parameters(self) -> dict[str, dict[str, Any]]:
        fitting, found = self.fitting, {}
        deviations = np.sqrt(np.diag(self.covariance))
        for key, first, share, deviation, prior in zip(
            fitting.keys, fitting.first, self.fit.shares, deviations, fitting.given_prior, strict=True
        ):
            value, own = float(first * share), float(abs(first) * deviation)
            ends = sorted(first * max(share + side * self.width * deviation, 0.0) for side in (-1, 1))  # signs are kept
            found[key] = {
                "value": value, "before": float(first), "deviation": own,
                "interval": [float(end) for end in ends],
                "relative": float(deviation / abs(share)), "prior": finite(abs(first) * prior),
                "told": float(1 - min(deviation / prior, 1.0)) if np.isfinite(prior) else 1.0,
            }  # fmt: skip
        return found

    def _beside(self, entry: int) -> dict[str, Any]:
        """A measured number beside those of the models."""
        fitting, after = self.fitting, float(self.fit.values[entry])
        reach = self.width * np.hypot(self.predicted[entry], fitting.given[entry])
        return {
            "measured": float(fitting.y[entry]), "deviation": float(fitting.given[entry]),
            "before": finite(self.before.values[entry]), "after": after,
            "predicted_deviation": finite(self.predicted[entry]),
            "interval": [finite(after - reach), finite(after + reach)],
        }  # fmt: skip

    def _reach_by_others(self, entry: int) -> float:
        """How far from the model that all other rows give a frequency may be measured: mode and noise, 95 %."""
        fitting, slope = self.fitting, self.fit.slopes[entry]
        spread = float(fitting.spread(self.fit)[entry]) ** 2
        told = float(slope @ self.covariance @ slope)
        if not fitting.apart[entry]:  # without its own row: that of a linear fit
            own = float(slope @ self.plain @ slope) / spread
            told = told / (1 - own) if own < 1 - SURELY else np.inf
        return float(self.width * np.sqrt(told + spread))

    def _may_be(self, pose: str, k: int, others: Sequence[int]) -> list[float]:
        """Frequencies of other modes that a measured one may be, as far as all deviations let it.

        One that is outside of its interval may be any that is nearer. The mode of another measured one may be meant
        where that one may be this mode in turn.
        """
        here, y, own = self.fit.models[pose].frequencies, self.fitting.y, self.fit.modes[k]
        now = abs(here[own] - y[k])
        reach = max(self._reach_by_others(k), now if not _within(self._beside(k)) else 0.0)
        taken = {self.fit.modes[j]: j for j in self.fitting.of_pose[pose] if j != k}

        def may(mode: int) -> bool:
            free = mode not in taken or abs(here[own] - y[taken[mode]]) <= self._reach_by_others(taken[mode])
            return free and abs(here[mode] - y[k]) <= reach

        return [float(here[mode]) for mode in others if may(mode)]

    def _pairs(self) -> list[dict[str, Any]]:
        fitting, found = self.fitting, []
        for pose, own in fitting.of_pose.items():
            for place, k in enumerate(own):
                one, mode = fitting.rows[k], self.fit.modes[k]
                if mode < 0:
                    continue
                shaped = len(one.shape) > 1
                pair = {"pose": pose, "mode": one.mode or self.before.modes[k] + 1, **self._beside(k)}
                pair |= {
                    "mac": self.fit.models[pose].mac(one.shape, mode) if shaped else self.fit.alike[k],
                    "mac_of": "measured" if shaped else "model",
                    "held_out": bool(fitting.apart[k]), "row": k,
                }  # fmt: skip
                if near := self._may_be(pose, k, fitting.others[pose][place]):
                    pair["also"] = near
                if k in fitting.damped:
                    pair["damping"] = self._beside(len(fitting.rows) + fitting.damped.index(k))
                found.append(pair)
        found.sort(key=lambda pair: pair.pop("row"))
        return found

    def _macs(self) -> dict[str, Array]:
        found = {}
        for pose, own in self.fitting.of_pose.items():
            rows = [self.fitting.rows[k].shape for k in own if self.fit.modes[k] >= 0]
            now = self.fit.models[pose]
            if any(len(shape) > 1 for shape in rows):
                found[pose] = np.array([[now.mac(shape, mode) if len(shape) > 1 else np.nan
                                         for mode in range(len(now.frequencies))] for shape in rows])  # fmt: skip
        return found

    def _errors(self, pairs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        def size(word: str, some: Sequence[Mapping[str, Any]]) -> float:
            return float(np.sqrt(np.mean([(one[word] / one["measured"] - 1) ** 2 for one in some])))

        used = [one for one in pairs if not one["held_out"]]
        apart = [one for one in pairs if one["held_out"]]
        found = {"before": size("before", used), "after": size("after", used)} if used else {}
        if apart:
            found |= {"held_out_before": size("before", apart), "held_out_after": size("after", apart)}
            found["held_out_within"] = float(np.mean([_within(one) for one in apart]))
        return found

    # -- doubts ------------------------------------------------------------------------------------------------------

    def _doubts(
        self, pairs: Sequence[Mapping[str, Any]], parameters: Mapping[str, Mapping[str, Any]],
        lost: Sequence[Mapping[str, Any]],
    ) -> list[str]:  # fmt: skip
        """What the measurements do not tell, and what the model does not fit."""
        keys, error = self.fitting.keys, self.fitting.error
        left = np.sqrt(np.diag(self.covariance)) / np.minimum(self.fitting.prior, USUAL)
        still_open = {int(k) for k in np.flatnonzero(left > OPEN)}
        alike = [
            (j, i) for i in range(len(keys)) for j in range(i)
            if abs(self.cosines[i, j]) > ALIKE and {i, j} & still_open
        ]  # fmt: skip
        found = [
            f"'{keys[j]}' and '{keys[i]}' are not told apart (cosine {self.cosines[i, j]:.3f})" for j, i in alike
        ] + self._combinations(alike)
        contradicted = self._contradicted()
        strained = [
            key for key, one in parameters.items()
            if one["prior"] and abs(one["value"] - one["before"]) > STRAINED * one["prior"] and key not in contradicted
        ]  # fmt: skip
        unsaid = [
            key for key, one in parameters.items() if one["told"] < SAID and key not in {*contradicted, *strained}
        ]
        for key in unsaid:
            far = abs(parameters[key]["value"] - parameters[key]["before"]) / parameters[key]["prior"]
            found.append(
                f"the measurements say nothing of '{key}': its deviation is that before them" if far < MOVED else
                f"the measurements move '{key}' by {far:.2g} times the deviation of its prior, and leave it as open as "
                "before: they and the model do not agree"
            )  # fmt: skip
        found += [
            f"'{key}' moved by {abs(one['value'] - one['before']) / one['prior']:.2g} times the deviation of its "
            "prior: check pairs and units"
            for key in strained for one in [parameters[key]]
        ]  # fmt: skip
        found += contradicted.values()
        if self.shifted.any():
            names = ", ".join(f"'{keys[k]}' by {abs(self.shift[k] / self.fit.shares[k]):.1%}"
                              for k in np.flatnonzero(self.shifted))  # fmt: skip
            found.append(f"too few elements may shift {names}: divide the elements of beams (elements=4)")
        if self.curved.any():
            names = ", ".join(f"'{keys[k]}'" for k in np.flatnonzero(self.curved))
            found.append(
                f"squares of what the measurements do not tell move {names}: intervals hold that to both sides, though "
                "it goes to one"
            )
        if error[0]:
            tried = f" from {self.fitting.starts} starts" if self.fitting.starts > 1 else ""
            found.append(
                f"residuals are larger than their deviations: the model has an error of {error[0]:.2%} of the "
                f"frequencies that these numbers do not take away{tried}; {TAKEN_UP}"
            )
        if error[1]:
            found.append(f"the model has an error of {error[1]:.0%} of the damping ratios; {TAKEN_UP}")
        if error.any() and self.freedoms < FEW:
            most = np.sqrt(self.freedoms / scipy.special.chdtri(self.freedoms, 0.95))
            found.append(
                f"the error of the model is told by {self.freedoms:.2g} modes more than the numbers take, too few to "
                f"judge it: it may be {most:.2g} times as large (95 %), and intervals too narrow for an error of one "
                "part; measure more modes"
            )
        if self.fitting.freedoms(self.fit, 0) < 0.5:
            found.append("there are as many numbers as measurements: an error of the model does not show")
        found += [
            f"mode {one['mode']} at '{one['pose']}' has too few elements: it is not used" for one in pairs
            if one["predicted_deviation"] is None
        ]  # fmt: skip
        return found + self._unsure(pairs, lost)

    def _contradicted(self) -> dict[str, str]:
        """By number that would explain what is taken for an error of the model, if its prior let it: what to say."""
        fitting = self.fitting
        overruled = fitting.prior > fitting.given_prior
        if overruled.any():
            return self._contradictions(self.fit, overruled, "and are followed: check both")
        loose = fitting.loosened(self.fit)
        if loose is None:
            return {}
        spread = np.hypot(fitting.given, fitting.few(self.fit))
        now, then = (float((((fitting.y - one.values) / spread)[self.used] ** 2).sum()) for one in (self.fit, loose))
        if not then < (1 - TAKEN) * now:
            return {}
        far = np.abs(loose.shares - 1) > STRAINED * fitting.prior
        left = "and are explained then" if fitting.explains(loose) else "but leave too much"
        return self._contradictions(loose, far, f"{left}: check both, or widen the prior")

    def _contradictions(self, loose: FittedModes, which: Array, what: str) -> dict[str, str]:
        fitting = self.fitting
        away = np.abs(loose.shares - 1) / fitting.given_prior
        return {
            fitting.keys[k]: f"the measurements contradict the prior of '{fitting.keys[k]}': they ask for "
            f"{fitting.first[k] * loose.shares[k]:.3g}, {away[k]:.2g} times its deviation away, {what}"
            for k in np.flatnonzero(which)
        }

    def _unsure(self, pairs: Sequence[Mapping[str, Any]], lost: Sequence[Mapping[str, Any]]) -> list[str]:
        """Pairs that may be others."""
        found = []
        for one in pairs:
            name = f"mode {one['mode']} at '{one['pose']}'"
            if one["mac"] < UNLIKE:
                what = "is unlike the measured shape" if one["mac_of"] == "measured" else "changed its shape"
                found.append(f"{name} {what} (MAC {one['mac']:.2f}): its pair is not sure{self._exchanged(one)}")
            if one["held_out"] and not _within(one):
                found.append(f"{name}, held out, is measured outside of its interval")
        near = [one for one in pairs if "also" in one]
        found += [f"{one['measured']:.5g} Hz at '{one['pose']}' is paired with mode {one['mode']}, and may be that of "
                  f"{one['also'][0]:.5g} Hz" for one in near[:MOST_NAMED]]  # fmt: skip
        if len(near) > MOST_NAMED:
            found.append(f"{len(near)} pairs in all may be others: number the modes, or measure shapes")
        return found + [f"{one['measured']:.5g} Hz at '{one['pose']}' has no partner in the model and is left out"
                        f"{self._too_many(one['pose'])}" for one in lost]  # fmt: skip

    def _exchanged(self, pair: Mapping[str, Any]) -> str:
        """With which measured mode of its pose a mode with a number would have to be exchanged, by their shapes."""
        fitting, fit, pose = self.fitting, self.fit, pair["pose"]
        own = [k for k in fitting.of_pose[pose] if fit.modes[k] >= 0 and len(fitting.rows[k].shape) > 1]
        one = next((k for k in own if fitting.rows[k].mode == pair["mode"]), None)
        if one is None:
            return ""

        def macs(first: int, second: int) -> list[float]:
            here = fit.models[pose]
            return [here.mac(fitting.rows[a].shape, fit.modes[b]) for a, b in ((first, second), (second, first))]

        for other in own:
            number, (there, back) = fitting.rows[other].mode, macs(one, other)
            if other != one and number is not None and min(there, back) > UNLIKE:
                return (
                    f"; numbers {pair['mode']} and {number} exchanged there, shapes fit (MAC {there:.2f} and "
                    f"{back:.2f}): check them"
                )
        return ""

    def _too_many(self, pose: str) -> str:
        """What to do where more was measured than there is."""
        count, several = len(self.fit.models[pose].frequencies), len(self.fitting.of_pose[pose])
        if several <= count:
            return ""
        return (
            f": the robot has {count} modes there, and {several} are measured; a pole of responses that is not a mode "
            "goes with another order or band"
        )

    def _combinations(self, alike: Sequence[tuple[int, int]]) -> list[str]:
        """Combinations of three and more numbers of which the measurements say less than the prior.

        Those in which every two numbers are alike are named by these.
        """
        wide = np.where(np.isfinite(self.fitting.prior), self.fitting.prior, 1e3)
        S = self.fitting.information(self.fit) * wide
        found, rest, keys = [], np.eye(S.shape[1]), self.fitting.keys
        untold = "is not told by the measurements, only by the prior"
        scale = self.fit.shares / wide  # all numbers by one factor
        scale = scale / np.linalg.norm(scale)
        every = set(combinations(range(len(keys)), 2))
        if len(keys) > 2 and float(np.square(S @ scale).sum()) < 1 and not every <= set(alike):
            found.append(f"the common scale of {', '.join(map(repr, keys))} {untold}")
            rest = scipy.linalg.null_space(scale[None, :])
        values, vectors = np.linalg.eigh(rest.T @ S.T @ S @ rest)
        for value, vector in zip(values, (rest @ vectors).T, strict=True):
            parts = np.flatnonzero(np.abs(vector) > MIXED * np.abs(vector).max())
            if value < 1 and len(parts) > 2 and not set(combinations(parts.tolist(), 2)) <= set(alike):
                found.append(f"a combination of {', '.join(repr(keys[k]) for k in parts)} {untold}")
        return found


def _within(pair: Mapping[str, Any]) -> bool:
    low, high = pair["interval"]
    return low is None or low <= pair["measured"] <= high


def finite(value: Any) -> float | None:
    """A number, or None where it is not finite."""
    return float(value) if np.isfinite(value) else None
