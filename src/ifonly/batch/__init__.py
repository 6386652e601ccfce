"""Many rows: in memory, or as a batch that can be planned, killed, resumed, spread over machines and checked."""

from __future__ import annotations

from ifonly.batch.memory import explain_batch

__all__ = ["explain_batch"]
