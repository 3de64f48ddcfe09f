"""A recording is played, checked, inspected, and told as a page."""
