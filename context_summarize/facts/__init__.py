"""What code can read out of a transcript: exact values, the ledger, user directives, fallback summaries."""
