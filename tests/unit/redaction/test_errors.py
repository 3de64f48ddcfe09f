"""Errors of others in the log: told without the keys that they quote."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

import pytest

from context_summarize.config import Config
from context_summarize.events import Outbox
from context_summarize.redaction import traceback_of
from context_summarize.session.system_prompt import SystemPrompt
from context_summarize.session.windows import Windows

KEY = "gh" + "p_" + "FakeNotReal0" * 3


class Broken:
    """Whatever it is asked, it fails and quotes its key."""

    def get_model_info(self):
        raise ValueError(f"401 for https://x.example/?key={KEY}")

    async def get_info(self):
        raise RuntimeError(f"\x1b[31m{KEY}\x1b[0m") from ValueError(KEY)

    async def emit(self, name, data):
        raise RuntimeError(f"Authorization: Bearer {KEY}")

    async def factory(self):
        raise KeyError(KEY)


def test_a_traceback_keeps_its_place_and_loses_its_secrets():
    try:
        raise RuntimeError(f"outer {KEY}") from ValueError(f"inner {KEY}")
    except RuntimeError as error:
        told = traceback_of(error)

    assert KEY not in told
    assert "RuntimeError: outer [redacted: GitHub token]" in told
    assert "ValueError: inner [redacted: GitHub token]" in told
    assert "test_errors.py" in told


@pytest.mark.parametrize("what", ["window", "hook", "prompt"])
def test_no_key_reaches_a_log(caplog, what):
    broken = Broken()

    async def run() -> None:
        if what == "window":
            assert await Windows(Config()).of(broken) is None
        elif what == "hook":
            outbox = Outbox(SimpleNamespace(hooks=SimpleNamespace(emit=broken.emit)))
            outbox.put("x", {})
            await outbox.flush()
        else:
            prompt = SystemPrompt(len)
            prompt.set_factory(broken.factory)
            await prompt.refresh()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())

    assert "[redacted: " in caplog.text
    assert KEY not in caplog.text
    assert all(record.exc_info is None for record in caplog.records)
