"""Makes summaries: the registry of known summaries, the provider's call, checks of its answer, prompts."""
