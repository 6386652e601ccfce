"""Runtime: the deadline of a call, caches with an owner, and warning filters that threads share."""
