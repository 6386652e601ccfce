"""Search: engines in the order in which they are tried, bounds and incumbents, several answers, and blame."""
