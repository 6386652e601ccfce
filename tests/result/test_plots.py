"""The lanes hold the right numbers, and the drawing shows them."""

import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from ifonly.data.schema import Categorical, Integer, Numeric, Ordinal, Schema
from ifonly.result.plots import lanes, plot_changes
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation

LETTERS = tuple("abcdefghijklmnopqrst")
FEATURES = (
    Integer("age", 18, 90),
    Integer("rooms", 1, 4),
    Numeric("income", 0.0, 100.0, label="income (k)"),
    Ordinal("school", ("low", "mid", "high")),
    Categorical("town", LETTERS),
)
FACTUAL = {"age": 30, "rooms": 1, "income": 20.0, "school": "low", "town": "a"}
TRAINING = pd.DataFrame(
    {
        "age": np.arange(20, 80),
        "rooms": [1] * 30 + [2] * 15 + [4] * 15,
        "income": np.linspace(0.0, 59.0, 60),
        "school": ["low"] * 30 + ["mid"] * 24 + ["high"] * 6,
        "town": [LETTERS[i % 16] for i in range(60)],
    }
)


@pytest.fixture(autouse=True)
def quiet_figures() -> Iterator[None]:
    mpl.use("Agg")
    yield
    plt.close("all")


def explanation(changes: dict[str, Any], **parts: Any) -> Explanation:
    listed = tuple(Change(name, FACTUAL[name], value) for name, value in changes.items())
    certificate = Certificate(0.31, 0.31, 0.0, proven=True)
    ranges = {"income": (35.0, 1000.0)} if "income" in changes else {}
    first = Counterfactual(pd.DataFrame([FACTUAL | changes]), listed, "good", 0.52, 0.31, certificate, ranges=ranges)
    still = Counterfactual(pd.DataFrame([FACTUAL]), (), "good", 0.52, 0.0, certificate)
    return Explanation(
        (first, still),
        pd.DataFrame([FACTUAL]),
        **{
            "prediction": "bad",
            "score": 0.38,
            "want": "good",
            "schema": Schema(FEATURES),
            "status": "optimal",
            "seconds": 0.1,
            "reference": TRAINING,
        }
        | parts,
    )


def only_lane(changes: dict[str, Any], **parts: Any) -> Any:
    (lane,) = lanes(explanation(changes, **parts))
    return lane


def test_whole_numbers_have_a_bar_each() -> None:
    lane = only_lane({"rooms": 3})
    # Four values, four slots: 30, 15, 0 and 15 rows; the empty slot has no bar.
    assert lane.bars == ((0.0, 0.25, 1.0), (0.25, 0.5, 0.5), (0.75, 1.0, 0.5))
    assert (lane.start, lane.end) == pytest.approx((0.125, 0.625))
    assert lane.ends == ((0.125, "1"), (0.875, "4"))
    assert (lane.before, lane.after) == ("1", "3")
    assert lane.caption == "percentile 25 → 75"


def test_real_numbers_are_binned_between_the_bulk_and_the_two_values() -> None:
    lane = only_lane({"income": 40.0})
    low, high = np.quantile(TRAINING["income"], [0.005, 0.995])
    assert lane.label == "income (k)"
    assert (lane.start, lane.end) == pytest.approx(((20 - low) / (high - low), (40 - low) / (high - low)))
    assert lane.band == pytest.approx(((35 - low) / (high - low), 1.0))
    assert max(height for _, _, height in lane.bars) == 1.0
    far = only_lane({"income": 99.0})
    assert far.end == pytest.approx(1.0)


def test_wide_whole_numbers_are_binned_too() -> None:
    lane = only_lane({"age": 75})
    assert len(lane.bars) == 32
    assert [text for _, text in lane.ends] == ["20", "79"]


def test_levels_stand_in_order_with_their_shares() -> None:
    lane = only_lane({"school": "high"})
    assert lane.stops == pytest.approx((1 / 6, 3 / 6, 5 / 6))
    assert (lane.start, lane.end) == pytest.approx((1 / 6, 5 / 6))
    assert [height for _, _, height in lane.bars] == pytest.approx([1.0, 0.8, 0.2])
    assert lane.caption == "50% → 10% of the rows"


def test_of_many_levels_the_common_ones_and_the_chosen_are_drawn() -> None:
    lane = only_lane({"town": "t"})
    assert len(lane.stops) == 12
    assert len(lane.bars) == 11  # nobody in the training data lives in t
    assert lane.end == pytest.approx(11.5 / 12)
    assert lane.caption == "7% → 0% of the rows · 12 of 20 levels drawn"
    assert only_lane({"town": "t"}, reference=None).caption == "12 of 20 levels drawn"


@pytest.mark.parametrize("reference", [None, TRAINING[["rooms"]], TRAINING.assign(income=np.nan)])
def test_without_training_values_the_bounds_are_the_lane(reference: pd.DataFrame | None) -> None:
    lane = only_lane({"income": 40.0}, reference=reference)
    assert (lane.start, lane.end, lane.bars, lane.caption) == (pytest.approx(0.2), pytest.approx(0.4), (), "")
    assert lane.ends == ((0.0, "0"), (1.0, "100"))


def test_a_value_that_is_missing_now_has_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FACTUAL, "income", np.nan)
    monkeypatch.setitem(FACTUAL, "school", None)
    number, level = lanes(explanation({"income": 40.0, "school": "mid"}))
    assert number.start is None
    assert level.start is None
    assert level.caption == "40% of the rows"
    plot_changes(explanation({"income": 40.0, "school": "mid"})).figure.canvas.draw()


def test_a_constant_column_still_has_a_lane() -> None:
    schema = Schema((Numeric("income", 20.0, 20.0),))
    one = explanation({"income": 20.0}, schema=schema, reference=TRAINING.assign(income=20.0))
    assert lanes(one)[0].end == 0.0


def words(ax: Any) -> set[str]:
    return {text.get_text() for text in ax.texts}


def test_drawing_shows_every_change() -> None:
    one = explanation({"age": 75, "rooms": 3, "income": 40.0, "school": "high", "town": "t"})
    ax = one.plot()
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "age",
        "rooms",
        "income (k)",
        "school",
        "town",
    ]
    assert {"30", "75", "1", "3", "20", "40", "low", "high", "a", "t"} <= words(ax)
    assert "5 of 5 features · distance 0.31 · proven optimal" in words(ax)
    assert ax.get_title(loc="left") == "If only …   bad (0.38)  →  good (0.52)"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["it is now", "it would be"]
    drawn = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert len(drawn) == sum(len(lane.bars) for lane in lanes(one))


def test_drawing_on_given_axes_and_figure_height() -> None:
    figure, ax = plt.subplots()
    one = explanation({"rooms": 3})
    assert plot_changes(one, ax=ax) is ax
    assert plt.get_fignums() == [figure.number]
    tall = plot_changes(explanation({"age": 75, "rooms": 3, "income": 40.0})).figure
    small = plot_changes(one).figure
    assert tall.get_figheight() > small.get_figheight()


def test_a_short_step_is_ringed() -> None:
    rings = [line for line in plot_changes(explanation({"income": 20.5})).lines if line.get_markersize() == 14]
    assert len(rings) == 1


def test_long_levels_are_shortened() -> None:
    long = "an uncommonly long name for one single level"
    schema = Schema((Categorical("town", ("a", long)),))
    ax = plot_changes(explanation({"town": long}, schema=schema, reference=None))
    assert "an uncommonly long name for one s…" in words(ax)


def test_an_answer_without_changes() -> None:
    ax = plot_changes(explanation({"rooms": 3}), which=1)
    assert "Nothing has to change." in words(ax)
    assert ax.get_legend() is None


def test_without_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "ifonly\[plots\]"'):
        plot_changes(explanation({"rooms": 3}))
