"""Examines a model on a recorded session: it asks questions, answers from three views of the session, and grades."""
