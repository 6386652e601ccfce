from collections.abc import Sequence
from typing import Any

def opened(
    tables: Sequence[Any],
    costs: Sequence[Any],
    sure: Any,
    on_grid: Any,
    grid_need: float,
    dust: float,
    changed_elsewhere: int,
    most: int,
    keeps_trail: bool,
    most_bytes: int,
    prices: tuple[float, ...] = ...,
    names: Any = ...,
    /,
) -> object: ...
def run(
    search: object, budget: float, met: int, most_parts: int, most_work: int, /
) -> tuple[int, int, float, float, bytes]: ...
def meeting(search: object, low: Any, high: Any, allowed: Any, /) -> None: ...
