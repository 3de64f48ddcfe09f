"""Where summaries are kept: memory, a file, a server, memory over either."""
