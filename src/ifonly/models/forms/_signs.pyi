from collections.abc import Mapping, Sequence
from typing import Any

def opened(
    features: Sequence[Any],
    networks: Sequence[Sequence[Any]],
    numbers: Mapping[str, float],
    passes: Sequence[float],
    asked: Sequence[float],
    rounds: Sequence[int],
    elsewhere: float,
    slack: float,
    most: int,
    most_bytes: int,
    /,
) -> object: ...
def run(search: object, budget: float, most_work: int, /) -> tuple[int, float, int, int]: ...
def offered(search: object, x: Any, level: Any, /) -> None: ...
def learned(search: object, network: int, shift: Any, /) -> None: ...
