"""What code writes beside the summaries: instructions, requests, actions and exact values, in one row of notes."""
