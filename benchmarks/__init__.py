"""Benchmarks: `ifonly` side by side with other people's explainers."""
