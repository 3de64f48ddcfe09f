"""Pure functions and values: groups, segments, keys, nodes, the log, plan, view. No function awaits."""
