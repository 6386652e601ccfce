"""The hard regime, where proofs are slow or missing, beside exact peers; run with ``python -m benchmarks.hard``."""
