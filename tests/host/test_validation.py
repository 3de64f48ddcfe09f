"""Amplifier's own judgement of the module: its inherited suites, its command, and the events that it is told of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from amplifier_core.events import ALL_EVENTS as KERNEL_EVENTS
from amplifier_core.testing import MockCoordinator
from amplifier_core.validation import ContextValidator, ToolValidator
from amplifier_core.validation.behavioral import ContextBehaviorTests
from amplifier_core.validation.structural import ContextStructuralTests

import amplifier_module_context_summarize
import amplifier_module_tool_context_recall
import amplifier_module_tool_context_steering
import context_summarize
from context_summarize import mount
from context_summarize.events import ALL_EVENTS

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

sys.argv[0] = "amplifier-core"
[command] = entry_points(group="console_scripts", name="amplifier-core")
try:
    command.load()()
except SystemExit as end:
    sys.stdout.flush()
    os._exit(end.code or 0)
"""
"""The console script `amplifier-core`, without the end of the interpreter: one run in twenty on a busy machine passes,
and then its kernel's threads make it die of a signal."""

DESIGNED_EVENTS = {
    "context:pre_compact",
    "context:post_compact",
    "context:compaction",
    "provider:resolve",
    "provider:request",
    "context-summarize:summary",
    "context-summarize:failure",
    "context-summarize:over_budget",
}


class TestBehaviour(ContextBehaviorTests):
    """Amplifier's behavioural suite for context modules."""


class TestStructure(ContextStructuralTests):
    """Amplifier's structural suite for context modules."""


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


@pytest.mark.parametrize(("kind", "package"), PACKAGES[1:3], ids=lambda value: getattr(value, "name", value))
def test_amplifier_core_validate_passes(kind, package, tmp_path):
    """`amplifier-core validate` in a process of its own and somebody else's folder; it writes nothing there."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "validate", kind, str(package)],
        cwd=tmp_path,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout
    assert kind == "context" or "' implements Tool interface" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_events_are_those_of_the_design():
    assert set(ALL_EVENTS) == DESIGNED_EVENTS
    assert len(ALL_EVENTS) == len(DESIGNED_EVENTS)


async def test_every_event_is_declared_to_the_host():
    """A host logs what modules contribute to `observability.events`, and what the kernel declares: each event once."""
    coordinator = MockCoordinator()

    cleanup = await mount(coordinator, {})
    contributions = await coordinator.collect_contributions("observability.events")
    await cleanup()

    declared = [name for names in contributions for name in names]
    assert sorted([*declared, *(DESIGNED_EVENTS & set(KERNEL_EVENTS))]) == sorted(DESIGNED_EVENTS)
