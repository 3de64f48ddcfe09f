"""Recorded sessions: reads, plays, checks and inspects them, and shows a replay as a page."""

from context_summarize.replay.inspection import inspect_rows
from context_summarize.replay.page import render_page
from context_summarize.replay.player import replay
from context_summarize.replay.recordings import open_recording
from context_summarize.replay.result import ReplayResult, row_text

__all__ = ["ReplayResult", "inspect_rows", "open_recording", "render_page", "replay", "row_text"]
