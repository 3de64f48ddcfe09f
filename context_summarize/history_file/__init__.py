"""The history's own file: one JSON line a row under a header, for one session at a time."""

from context_summarize.history_file.disk import is_header
from context_summarize.history_file.session import HistoryFile, session_path

__all__ = ["HistoryFile", "is_header", "session_path"]
