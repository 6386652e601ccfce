"""Data: rows and frames as people have them, the kinds of features, and the canonical vector."""
