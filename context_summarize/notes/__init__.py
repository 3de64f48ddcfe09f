"""What code writes from the rows: the thread of the user's words, and fallback summaries. Pure."""
