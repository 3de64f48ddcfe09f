"""Amplifier's own judgement of the recall tool as a module of its own: its inherited suites and its command."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from amplifier_core.testing import MockCoordinator
from amplifier_core.validation import ToolValidator
from amplifier_core.validation.behavioral import ToolBehaviorTests
from amplifier_core.validation.structural import ToolStructuralTests

import amplifier_module_tool_context_recall
from amplifier_module_tool_context_recall import mount
from context_summarize.recall.tools import RecallTool
from tests.support.session import Host
from tests.support.validation import validated

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


async def test_the_validator_has_no_error_and_no_warning():
    result = await ToolValidator().validate(PACKAGE)

    assert result.passed, result.summary()
    assert [check.message for check in result.checks if not check.passed or check.severity == "warning"] == []
    assert "tool_execute" in {check.name for check in result.checks}, "a tool was mounted and looked at"


def test_amplifier_core_validate_tool_passes(tmp_path):
    """`amplifier-core validate tool <package>` exits 0 in a process of its own, in somebody else's folder."""
    assert "Tool 'recall' implements Tool interface" in validated("tool", PACKAGE, tmp_path)


async def test_the_module_mounts_the_tool_and_nothing_else():
    coordinator = MockCoordinator()

    await mount(coordinator, None)

    assert [entry["mount_point"] for entry in coordinator.mount_history] == ["tools"]
    assert isinstance(coordinator.get("tools")["recall"], RecallTool)
    assert amplifier_module_tool_context_recall.__amplifier_module_type__ == "tool"


async def test_a_session_loads_it_by_its_name_beside_the_context(monkeypatch):
    """Tools are mounted after the context; it is asked through the coordinator at each call."""
    host = Host(monkeypatch)
    host.config["tools"].append({"module": "tool-context-recall"})
    await host.start()

    tools = host.session.coordinator.get("tools")
    answer = await tools["recall"].execute({"messages": "1"})

    assert set(tools) == {"lookup", "recall"}
    assert not answer.success
    assert answer.get_serialized_output().startswith("Error: ")
    await host.session.cleanup()
    await asyncio.sleep(0.2)  # the kernel's own thread can crash when the interpreter ends right after a session
