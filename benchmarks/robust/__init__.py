"""Robust answers beside the published ones, cell by cell: ``python -m benchmarks.robust --help``."""
