"""The texts of transcripts and frames: row headers, fences, escaping, forged lines."""
