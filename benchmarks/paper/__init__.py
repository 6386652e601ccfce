"""The paper's comparison, rerun: its data sets, factuals and models, its metrics, and its peers' real code."""
