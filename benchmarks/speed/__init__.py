"""Speed of an answer and its proof, side by side with every peer; run with ``python -m benchmarks.speed``."""
