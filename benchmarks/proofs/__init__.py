"""Proofs replayed, and forged ones refused: ``python -m benchmarks.proofs --questions 1000 --real 100 --output page.md``."""
