"""`bundle.md`: what it adds to a session, as far as it can be seen without amplifier-foundation, which PyPI has not."""

from __future__ import annotations

from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # comes with amplifier-core

from context_summarize import SummarizingContextManager
from context_summarize.config import Config
from tests.support.paths import ROOT
from tests.support.session import Host

BUNDLE = ROOT / "bundle.md"

REPLACED = {
    "module": "context-simple",
    "source": "git+https://github.com/microsoft/amplifier-module-context-simple@main",
    "config": {"max_tokens": 300_000, "compact_threshold": 0.8, "auto_compact": True},
}
"""`session.context` of amplifier-foundation's own bundle."""


def parts() -> tuple[dict[str, Any], str]:
    """Frontmatter and body, split as amplifier-foundation splits them."""
    opening, front, body = BUNDLE.read_text("utf-8").split("---\n", 2)
    assert opening == ""
    return yaml.safe_load(front), body


def composed(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """As amplifier-foundation composes two bundles: mappings are merged in depth, anything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        before = merged.get(key)
        merged[key] = composed(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def test_it_names_itself_and_touches_the_context_alone() -> None:
    """The session's loop, providers, tools and agents stay those of the bundle that includes it."""
    front, _ = parts()
    assert front["bundle"]["name"] == "context-summarize"
    assert set(front) == {"bundle", "session"}
    assert set(front["session"]) == {"context"}


def test_it_has_no_body() -> None:
    """A body is an instruction, and that of the last bundle replaces the session's system prompt."""
    _, body = parts()
    assert body.strip() == ""


def test_over_the_foundation_bundle_the_session_has_this_module_its_tool_and_its_own_defaults() -> None:
    """Nothing of the module that was there is left in force: its source would load it in our place."""
    front, _ = parts()
    context = composed(REPLACED, front["session"]["context"])
    assert context["module"] == "context-summarize"
    assert context["source"] is None
    assert Config.from_mapping(context["config"]) == Config(recall_tool=True)


def test_a_users_own_settings_win_over_those_of_the_bundle() -> None:
    """They stand in the bundle that includes it, which is composed last."""
    front, _ = parts()
    context = composed(front["session"]["context"], {"config": {"keep_recent": 20, "recall_tool": False}})
    assert Config.from_mapping(context["config"]) == Config(keep_recent=20)


async def test_a_session_mounts_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its entry point, as where there is no source; the loop is given the tool, and the session works."""
    front, _ = parts()
    host = Host(monkeypatch)
    host.config["session"]["context"] = composed(REPLACED, front["session"]["context"])
    await host.start()
    try:
        await host.talk(2)
        assert isinstance(host.context, SummarizingContextManager)
        assert set(host.session.coordinator.get("tools")) == {"lookup", "recall"}
        assert await host.context.get_messages() == host.loop.added
        assert host.loop.problems == []
    finally:
        await host.end()
