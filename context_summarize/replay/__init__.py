"""Recorded sessions: reads, plays and checks them, and shows a replay as a page."""

from context_summarize.replay.page import render_page
from context_summarize.replay.player import replay
from context_summarize.replay.recordings import open_recording
from context_summarize.replay.result import ReplayResult, row_text

__all__ = ["ReplayResult", "open_recording", "render_page", "replay", "row_text"]
