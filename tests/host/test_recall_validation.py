"""Amplifier's own judgement of the recall tool as a module of its own: its inherited suites and its command."""

from __future__ import annotations

from pathlib import Path

import pytest
from amplifier_core.validation.behavioral import ToolBehaviorTests
from amplifier_core.validation.structural import ToolStructuralTests

import amplifier_module_tool_context_recall
from tests.support.session import Host
from tests.support.views import nodes

PACKAGE = Path(amplifier_module_tool_context_recall.__file__).parent


@pytest.fixture
def module_path() -> Path:
    return PACKAGE


@pytest.fixture
def module_type() -> str:
    return "tool"


class TestBehaviour(ToolBehaviorTests):
    """Amplifier's behavioural suite for tool modules."""


class TestStructure(ToolStructuralTests):
    """Amplifier's structural suite for tool modules."""


async def test_a_session_loads_it_by_its_name_beside_the_context(monkeypatch):
    """Tools are mounted after the context; it is asked through the coordinator at each call, and the frames name it."""
    host = Host(monkeypatch, {"segment_tokens": 512, "keep_recent": 6, "prefetch": False})
    host.config["tools"].append({"module": "tool-context-recall"})
    await host.start()

    tools = host.session.coordinator.get("tools")
    answer = await tools["recall"].execute({"messages": "1"})
    assert set(tools) == {"lookup", "recall"}
    assert not answer.success
    assert answer.get_serialized_output().startswith("Error: ")

    await host.talk(18)
    summaries = nodes(host.loop.views[-1])
    assert summaries
    assert all("recall(messages=" in row["content"] for row in summaries)
    assert (await tools["recall"].execute({"messages": "1"})).success
    await host.end()
