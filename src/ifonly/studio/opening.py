"""The studio from Python: one explainer, its data, and a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ifonly import Explainer
from ifonly.studio.server import Address, Studio
from ifonly.studio.subject import Subject, standard_switches

__all__ = ["open_studio", "subject_of"]


def subject_of(
    explainer: Explainer, data: pd.DataFrame, switches: Mapping[str, Any] | None = None, law: Sequence[Any] = ()
) -> Subject:
    """Return an explainer and its data as something to ask about."""
    estimator = explainer.model.estimator
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    offered = standard_switches() if switches is None else dict(switches)
    rows = explainer.schema.frame(data).reset_index(drop=True)
    return Subject("model", type(last).__name__, explainer, rows, switches=offered, law=tuple(law))


def open_studio(
    explainer: Explainer,
    data: pd.DataFrame,
    switches: Mapping[str, Any] | None = None,
    law: Sequence[Any] = (),
    port: int = 0,
    open_browser: bool = True,
    keep: Path | None = None,
    behind_proxy: Sequence[str] | None = None,
) -> Studio:
    """Start a studio in the background and open it in the browser."""
    address = Address(port=port, names=tuple(behind_proxy or ()), behind_proxy=behind_proxy is not None)
    studio = Studio([subject_of(explainer, data, switches, law)], address, keep=keep).start()
    if open_browser:
        studio.open()
    return studio
