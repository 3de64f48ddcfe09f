"""Secrets are taken out of a text: known formats, assigned secrets, users' own patterns."""
