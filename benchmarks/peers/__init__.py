"""Peers: other people's explainers, each in an environment of its own, and formulations rebuilt here."""
