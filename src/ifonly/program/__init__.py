"""Programs: mixed-integer programs as plain arrays, scaled in one place, and the canonical vector as their variables."""
