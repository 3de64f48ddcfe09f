"""Removes secrets from a text: known formats, assigned secrets, users' own patterns."""
