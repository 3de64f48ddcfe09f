"""One summary, made: tasks, requests, validation, failures, prompts, usage."""
