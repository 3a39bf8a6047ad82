"""Forms in which the models of a robot are written; `choose` decides, and its answer has the same few methods."""

from parflex.models.forms.choice import choose
from parflex.models.forms.form import COORDINATES, IN_COORDINATES, MODELS, Form, Question, refuse_unknown_coordinates

__all__ = ["COORDINATES", "IN_COORDINATES", "MODELS", "Form", "Question", "choose", "refuse_unknown_coordinates"]
