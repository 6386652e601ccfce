"""Criteria of a good counterfactual: one file or folder each."""
