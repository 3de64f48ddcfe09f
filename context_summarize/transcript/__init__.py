"""The text that a summariser reads and a frame encloses: row headers, fences, escaping, forged lines."""
