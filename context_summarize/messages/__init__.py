"""The shapes of rows: checks, copies and reads rows, and makes those of a view. No other folder knows the shapes."""
