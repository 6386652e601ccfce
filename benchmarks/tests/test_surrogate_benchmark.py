"""The table of the benchmark of observed models, from answers made by hand."""

import numpy as np
from benchmarks.surrogate import Answered, markdown, summary


def answer(method: str, row: int, distance: float, *, confirmed: bool = True, coherent: bool = True) -> Answered:
    return Answered("p", method, row, not np.isnan(distance), confirmed, coherent, distance, 1.0)


def test_medians_are_over_confirmed_answers_and_common_rows() -> None:
    table = summary(
        [
            *(answer("a", row, d) for row, d in enumerate((1.0, 2.0, 9.0))),
            answer("b", 0, 4.0, coherent=False),
            answer("b", 1, 6.0),
            answer("b", 2, 0.0, confirmed=False),
        ]
    ).set_index("method")
    assert table.loc["a", "median distance"] == 2.0
    assert table.loc["a", "on common rows"] == 1.5
    assert table.loc["b", ["answered", "confirmed", "coherent"]].tolist() == [3, 2, 1]
    assert table.loc["b", "median distance"] == 5.0
    assert markdown(table.reset_index()).count("\n") == 3
