"""Runs that are killed at random moments: no row lost, none doubled, the same bytes. All 200: benchmarks.batch.kill."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.batch.kill import kill_batches

import questions
from batch_cases import rows

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked and found by /proc")


def test_killed_runs_end_in_the_same_bytes() -> None:
    tally = kill_batches(questions.explainer(), rows(80), kills=5, seed=1)
    assert tally.kills.total() == 5
    assert (tally.lost, tally.doubled, tally.different, tally.faults) == (0, 0, 0, 0), str(tally)
