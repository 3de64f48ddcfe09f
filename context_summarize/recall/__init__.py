"""Summarised messages are read back: query, search, reader, tool."""
