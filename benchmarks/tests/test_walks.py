"""The main line is straight: a plain question passes no module of what it does not ask for."""

import pytest
from benchmarks.walks import walk

# Modules of what a plain question does not ask for: further answers, balls, rules, hulls, and where there is no answer.
DETOURS = (
    *("criteria.diversity", "criteria.robustness", "criteria.manifold"),
    *("search.balls", "search.blame", "search.distances", "search.several", "search.unions"),
)


@pytest.mark.parametrize("first", [False, True], ids=["later", "first"])
@pytest.mark.parametrize("name", ["linear", "forest", "network"])
def test_a_plain_question_passes_no_module_of_what_it_does_not_ask_for(name: str, first: bool) -> None:
    found = walk(name, first=first)
    assert not [module for module in found.modules if module.startswith(DETOURS)]
    assert set(found.chain[:-1]) <= found.handing < found.modules
    assert len(found.chain) <= 15
    if not first:
        assert not any(m.startswith("search.boxes") for m in found.modules), "no solver is needed, so none is asked"
        assert found.chain[:2] == ("explain", "search.answering")


def test_a_linear_question_passes_at_most_fifteen_modules() -> None:
    assert len(walk("linear").modules) <= 15
