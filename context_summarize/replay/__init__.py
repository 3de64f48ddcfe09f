"""Plays, checks and inspects a recording, and writes a report page."""
