"""Questions as values: query, goal, demands, costs, the statement of all of them, and its program."""
