from collections.abc import Mapping, Sequence
from typing import Any

def opened(
    features: Sequence[Any],
    constraints: Sequence[Sequence[Any]],
    numbers: Mapping[str, float],
    elsewhere: float,
    most: int,
    most_looks: int,
    patience: int,
    most_bytes: int,
    /,
) -> object: ...
def run(search: object, budget: float, met: int, most_work: int, /) -> tuple[int, float, int, int]: ...
def offered(search: object, x: Any, level: Any, /) -> tuple[float, int]: ...
def tried(search: object, budget: float, x: Any, level: Any, /) -> bool: ...
