"""Recorded sessions: reads, plays, checks and inspects them, and shows a replay as a page."""

from context_summarize.replay.page import DISTRIBUTION, check_page, render_page, write_page
from context_summarize.replay.player import replay
from context_summarize.replay.recordings import Inspection, Recording, inspect_rows, open_recording
from context_summarize.replay.result import Check, Compaction, ReplayResult, figures, row_text

__all__ = [
    "DISTRIBUTION",
    "Check",
    "Compaction",
    "Inspection",
    "Recording",
    "ReplayResult",
    "check_page",
    "figures",
    "inspect_rows",
    "open_recording",
    "render_page",
    "replay",
    "row_text",
    "write_page",
]
