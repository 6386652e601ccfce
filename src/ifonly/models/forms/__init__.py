"""Forms: linear, trees, networks, curves, and forms made of forms."""
