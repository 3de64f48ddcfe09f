"""Makes one summary: tasks, requests, validation, failures, prompts, usage."""
