"""What code extracts from a transcript: exact values, the ledger, user directives, fallback summaries."""
