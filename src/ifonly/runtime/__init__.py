"""Runtime: what every layer is given, and what knows none of them.

`deadline` says when a call must have ended; `memo` has caches with an owner, `later` values that are computed when somebody
looks, `fixed` mappings that do not change; `kernels` finds the compiled kernels; `tuning` has every tuned number, and
`warning_filters` those that threads share.
"""
