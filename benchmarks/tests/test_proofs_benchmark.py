"""Questions of the battery whose proofs were once refused, or whose forgeries ended in no sentence, are asked again."""

from __future__ import annotations

import pytest
from benchmarks.proofs.judging import of_task

WORLDS = {
    319: "an answer on its very threshold, with no margin, was compared with the first one",
    398: "another row, for which nothing is left in the ranges",
    458: "a part replaced by a linear program, where nothing is left in the ranges",
}


@pytest.mark.slow
@pytest.mark.parametrize("block", WORLDS, ids=WORLDS.values())
def test_proofs_are_accepted_and_forged_ones_refused(block: int) -> None:
    results = of_task(("", 20261118, block))
    assert results
    for result in results:
        assert result["held"], result["why"]
        assert result["refused"], result["forgery"]
