"""The result of an update: numbers, intervals, measured and computed modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from parflex.diagnostics import Diagnostic
from parflex.fit import Estimate, Fit, extended_name
from parflex.io import refuse_overwrite
from parflex.parameters.robot_file import redesigned, write_design
from parflex.records import brief
from parflex.updating.fit import NO_PRIOR, FitProblem, FittedModes, Solution, shared_errors, undetermined

Array = np.ndarray
STRAINED = 3.0  # deviations of its prior, beyond which a number is one of 300 by chance
UNLIKE = 0.8  # MAC below which a mode is another one
COUNTS = 1e-3  # of a number, a shift by few elements that is told
TAKEN_UP = (
    "intervals hold it as one error of each mode at all poses, but not what the numbers take up of it: they are of "
    "this model, and may be far from those of the robot"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UpdatedParameter(Estimate):
    """A number of the robot file; deviation, interval, relative and told are None where it is undetermined.

    Attributes
    ----------
    before : float
        Its value in the file.
    relative : float | None
        Deviation over the value.
    prior : float | None
        Deviation before anything was measured; None: no prior.
    told : float | None
        Share of the prior that is gone.
    """

    before: float
    relative: float | None
    prior: float | None
    told: float | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("value", "before", "deviation", "interval", "relative", "prior", "told")
        return {word: self[word] for word in words}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Updated(Fit):
    """Numbers of a robot file that fit measured modes.

    `robot`, `source` and `diagnostics` are as in every fit.

    Attributes
    ----------
    parameters : dict[str, UpdatedParameter]
        By key; intervals of 95 % do not pass zero, as numbers keep their signs.
    covariance : Array
        Covariance behind the measurements and the prior, with the error of the model where there is one.
    undetermined : list[dict[str, float]]
        Combinations of the parameters, in shares of their priors, that the measurements determine less than the prior
        does. A parameter is undetermined if they make up more than half of its variance.
    residuals : dict[str, Array]
        Measured less fitted frequencies by pose (Hz).
    cosines : Array
        Between the columns of the weighted sensitivities: near 1 or -1 frequencies hardly separate two parameters.
    pairs : list[dict[str, Any]]
        Of each measured mode: pose, mode, measured, deviation, before, after (Hz), predicted_deviation (Hz: of the
        parameters, of elements that are too few and of the model), interval (95 % of what will be measured), mac (of
        the measured shape, else of the shapes before and after), mac_of, held_out; damping where it was measured.
    macs : dict[str, Array]
        By pose, where shapes were measured: MAC of the measured modes (rows) with those of the updated model.
    model_error : float
        Root mean square of residuals over deviations: above 1 the model does not fit within them.
    model_share : dict[str, float]
        Error of the model that residuals show: shares of the frequencies and of the damping ratios.
    errors : dict[str, float]
        Root mean square of relative errors of frequencies: before, after; held_out_before, held_out_after and
        held_out_within, the share within its interval, where some are.
    keys : list[str]
        In the order of covariance and cosines.
    unpaired : list[dict[str, Any]]
        Measured modes without a partner: pose, measured.
    alternatives : list[dict[str, Any]]
        Other solutions that fit within 95 % of the region of the best one: parameters (by key: value, deviation) and
        more, by how much their sum of squares of residuals and priors, and of shapes, is larger (deviations that are
        wider than given cost twice the logarithm of that); held_out_after, as in errors.
    """

    parameters: dict[str, UpdatedParameter]
    cosines: Array
    pairs: list[dict[str, Any]]
    macs: dict[str, Array]
    model_error: float
    model_share: dict[str, float]
    errors: dict[str, float]
    keys: list[str]
    unpaired: list[dict[str, Any]] = field(default_factory=list)
    alternatives: list[dict[str, Any]] = field(default_factory=list)

    def to_file(self, path: str | Path) -> Sequence[Diagnostic]:
        """Write a robot file to `path` that extends that of the robot by the numbers."""
        robot, settings = self.source, {key: parameter.value for key, parameter in self.parameters.items()}
        refuse_overwrite([path], robot.files)
        write_design(extended_name(robot), robot, redesigned(robot, settings), settings, Path(path), "updated")
        return ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("robot", "keys", "pairs", "unpaired", "model_error", "model_share", "errors", "alternatives")
        return {
            **{word: getattr(self, word) for word in (*words, "undetermined")},
            "parameters": {key: parameter.as_dict() for key, parameter in self.parameters.items()},
            "covariance": self.covariance.tolist(), "cosines": self.cosines.tolist(),
            "macs": {pose: matrix.tolist() for pose, matrix in self.macs.items()},
        }  # fmt: skip

    def _told(self) -> str:
        return f"{brief(self.robot)}: {len(self.parameters)} numbers, relative error {self.errors['after']:.3g}"


class FitReport:
    """The answer of an update, from the model of the file and the updated one."""

    def __init__(self, fitting: FitProblem, before: FittedModes, solutions: Sequence[Solution]) -> None:
        self.fitting, self.before, self.best, self.others = fitting, before, solutions[0], solutions[1:]
        self.fit = fit = self.best.fit
        self.shift = fitting.shift_by_elements(fit)
        self.plain = fitting.covariance(fit)
        plain, self.freedoms = shared_errors(fitting, fit)
        self.shifted = np.abs(self.shift) > np.maximum(np.sqrt(np.diag(plain)), COUNTS * np.abs(fit.shares))
        self.covariance = plain + np.outer(self.shift, self.shift)
        self.undetermined = undetermined(fitting, fit)
        self.used = fitting.used(fit)
        known = not fitting.error.any()
        self.width = float(scipy.special.ndtri(0.975) if known else scipy.special.stdtrit(self.freedoms, 0.975))
        S = fitting.information(fit)
        sizes = np.linalg.norm(S, axis=0)
        self.cosines = (S.T @ S) / np.maximum(np.outer(sizes, sizes), 1e-300)
        open_part = np.einsum("ij,jk,ik->i", fit.slopes, self.covariance, fit.slopes)
        self.predicted = np.sqrt(open_part + fitting.doubt(fit) ** 2)

    def updated(self, before: Sequence[Diagnostic]) -> Updated:
        """All of it."""
        fitting = self.fitting
        parameters, pairs = self._parameters(), self._pairs()
        left = ((fitting.y - self.fit.values) / fitting.given)[self.used]
        freedoms = max(sum(fitting.freedoms(self.fit, kind) for kind in (0, 1)), 1.0)
        error = float(np.sqrt(left @ left / freedoms))
        shares = {"frequency": float(fitting.error[0])}
        shares |= {"damping": float(fitting.error[1])} if fitting.damped else {}
        lost = [{"pose": item.pose, "measured": item.frequency}
                for item, mode in zip(fitting.rows, self.fit.modes, strict=True) if mode < 0]  # fmt: skip
        others = [self._alternative(item) for item in self.others]
        residuals = fitting.y - self.fit.values
        return Updated(
            robot=fitting.robot.name, source=fitting.robot, parameters=parameters,
            covariance=self.covariance * np.outer(fitting.first, fitting.first), cosines=self.cosines, pairs=pairs,
            undetermined=[dict(zip(fitting.keys, map(float, item), strict=True))
                          for item in self.undetermined.combinations],
            residuals={pose: residuals[indices] for pose, indices in fitting.of_pose.items()},
            diagnostics=(*_of_others(others), *before, *self._diagnostics(pairs, lost)),
            macs=self._macs(), model_error=error, model_share=shares, errors=self._errors(pairs), keys=fitting.keys,
            unpaired=lost, alternatives=others,
        )  # fmt: skip

    def _alternative(self, solution: Solution) -> dict[str, Any]:
        """Another solution: its numbers, its cost beyond that of the best, and its error of held out frequencies."""
        fitting, pairing = self.fitting, self.fitting.pairing
        fitting.pairing = solution.pairing
        deviations = np.sqrt(np.diag(fitting.covariance(solution.fit)))
        open_ones = undetermined(fitting, solution.fit).numbers
        fitting.pairing = pairing
        columns = zip(fitting.keys, fitting.first, solution.fit.shares, deviations, open_ones, strict=True)
        numbers = {
            key: {"value": float(first * share), "deviation": None if unknown else float(abs(first) * deviation)}
            for key, first, share, deviation, unknown in columns
        }
        result = {"parameters": numbers, "more": solution.cost - self.best.cost}
        off = (solution.fit.values / fitting.y - 1)[: len(fitting.rows)][fitting.apart]
        off = off[np.isfinite(off)]
        return result | ({"held_out_after": float(np.sqrt(np.mean(off**2)))} if len(off) else {})

    def _parameters(self) -> dict[str, UpdatedParameter]:
        fitting, result = self.fitting, {}
        for key, first, share, deviation, prior, unknown in zip(
            fitting.keys, fitting.first, self.fit.shares, np.sqrt(np.diag(self.covariance)), fitting.prior,
            self.undetermined.numbers, strict=True,
        ):  # fmt: skip
            low, high = sorted(float(first * max(share + side * self.width * deviation, 0.0)) for side in (-1, 1))
            result[key] = UpdatedParameter(
                value=float(first * share), before=float(first),
                deviation=None if unknown else float(abs(first) * deviation),
                interval=None if unknown else (low, high), relative=None if unknown else float(deviation / abs(share)),
                prior=float(abs(first) * prior) if prior < NO_PRIOR else None,
                told=None if unknown else float(1 - min(deviation / prior, 1.0)),
            )  # fmt: skip
        return result

    def _beside(self, entry: int) -> dict[str, Any]:
        """A measured number beside those of the models."""
        fitting, after = self.fitting, float(self.fit.values[entry])
        reach = self.width * np.hypot(self.predicted[entry], fitting.given[entry])
        return {
            "measured": float(fitting.y[entry]), "deviation": float(fitting.given[entry]),
            "before": finite_or_none(self.before.values[entry]), "after": after,
            "predicted_deviation": finite_or_none(self.predicted[entry]),
            "interval": [finite_or_none(after - reach), finite_or_none(after + reach)],
        }  # fmt: skip

    def _pairs(self) -> list[dict[str, Any]]:
        fitting, pairs = self.fitting, []
        for pose, indices in fitting.of_pose.items():
            for k in indices:
                row, mode = fitting.rows[k], self.fit.modes[k]
                if mode < 0:
                    continue
                shaped = len(row.shape) > 1
                pair = {"pose": pose, "mode": row.mode or self.before.modes[k] + 1, **self._beside(k)}
                pair |= {
                    "mac": self.fit.models[pose].mac(row.shape, mode) if shaped else self.fit.alike[k],
                    "mac_of": "measured" if shaped else "model",
                    "held_out": bool(fitting.apart[k]), "row": k,
                }  # fmt: skip
                if k in fitting.damped:
                    pair["damping"] = self._beside(len(fitting.rows) + fitting.damped.index(k))
                pairs.append(pair)
        pairs.sort(key=lambda pair: pair.pop("row"))
        return pairs

    def _macs(self) -> dict[str, Array]:
        result = {}
        for pose, indices in self.fitting.of_pose.items():
            rows = [self.fitting.rows[k].shape for k in indices if self.fit.modes[k] >= 0]
            now = self.fit.models[pose]
            if any(len(shape) > 1 for shape in rows):
                result[pose] = np.array([[now.mac(shape, mode) if len(shape) > 1 else np.nan
                                         for mode in range(len(now.frequencies))] for shape in rows])  # fmt: skip
        return result

    def _errors(self, pairs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        def size(word: str, some: Sequence[Mapping[str, Any]]) -> float:
            return float(np.sqrt(np.mean([(pair[word] / pair["measured"] - 1) ** 2 for pair in some])))

        used = [pair for pair in pairs if not pair["held_out"]]
        apart = [pair for pair in pairs if pair["held_out"]]
        errors = {"before": size("before", used), "after": size("after", used)} if used else {}
        if apart:
            errors |= {"held_out_before": size("before", apart), "held_out_after": size("after", apart)}
            errors["held_out_within"] = float(np.mean([_within(pair) for pair in apart]))
        return errors

    # -- diagnostics -------------------------------------------------------------------------------------------------

    def _diagnostics(self, pairs: Sequence[Mapping[str, Any]], lost: Sequence[Mapping[str, Any]]) -> list[Diagnostic]:
        """Diagnostics: what the measurements leave to the priors, and what the model does not fit."""
        keys, error = self.fitting.keys, self.fitting.error
        messages = self._undetermined_warning()
        away = np.abs(self.fit.shares - 1) / self.fitting.prior
        for key, far in zip(keys, map(float, away), strict=True):
            if far > STRAINED:
                text = f"'{key}' moved by {far:.2g} times the deviation of its prior: check units and mode numbers, or"
                messages.append(Diagnostic("strained-prior", f"{text} widen the prior", key, far))
        if self.shifted.any():
            names = ", ".join(f"'{keys[k]}' by {abs(self.shift[k] / self.fit.shares[k]):.1%}"
                              for k in np.flatnonzero(self.shifted))  # fmt: skip
            text = f"too few elements may shift {names}: divide the elements of beams (elements=4)"
            messages.append(Diagnostic("few-elements", text, keys[int(np.flatnonzero(self.shifted)[0])]))
        if error[0]:
            text = (
                f"residuals are larger than their deviations: the model has an error of {error[0]:.2%} of the "
                f"frequencies that these numbers do not remove from {self.fitting.starts} starts: check units and mode "
                f"numbers (an empty number pairs by frequency and shape); {TAKEN_UP}"
            )
            messages.append(Diagnostic("model-error", text, "frequency", float(error[0])))
        if error[1]:
            text = f"the model has an error of {error[1]:.0%} of the damping ratios; {TAKEN_UP}"
            messages.append(Diagnostic("model-error", text, "damping", float(error[1])))
        if self.fitting.freedoms(self.fit, 0) < 0.5:
            text = "there are as many numbers as measurements: an error of the model does not show"
            messages.append(Diagnostic("model-error", text))
        for pair in (pair for pair in pairs if pair["predicted_deviation"] is None):
            text = f"mode {pair['mode']} at '{pair['pose']}' has too few elements: it is not used"
            messages.append(Diagnostic("few-elements", text, pair["pose"], pair["mode"]))
        return messages + self._unsure(pairs, lost)

    def _undetermined_warning(self) -> list[Diagnostic]:
        """A diagnostic that names the undetermined numbers."""
        count, fitting = len(self.undetermined.combinations), self.fitting
        if not count:
            return []
        names = ", ".join(
            f"'{key}'"
            for key, is_undetermined in zip(fitting.keys, self.undetermined.numbers, strict=True)
            if is_undetermined
        )
        what = "1 combination" if count == 1 else f"{count} combinations"
        text = (
            f"the measurements determine {what} of the numbers less than the prior does; undetermined, without an "
            f"interval: {names or 'no single number'}: vary fewer numbers, or measure more modes or poses"
        )
        return [Diagnostic("undetermined-parameters", text, value=count)]

    def _unsure(self, pairs: Sequence[Mapping[str, Any]], lost: Sequence[Mapping[str, Any]]) -> list[Diagnostic]:
        """Pairs that may be others."""
        messages = []
        for entry in pairs:
            name = f"mode {entry['mode']} at '{entry['pose']}'"
            if entry["mac"] < UNLIKE:
                what = "is unlike the measured shape" if entry["mac_of"] == "measured" else "changed its shape"
                text = (
                    f"{name} {what} (MAC {entry['mac']:.2f}): its pair is not sure: check "
                    "sensors and mode number; an empty number pairs by frequency and shape"
                )
                messages.append(Diagnostic("unsure-pair", text, entry["pose"], entry["mac"]))
            if entry["held_out"] and not _within(entry):
                text = f"{name}, held out, is measured outside of its interval"
                messages.append(Diagnostic("held-out-miss", text, entry["pose"], entry["measured"]))
        for entry in lost:
            text = f"{entry['measured']:.5g} Hz at '{entry['pose']}' has no partner in the model and is left out"
            messages.append(Diagnostic("unpaired-mode", text, entry["pose"], entry["measured"]))
        return messages


def _of_others(others: Sequence[Mapping[str, Any]]) -> list[Diagnostic]:
    """Return a diagnostic for each other solution."""
    messages = []
    for solution in others:
        numbers = ", ".join(f"'{key}' = {number['value']:.4g}" for key, number in solution["parameters"].items())
        apart = ""
        if "held_out_after" in solution:
            apart = f", held out frequencies off by {solution['held_out_after']:.2%}"
        text = (
            f"another solution fits as well: {numbers} (sum of squares {solution['more']:+.1f}{apart}); intervals are "
            "of one solution alone: measure shapes or other poses, or narrow a prior"
        )
        messages.append(Diagnostic("other-solution", text, value=solution["more"]))
    return messages


def _within(pair: Mapping[str, Any]) -> bool:
    low, high = pair["interval"]
    return low is None or low <= pair["measured"] <= high


def finite_or_none(value: Any) -> float | None:
    """A number, or None where it is not finite."""
    return float(value) if np.isfinite(value) else None
