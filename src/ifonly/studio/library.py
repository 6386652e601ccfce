"""Names of the library that the studio needs and that are not in its public catalogue: the only file that knows where."""

from __future__ import annotations

import pandas as pd

from ifonly import Explainer
from ifonly.bench import credit_model
from ifonly.data.features import Feature, Integer, Numeric
from ifonly.result.text import format_change, format_range, format_value

__all__ = ["Feature", "Integer", "Numeric", "credit_model", "format_change", "format_range", "format_value", "frame_of"]


def frame_of(explainer: Explainer) -> pd.DataFrame:
    """Return the data that an explainer was given."""
    return explainer._frame
