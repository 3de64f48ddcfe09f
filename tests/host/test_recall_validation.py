"""Amplifier's own judgement of the recall tool as a module of its own: its inherited suites and its command."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from amplifier_core.testing import MockCoordinator
from amplifier_core.validation import ToolValidator
from amplifier_core.validation.behavioral import ToolBehaviorTests
from amplifier_core.validation.structural import ToolStructuralTests

import amplifier_module_tool_context_recall
from amplifier_module_tool_context_recall import mount
from context_summarize.recall_tool import RecallTool
from tests.support.session import Host

PACKAGE = Path(amplifier_module_tool_context_recall.__file__).parent

COMMAND = """
import atexit, sys, time
from importlib.metadata import entry_points

atexit.register(time.sleep, 0.2)
sys.argv[0] = "amplifier-core"
[command] = entry_points(group="console_scripts", name="amplifier-core")
command.load()()
"""
"""The console script `amplifier-core`, and the moment that its kernel's thread needs before the interpreter ends."""


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
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "validate", "tool", str(PACKAGE)],
        cwd=tmp_path,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout
    assert "Tool 'recall' implements Tool interface" in done.stdout
    assert list(tmp_path.iterdir()) == []


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
