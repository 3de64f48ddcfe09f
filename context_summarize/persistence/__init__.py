"""The history's own file, and the comparison with the copy that hosts keep."""
