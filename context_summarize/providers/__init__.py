"""The providers of this package: one without a model, and one for servers with the Chat Completions API."""
