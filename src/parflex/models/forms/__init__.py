"""Forms in which the models of a robot are written; `choose` decides, and its answer has the same few methods."""

from parflex.models.forms.choice import choose
from parflex.models.forms.form import MODELS, Form, Question

__all__ = ["MODELS", "Form", "Question", "choose"]
