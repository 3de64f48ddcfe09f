"""Pure functions and values: groups, segments, keys, nodes, history, plan, view. Nothing here awaits."""
