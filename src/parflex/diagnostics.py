"""Diagnostics of answers: a code to compare, a text to read, and the value that caused it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

# code: meaning, what to do
CODES: dict[str, tuple[str, str]] = {
    "about-equilibrium": ("The answer is about the equilibrium.", "Use about='undeformed' for the pose."),
    "above-noise": ("Residuals are above the noise level.", "Check what the identification page lists."),
    "axial-load": ("An axial load changes a bending stiffness.", "Use more elements, or axial strain 'mean'."),
    "beyond-band": ("A frequency is above the band of a reduced beam.", "Give 'reduce' a higher band."),
    "beyond-first-order": ("A deflection is too large for first order.", "Use about='equilibrium'."),
    "cables-not-taut": ("No internal efforts keep all cables taut.", "Choose another pose or motion."),
    "changed-by-import": ("The robot file differs from the source.", "Check the difference."),
    "changed-coordinates": ("A run changed its independent coordinates.", "Let the run choose them."),
    "changed-start": ("A run does not start at the requested state.", "Choose another start."),
    "contradicting-encoders": ("Positions of the motors leave loops open.", "Check zero, sign and gain of encoders."),
    "contradicting-sensor": ("A sensor of a passive joint contradicts the motors.", "Check zeros, signs and lengths."),
    "dead-effort": ("The recorded effort of a moving motor is constant or noise.", "Check its column."),
    "doubtful-states": ("Some states of a batch have diagnostics.", "Compute the first such state alone."),
    "effort-limit": ("A motor exceeds its effort limit.", "Change the motion or load, or ignore limits."),
    "energy-balance": ("A run does not conserve energy.", "Use a shorter step or a tolerance."),
    "exceeded-on-path": ("A time-optimal motion exceeds limits.", "Check the motion, or lower the limits."),
    "failed-states": ("Some states of a batch have no answer and are NaN.", "Compute the first such state alone."),
    "failed-validation": ("The parameters do not predict a record.", "Check zeros, payloads and signs."),
    "far-positions": ("Recorded positions are beyond the limits of a motor.", "Check unit, sign and zero."),
    "far-start": ("Home is not at the starts of the robot file.", "Correct the starts."),
    "few-elements": ("A beam has too few elements for the frequency.", "Use more elements, or 'converge'."),
    "hardly-determined": ("Measurements hardly separate numbers.", "Hold them, give priors, or measure more."),
    "held-out-miss": ("A mode that was held out is outside of its interval.", "Extend the model."),
    "held-values": ("A record repeats values over rows.", "Record at the rate of the bus."),
    "identical-stiction": ("Rates of joints in stiction are nearly identical.", "Compare with friction_width=1e-3."),
    "identified-modes": ("Modes were identified from frequency responses.", "Check their number and band."),
    "immobile-joint": ("Couplings leave a joint no motion.", "Remove or correct a coupling."),
    "impossible-inertia": ("No real body has this inertia.", "Correct the inertia; base parameters may be so."),
    "impossible-parameter": ("A parameter is physically impossible.", "Check signs, columns and payloads."),
    "incomplete-measurements": ("Measurements lack a part.", "Give what the text names."),
    "inconsistent-accelerations": ("Rows of accelerations contradict rates.", "Shorten the step or rows."),
    "interrupted": ("The computation was interrupted.", "Repeat it for a complete answer."),
    "large-deflection": ("A body deflects beyond small deformations.", "Use more elements."),
    "library-warning": ("A library gave a warning.", "Read its text."),
    "limit-without-stop": ("Limits without a stop do not act.", "Give the joint a stop."),
    "load-inside-beam": ("A load acts between nodes of a beam.", "Use a node at the load."),
    "longer-run": ("The run ends at the next whole row.", "Choose a time that is a multiple of 'out_step'."),
    "mesh-not-shown": ("A mesh is not shown.", "Correct the file in the text."),
    "missing-inertia": ("A part of the robot moves without inertia.", "Give the inertia of its bodies."),
    "model-error": ("The model has an error, or it is unknown.", "Check units and mode numbers, or measure more."),
    "moved-by-noise": ("Noise of positions moves a parameter.", "Use iv or didim, or a lower cutoff."),
    "near-singular": ("The pose is near a singularity.", "Move away from the singularity."),
    "neglected-gravity": ("Gravity may change the frequencies.", "Use about='equilibrium'."),
    "neglected-stiffness": ("Loads would change the stiffness of a body.", "Give its data a geometric stiffness."),
    "no-cache": ("Programs are not cached on disk.", "Correct the folder in the text."),
    "no-workers": ("The cluster has no workers yet.", "Start workers."),
    "not-converged": ("Refinement did not reach the requested change.", "Request a larger change."),
    "not-in-equilibrium": ("Bodies are not in equilibrium: they start to deform.", "Simulate, or use an equilibrium."),
    "not-in-file": ("The written file lacks a part of the robot.", "Give it again with the file."),
    "not-optimal": ("The search did not reach an optimum.", "Read the reason in the text."),
    "not-refined": ("Modal or reduced bodies are not refined.", "Give them more modes or a smaller error."),
    "other-controller": ("The simulated controller is not that of the record.", "Check gains, delay and sample time."),
    "other-port": ("The requested port is in use.", "Use the port in the text."),
    "other-solution": ("Another solution fits as well.", "Measure shapes or other poses, or narrow a prior."),
    "outside-bounds": ("A variable is outside its bounds.", "Change the value or the bounds."),
    "position-limit": ("A joint is outside its limits.", "Change the pose or the limit, or ignore limits."),
    "pushing-cable": ("A cable would have to push.", "Use a preload or limits of efforts."),
    "redundant-closures": ("The robot is over-constrained.", "Ignore undetermined reactions."),
    "redundant-motors": ("There are more motors than degrees of freedom.", "Use weights, a preload or limits."),
    "refinement-interrupted": ("A refinement was interrupted.", "Use the last complete run."),
    "refinement-stopped": ("A finer run stopped.", "Use the last complete run."),
    "repeated-record": ("A record of the validation is one of the fit.", "Hold out another record."),
    "replaced-spikes": ("Spikes of a record are replaced.", "Keep them with 'keep_spikes'."),
    "saturated-effort": ("An effort is at its limit.", "Slow the motion, or cut the samples."),
    "short-contact": ("A contact is too short for the step.", "Use the step in the text, or dopri5."),
    "singular": ("The pose is singular.", "Choose another pose."),
    "slack-cable": ("A cable is slack at home.", "Shorten the cable if it should act."),
    "slow-sweep": ("The sweep takes long.", "Use more processes or fewer designs."),
    "step-error": ("The estimated error of the steps is significant.", "Use a smaller tolerance or step."),
    "stopped": ("A run stopped before its end.", "Read the reason in the text."),
    "strained-prior": ("A number moved far from its prior.", "Check units and mode numbers, or widen the prior."),
    "stretched-leg": ("A leg is stretched or folded.", "Move away from the pose if the leg must move."),
    "superelement-matrices": ("The matrices of a super-element are suspicious.", "Check units, digits and nodes."),
    "suspected-mistake": ("One mistake explains a record.", "Correct what the text names."),
    "suspected-units": ("Numbers seem to have other units.", "Check the units."),
    "unbalanced-tension": ("Springs are under tension at the undeformed pose.", "Use about='equilibrium'."),
    "unchecked-cables": ("The tension of cables is not checked.", "Give limits of efforts."),
    "underactuated": ("There are fewer motors than degrees of freedom.", "Read 'free' for the other coordinates."),
    "undetermined-forces": ("Forces of an over-constrained robot are those of least norm.", "Remove the redundancy."),
    "undetermined-parameters": ("The measurements leave numbers undetermined.", "Vary fewer numbers, or measure more."),
    "undriven-motion": ("Locked motors leave a motion.", "Add a motor, or lock a joint."),
    "unknown-stress": ("The stress of a beam is unknown.", "Give the shape of its section."),
    "unknown-zero-dynamics": ("The stability of the deformation is unknown.", "Drive the motors, or simulate."),
    "unpaired-mode": ("A measured mode has no partner.", "Number the modes, or correct the model."),
    "unstable-equilibrium": ("The equilibrium is unstable, as beyond a buckling load.", "Reduce the loads."),
    "unstable-zero-dynamics": ("The elastic zero dynamics are unstable.", "Drive the motors, or use feedback."),
    "unsure-pair": ("A pair of modes may be another one.", "Number the modes, or measure shapes."),
    "unsymmetric-stiffness": ("Moments make the stiffness unsymmetric.", "Use its symmetric part with care."),
    "unused-constant": ("A constant of the robot file is unused.", "Delete it, or refer to it."),
    "unused-payload": ("A payload names no record.", "Correct the name."),
    "velocity-jump": ("The motion has velocity jumps.", "Add ramps to the motion."),
    "velocity-limit": ("A joint exceeds its velocity limit.", "Slow the motion, or ignore limits."),
}


@dataclass(frozen=True)
class Diagnostic:
    """What a user should know about an answer.

    Attributes
    ----------
    code : str
        Kind of diagnostic, one of `CODES`.
    text : str
        Sentence with names and values.
    quantity : str
        Name of what the value is of: a joint, a body, a frame, a record; empty where no value is named.
    value : float | None
        Value of the quantity (SI), None where there is none.
    """

    code: str
    text: str
    quantity: str = ""
    value: float | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(f"'{self.code}' is not in the table of codes")

    def __str__(self) -> str:
        return self.text

    def prefixed(self, prefix: str) -> Diagnostic:
        """Return the diagnostic with `prefix` before its text."""
        return replace(self, text=f"{prefix}{self.text}")

    def as_dict(self) -> dict[str, Any]:
        """Return an entry of `diagnostics` in JSON; values that are not finite become None."""
        value = None if self.value is None or not math.isfinite(self.value) else float(self.value)
        return {"code": self.code, "quantity": self.quantity, "value": value, "text": self.text}


def reported(diagnostics: Iterable[Diagnostic]) -> dict[str, list[Any]]:
    """Return `warnings` and `diagnostics` of a JSON object."""
    entries = [diagnostic.as_dict() for diagnostic in diagnostics]
    return {"warnings": [entry["text"] for entry in entries], "diagnostics": entries}


def read_diagnostics(entries: Iterable[dict[str, Any]]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a JSON object."""
    return tuple(Diagnostic(**entry) for entry in entries)


def with_code(diagnostics: Iterable[Diagnostic], *codes: str) -> list[Diagnostic]:
    """Return the diagnostics that have one of these codes."""
    return [diagnostic for diagnostic in diagnostics if diagnostic.code in codes]
