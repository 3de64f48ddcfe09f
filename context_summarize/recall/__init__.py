"""Reads summarised messages back: query, search, reader, tool."""
