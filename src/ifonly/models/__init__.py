"""Models: a trained model as a form, the same function said twice, once to the optimiser and once to NumPy."""

from ifonly.models.form import Form
from ifonly.models.forms.bends import sigmoid
from ifonly.models.read import Model, Read
from ifonly.models.registry import known_readers, read_estimator, reads

__all__ = ["Form", "Model", "Read", "known_readers", "read_estimator", "reads", "sigmoid"]
