"""The page on privacy names every file that a session leaves, and who may read them."""

from __future__ import annotations

import re
from pathlib import Path

from amplifier_core.testing import MockCoordinator

from context_summarize import SummarizingContextManager
from context_summarize.stores import open_store
from context_summarize.testing import ScriptedProvider
from tests.support.paths import ROOT
from tests.support.rows import tool_session

PAGE = (ROOT / "docs" / "privacy.md").read_text("utf-8")


def _left(folder: Path) -> set[str]:
    """Names of the files, with DATE for the date of an archive; all for the user alone."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} <= {0o600}
    return {re.sub(r"\.\d{4}-[^.]+\.\w+\.", ".DATE.", path.name) for path in files}


async def test_the_page_names_every_file_of_a_session(tmp_path: Path) -> None:
    """A short session leaves its history alone, a long one summaries; what was cleared stays in an archive."""
    store = open_store(str(tmp_path / "context-summarize" / "summaries.db"))
    path = tmp_path / "histories" / "NAME.jsonl"
    settings = {"persistence": {"path": path}, "announce": False}
    manager = SummarizingContextManager(MockCoordinator(), store=store, config=settings)
    provider = ScriptedProvider(then="Goal: orders.", context_window=12_000, max_output_tokens=1_000)
    rows = tool_session(60, size=800)
    await manager.set_messages(rows[:4])
    await manager.get_messages_for_request(provider=provider)
    short = _left(tmp_path)
    await manager.set_messages(rows)
    await manager.get_messages_for_request(provider=provider)
    open_ = _left(tmp_path)
    await manager.clear()
    await manager.close()
    assert short == {"NAME.jsonl", "NAME.jsonl.lock"}
    assert open_ - short == {"summaries.db", "summaries.db-wal", "summaries.db-shm"}
    assert _left(tmp_path) == {*short, "summaries.db", "NAME.DATE.jsonl"}
    for named in ("summaries.db`", "`summaries.db-wal`", "`-shm`", "`….lock`", "`NAME.DATE.jsonl`"):
        assert named in PAGE
