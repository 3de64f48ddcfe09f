"""The rows that code writes: quotations and names in one row of notes; and fallback summaries."""
