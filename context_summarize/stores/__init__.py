"""Where summaries are kept: memory, a file, a server, memory over either."""

from context_summarize.stores.layered import LayeredStore
from context_summarize.stores.memory import MemoryStore, SummaryStore
from context_summarize.stores.open import open_file, open_store, session_store
from context_summarize.stores.shared import SharedStore
from context_summarize.stores.sqlite import SqliteStore

__all__ = [
    "LayeredStore",
    "MemoryStore",
    "SharedStore",
    "SqliteStore",
    "SummaryStore",
    "open_file",
    "open_store",
    "session_store",
]
