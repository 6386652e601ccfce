"""Many rows: in memory, or as a batch that can be planned, killed, resumed, spread over machines and checked."""

from __future__ import annotations

from ifonly.batch.collecting import Collected
from ifonly.batch.folder import Batch, explain_to
from ifonly.batch.memory import explain_batch
from ifonly.batch.summary import Summary
from ifonly.batch.verifying import Verdict

__all__ = ["Batch", "Collected", "Summary", "Verdict", "explain_batch", "explain_to"]
