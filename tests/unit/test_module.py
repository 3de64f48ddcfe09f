"""mount() and on_session_ready(): what the host calls, on the host's own mock coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amplifier_core.testing import MockCoordinator

from context_summarize import SummarizingContextManager, TemplateError, mount, on_session_ready


async def mounted(config: Any = None) -> tuple[MockCoordinator, SummarizingContextManager, Any]:
    coordinator = MockCoordinator()
    cleanup = await mount(coordinator, config)
    manager = coordinator.get("context")
    assert isinstance(manager, SummarizingContextManager)
    return coordinator, manager, cleanup


class TestMount:
    async def test_a_wrong_prompt_set_is_an_error_at_mount(self, tmp_path: Path) -> None:
        """It names file and variable; nothing is mounted."""
        coordinator = MockCoordinator()
        with pytest.raises(TemplateError, match="nobody"):
            await mount(coordinator, {"prompts": "nobody"})
        (tmp_path / "segment.md").write_text("Write $words words.")
        with pytest.raises(TemplateError, match=r"segment\.md.*fence"):
            await mount(coordinator, {"prompts": str(tmp_path)})
        assert coordinator.mount_history == []


class TestSessionReady:
    async def test_another_context_module_is_left_alone(self) -> None:
        """A session may have mounted one in our place."""
        coordinator = MockCoordinator()
        await on_session_ready(coordinator)
        await coordinator.mount("context", object())
        await on_session_ready(coordinator)
