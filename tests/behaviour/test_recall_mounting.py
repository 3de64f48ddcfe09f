"""Which sessions get the tool `recall`, and that their summaries name it exactly where it is mounted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core.testing import MockCoordinator

from context_summarize import SummarizingContextManager, mount, on_session_ready
from context_summarize.recall import tools
from context_summarize.testing import ScriptedProvider
from tests.support.rows import feed, tool_session


class SubAgent(MockCoordinator):
    """The coordinator of a session that another one has started."""

    parent_id = "parent"


class WithoutTools(ScriptedProvider):
    """A provider whose list of what it can do has no tools."""

    def get_info(self) -> Any:
        return SimpleNamespace(capabilities=["streaming"], defaults=super().get_info().defaults)


class Unlisted(ScriptedProvider):
    """A provider that does not say what it can do."""

    def get_info(self) -> Any:
        return SimpleNamespace(capabilities=[], defaults=super().get_info().defaults)


async def names_recall(context: Any) -> bool:
    """Whether the first summary of a compacted session says how to read the originals."""
    view = await context.get_messages_for_request(6_000, ScriptedProvider())
    summaries = [row["content"] for row in view if row["metadata"].get("key")]
    assert summaries
    return "recall(messages=" in summaries[0]


@pytest.mark.parametrize(
    ("settings", "coordinator", "provider", "expected"),
    [
        ({}, MockCoordinator, ScriptedProvider, True),
        ({"recall_tool": True}, MockCoordinator, ScriptedProvider, True),
        ({"recall_tool": False}, MockCoordinator, ScriptedProvider, False),
        ({}, SubAgent, ScriptedProvider, False),
        ({"recall_tool": True}, SubAgent, ScriptedProvider, True),
        ({}, MockCoordinator, WithoutTools, False),
        ({}, MockCoordinator, Unlisted, True),
        ({"recall_tool": True}, SubAgent, WithoutTools, True),
    ],
)
async def test_a_session_gets_the_tool_and_its_summaries_name_it(settings, coordinator, provider, expected):
    """A host may give a session its rows before all its modules are mounted, as at a resume."""
    session = coordinator()
    cleanup = await mount(session, {"cache": "memory", "keep_recent": 4, **settings})
    await feed(session.get("context"), tool_session(12, size=800))
    await session.mount("providers", provider(), name="main")

    await on_session_ready(session)

    assert ("recall" in (session.get("tools") or {})) == expected
    assert await names_recall(session.get("context")) == expected
    await cleanup()


@pytest.mark.parametrize("setting", ["auto", True, False])
async def test_the_tools_own_module_is_left_in_place_and_the_summaries_name_it(setting):
    session = MockCoordinator()
    cleanup = await mount(session, {"cache": "memory", "keep_recent": 4, "recall_tool": setting})
    await feed(session.get("context"), tool_session(12, size=800))
    await tools.mount(session)
    own = session.get("tools")["recall"]

    await on_session_ready(session)

    assert session.get("tools")["recall"] is own
    assert await names_recall(session.get("context"))
    await cleanup()


@pytest.mark.parametrize(("settings", "expected"), [({}, False), ({"recall_tool": True}, True)])
async def test_without_a_host_summaries_name_the_tool_only_if_that_is_set(settings, expected):
    manager = SummarizingContextManager(cache="memory", keep_recent=4, **settings)
    await feed(manager, tool_session(12, size=800))
    await manager.prepare()

    assert await names_recall(manager) == expected
    await manager.close()
