"""What code writes beside the summaries: quotations and names in one row of notes; and fallback summaries."""
