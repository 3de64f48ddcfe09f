"""Errors of others in the log: told without the keys that they quote, and without control characters."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.support.recorder import Clock
from tests.support.rows import tool_session

KEY = "gh" + "p_" + "FakeNotReal0" * 3


class Broken(ScriptedProvider):
    """Whatever it is asked, it fails and quotes its key; hooks and a system prompt as well."""

    async def complete(self, request: Any, **kwargs: Any) -> Any:
        raise ValueError(f"401 for \x1b[31m\0 https://x.example/?key={KEY}")

    async def get_model_info(self) -> Any:
        raise RuntimeError(f"\x1b[31m{KEY}\x1b[0m") from ValueError(KEY)

    async def emit(self, name: str, data: object) -> None:
        raise RuntimeError(f"Authorization: Bearer {KEY}")

    async def factory(self) -> str:
        raise KeyError(KEY)


async def test_no_key_and_no_control_character_reaches_a_log(caplog):
    """Of a provider, its window, a hook and a system prompt."""
    caplog.set_level(logging.DEBUG, "context_summarize")
    broken, clock = Broken(), Clock()
    host: Any = SimpleNamespace(hooks=broken, get=lambda _: None)
    made = SummarizingContextManager(host, keep_recent=2, segment_tokens=64, clock=clock, sleep=clock.sleep)
    await made.set_system_prompt_factory(broken.factory)
    await made.set_messages(tool_session(12))
    await made.get_messages_for_request(900, broken)
    await made.get_messages_for_request(None, broken)
    await made.close()

    for said in ("KeyError", "Authorization", "https://x.example", "RuntimeError", "test_errors.py"):
        assert said in caplog.text, said
    assert KEY not in caplog.text
    assert "401 for \\x1b[31m\\x00 https://" in caplog.text
    assert all(char.isprintable() or char == "\n" for record in caplog.records for char in record.getMessage())
    assert all(record.exc_info is None for record in caplog.records)
