"""How fast an answer and its proof are, side by side with every peer; run with ``python -m benchmarks.speed``."""
