"""The history's own file, and the copy that hosts keep."""
