"""The main line is straight: a plain question passes no module of what it does not ask for."""

import pytest
from benchmarks.walks import walk


@pytest.mark.parametrize("name", ["linear", "forest"])
def test_a_plain_question_passes_no_module_of_what_it_does_not_ask_for(name: str) -> None:
    found = walk(name)
    detours = ("criteria.diversity", "criteria.robustness", "criteria.manifold", "search.several", "search.blame")
    assert not [module for module in found.modules if module.startswith(detours)]
    assert "search.boxes" not in found.modules, "no solver is needed, so no engine that uses one is asked"
    assert found.chain[:2] == ("explain", "search.answering")
    assert len(found.chain) <= 15
    assert set(found.chain[:-1]) <= found.handing < found.modules


def test_a_linear_question_passes_at_most_fifteen_modules() -> None:
    assert len(walk("linear").modules) <= 15
