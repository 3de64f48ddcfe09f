"""Makes summaries: what is known and under way, the call of a provider, checks of its answer, prompts."""
