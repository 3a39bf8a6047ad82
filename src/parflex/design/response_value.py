"""Values of a response: a number with derivatives by keys, or one of several equal numbers that keys split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.records import Record
from parflex.spatial.dual import Sensitive

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class MultipleValue(Record):
    """A value that several modes or directions have at once: `matrices` (keys x m x m) are symmetric.

    For a change of all keys, the eigenvalues of the sum of change times matrix are the changes of the m values, sorted;
    `place` says which of the sorted values is meant. So the value has no gradient, only directional derivatives.
    """

    value: float
    matrices: Array
    place: int

    @property
    def multiplicity(self) -> int:
        """Number of equal values."""
        return self.matrices.shape[1]

    @property
    def directional(self) -> Array:
        """Derivatives of all the equal values as one key grows alone, sorted; keys x m."""
        return np.linalg.eigvalsh(self.matrices) if len(self.matrices) else np.zeros((0, self.multiplicity))

    @property
    def slope(self) -> Array:
        """Derivative of the meant value as one key grows alone."""
        return self.directional[:, self.place]

    def along(self, changes: Array) -> Array:
        """Derivatives of the equal values for changes of all keys together, sorted."""
        return np.linalg.eigvalsh(np.tensordot(changes, self.matrices, 1))


def value_of(answer: Any) -> float:
    """The number itself."""
    return float(answer.value if isinstance(answer, MultipleValue | Sensitive) else answer)


def slope_of(answer: Any, count: int) -> Array:
    """Its slopes by the keys."""
    return np.asarray(answer.slope) if isinstance(answer, MultipleValue | Sensitive) else np.zeros(count)


def combined(answers: Sequence[Any], count: int, smallest: bool) -> Any:
    """One answer of several with the same value: the changes of each are those of all, sorted together."""
    if len(answers) == 1:
        return answers[0]
    blocks = [
        answer.matrices if isinstance(answer, MultipleValue) else slope_of(answer, count).reshape(count, 1, 1)
        for answer in answers
    ]
    size = sum(block.shape[1] for block in blocks)
    matrices, start = np.zeros((count, size, size)), 0
    for block in blocks:
        end = start + block.shape[1]
        matrices[:, start:end, start:end] = block
        start = end
    return MultipleValue(value_of(answers[0]), matrices, 0 if smallest else size - 1)


def inverse(answer: Any) -> Any:
    """One over an answer; of several equal values the largest becomes the smallest."""
    if not isinstance(answer, MultipleValue):
        return 1.0 / answer
    return MultipleValue(1.0 / answer.value, -answer.matrices / answer.value**2, answer.multiplicity - 1 - answer.place)
