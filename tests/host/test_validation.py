"""Amplifier's own judgement of the module: its inherited suites, its command, and the events that it is told of."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from amplifier_core.events import ALL_EVENTS as KERNEL_EVENTS
from amplifier_core.testing import MockCoordinator
from amplifier_core.validation import ContextValidator
from amplifier_core.validation.behavioral import ContextBehaviorTests
from amplifier_core.validation.structural import ContextStructuralTests

import amplifier_module_context_summarize
import context_summarize
from context_summarize import SummarizingContextManager, mount
from context_summarize.events import ALL_EVENTS
from tests.support.validation import validated

PACKAGES = [Path(str(package.__file__)).parent for package in (context_summarize, amplifier_module_context_summarize)]
"""The package, and the thin one that the source loader looks for."""

DESIGNED_EVENTS = {
    "context:pre_compact",
    "context:post_compact",
    "context:compaction",
    "context:include",
    "context-summarize:summary",
    "context-summarize:failure",
    "context-summarize:over_budget",
}


class TestBehaviour(ContextBehaviorTests):
    """Amplifier's behavioural suite for context modules."""


class TestStructure(ContextStructuralTests):
    """Amplifier's structural suite for context modules."""


class TestStructureOfTheThinPackage(ContextStructuralTests):
    """The same for the package that the source loader finds."""

    @pytest.fixture
    def module_path(self):
        return PACKAGES[1]


def test_the_inherited_suites_find_the_package(module_path, module_type):
    """Without these fixtures the suites skip themselves, and nothing would have been judged."""
    assert (module_path / "__init__.py").is_file()
    assert module_type == "context"


def test_the_package_loads_from_its_file_alone(module_path):
    """The suites execute `__init__.py` by its path; its relative imports have to work there too."""
    spec = importlib.util.spec_from_file_location(module_path.name, module_path / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)

    spec.loader.exec_module(module)

    assert module.__amplifier_module_type__ == "context"
    assert module.mount is mount


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
async def test_the_validator_has_no_error_and_no_warning(package):
    result = await ContextValidator().validate(package)

    assert result.passed, result.summary()
    assert [check.message for check in result.checks if not check.passed or check.severity == "warning"] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_amplifier_core_validate_context_passes(package, tmp_path):
    """`amplifier-core validate context <package>` exits 0 in a process of its own, in somebody else's folder."""
    validated("context", package, tmp_path)


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


async def test_the_mounted_object_is_the_manager_and_no_callable():
    """Hosts call a callable instance as if it were a function, so the manager must not be one."""
    coordinator = MockCoordinator()

    cleanup = await mount(coordinator, {})
    manager = coordinator.get("context")
    await cleanup()

    assert isinstance(manager, SummarizingContextManager)
    assert not callable(manager)
    assert [entry["mount_point"] for entry in coordinator.mount_history] == ["context"]
