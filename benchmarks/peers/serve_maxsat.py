"""A worker for OCEAN's MaxSAT explainer, on the forest that the constraint programming one is given.

It pays for both 0/1 columns of a switched category, so numbers are scaled to a range of 2. It stops at the limit without
an answer, and looks at the clock only now and then, so its worker is ended at the limit.
"""

from __future__ import annotations

from typing import Any

from ocean import MaxSATExplainer
from serve import serve
from serve_ocean import Ocean


class MaxSat(Ocean):
    """The same forest, cells and answers by another solver."""

    explainers = MaxSATExplainer
    reach = 2.0

    def _limits(self, seconds: float) -> dict[str, Any]:
        return {"max_time": int(seconds) + 1}

    def _bound(self) -> None:
        return None

    def _cell(self, found: Any, column: int) -> int:
        """Return the cell below the first threshold that holds, or the last one."""
        states = found._get_threshold_states(f"f{column}")
        return states.index(True) if True in states else len(states)


if __name__ == "__main__":
    serve(MaxSat)
