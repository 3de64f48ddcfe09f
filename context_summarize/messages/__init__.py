"""Row shapes: check, copy, read, view rows. No other folder knows them."""
