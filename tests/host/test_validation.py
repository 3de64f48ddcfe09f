"""Amplifier's own judgement of our modules: its inherited suites, its command, and the events that it is told of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amplifier_core.events import ALL_EVENTS as KERNEL_EVENTS
from amplifier_core.testing import MockCoordinator
from amplifier_core.validation import ContextValidator, ToolValidator
from amplifier_core.validation.behavioral import ContextBehaviorTests, ToolBehaviorTests
from amplifier_core.validation.structural import ContextStructuralTests, ToolStructuralTests

import amplifier_module_context_summarize
import amplifier_module_tool_context_recall
import amplifier_module_tool_context_steering
import context_summarize
from context_summarize import mount
from context_summarize.events import ALL_EVENTS
from tests.support.bare_host import run_python
from tests.support.session import SMALL, Host
from tests.support.views import nodes

PACKAGES = [
    (kind, Path(str(package.__file__)).parent)
    for kind, package in (
        ("context", context_summarize),
        ("context", amplifier_module_context_summarize),
        ("tool", amplifier_module_tool_context_recall),
        ("tool", amplifier_module_tool_context_steering),
    )
]
"""The package, and the thin ones that the source loader looks for."""
VALIDATORS: dict[str, Any] = {"context": ContextValidator, "tool": ToolValidator}
COMMAND = """
import os, sys
from importlib.metadata import entry_points

[command] = entry_points(group="console_scripts", name="amplifier-core")
for kind, package in PACKAGES:
    sys.argv = ["amplifier-core", "validate", kind, package]
    try:
        command.load()()
    except SystemExit as end:
        print("exit", end.code or 0)
sys.stdout.flush()
os._exit(0)
"""
"""The console script `amplifier-core`, without the end of the interpreter: one run in twenty on a busy machine passes,
and then its kernel's threads make it die of a signal."""


class TestBehaviour(ContextBehaviorTests):
    """Amplifier's behavioural suite for context modules."""


class TestStructure(ContextStructuralTests):
    """Amplifier's structural suite for context modules."""


class OfTheTool:
    """The package that the suites for tools load."""

    @pytest.fixture
    def module_path(self) -> Path:
        return Path(str(amplifier_module_tool_context_recall.__file__)).parent

    @pytest.fixture
    def module_type(self) -> str:
        return "tool"


class TestToolBehaviour(OfTheTool, ToolBehaviorTests):
    """Amplifier's behavioural suite for tool modules."""


class TestToolStructure(OfTheTool, ToolStructuralTests):
    """Amplifier's structural suite for tool modules."""


def test_the_inherited_suites_find_the_package(module_path, module_type):
    """Without these fixtures the suites skip themselves, and nothing would have been judged."""
    assert (module_path / "__init__.py").is_file()
    assert module_type == "context"


@pytest.mark.parametrize(("kind", "package"), PACKAGES, ids=lambda value: getattr(value, "name", value))
async def test_the_validator_has_no_error_and_no_warning(kind, package):
    result = await VALIDATORS[kind]().validate(package)

    assert result.passed, result.summary()
    assert [check.message for check in result.checks if not check.passed or check.severity == "warning"] == []
    assert kind == "context" or "tool_execute" in {check.name for check in result.checks}, "a tool was looked at"


def test_amplifier_core_validate_passes(tmp_path):
    """`amplifier-core validate` in a process of its own and somebody else's folder; it writes nothing there."""
    given = [(kind, str(package)) for kind, package in PACKAGES[1:3]]
    done = run_python(COMMAND.replace("PACKAGES", repr(given)), tmp_path)

    assert done.stdout.count("exit 0") == done.stdout.count("PASSED") == 2, done.stdout + done.stderr
    assert "' implements Tool interface" in done.stdout


async def test_a_session_loads_the_recall_tool_by_its_name_beside_the_context(monkeypatch):
    """Tools are mounted after the context; it is asked through the coordinator at each call, and the frames name it."""
    host = Host(monkeypatch, {**SMALL, "prefetch": False})
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


async def test_every_event_is_declared_to_the_host():
    """A host logs what modules contribute to `observability.events`, and what the kernel declares: each event once."""
    coordinator = MockCoordinator()
    cleanup = await mount(coordinator, {})
    contributions = await coordinator.collect_contributions("observability.events")
    await cleanup()

    declared = [name for names in contributions for name in names]
    assert declared
    assert sorted([*declared, *(set(ALL_EVENTS) & set(KERNEL_EVENTS))]) == sorted(ALL_EVENTS)
