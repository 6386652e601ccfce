"""One module per framework; each is found by discovery and imports its framework only inside functions."""
