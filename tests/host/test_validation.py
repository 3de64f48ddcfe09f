"""Amplifier's own judgement of our modules: its inherited suites, and its validators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amplifier_core.validation import ContextValidator, ToolValidator
from amplifier_core.validation.behavioral import ContextBehaviorTests, ToolBehaviorTests
from amplifier_core.validation.structural import ContextStructuralTests, ToolStructuralTests

import amplifier_module_context_summarize
import amplifier_module_tool_context_recall
import amplifier_module_tool_context_steering
import context_summarize

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


@pytest.mark.parametrize(("kind", "package"), PACKAGES, ids=lambda value: getattr(value, "name", value))
async def test_the_validator_has_no_error_and_no_warning(kind, package):
    result = await VALIDATORS[kind]().validate(package)

    assert result.passed, result.summary()
    assert [check.message for check in result.checks if not check.passed or check.severity == "warning"] == []
    assert kind == "context" or "tool_execute" in {check.name for check in result.checks}, "a tool was looked at"
