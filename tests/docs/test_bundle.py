"""`bundle.md`: what it adds to a session, composed by a replica of amplifier-foundation's few lines."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # comes with amplifier-core

from context_summarize import __version__
from context_summarize.config import Config
from tests.support.paths import ROOT

BUNDLE = ROOT / "bundle.md"

FOUNDATION: dict[str, Any] = {
    "bundle": {"name": "foundation", "version": "2.1.2"},
    "session": {
        "orchestrator": {"module": "loop-streaming"},
        "context": {
            "module": "context-simple",
            "source": "git+https://github.com/microsoft/amplifier-module-context-simple@main",
            "config": {"max_tokens": 300_000, "compact_threshold": 0.8, "auto_compact": True},
        },
    },
    "tools": [{"module": "tool-filesystem", "source": "git+https://example.org/tool@main"}],
}
"""What matters here of amplifier-foundation's own bundle, at commit d0d96f7."""

USER = {"keep_recent": 20, "prompts": "coding"}
"""Settings of this module in a user's own bundle."""


def parts() -> tuple[dict[str, Any], str]:
    """Frontmatter and body, split as amplifier-foundation splits them."""
    opening, front, body = BUNDLE.read_text("utf-8").split("---\n", 2)
    assert opening == ""
    return yaml.safe_load(front), body


def composed(*bundles: dict[str, Any]) -> dict[str, Any]:
    """The mount plan of the bundles, the later over the earlier."""
    return reduce(_composed, bundles)


def _composed(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`Bundle.compose` of microsoft/amplifier-foundation at commit d0d96f7: session in depth, tools by module id."""
    tools = {tool["module"]: tool for tool in base.get("tools", [])}
    for tool in over.get("tools", []):
        tools[tool["module"]] = _merged(tools.get(tool["module"], {}), tool)
    return {"session": _merged(base.get("session", {}), over.get("session", {})), "tools": list(tools.values())}


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`deep_merge` of the same: mappings are merged in depth, lists are joined, anything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            value = _merged(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            value = [*before, *(item for item in value if item not in before)]
        merged[key] = value
    return merged


def _settings(plan: dict[str, Any]) -> Config:
    context = plan["session"]["context"]
    assert (context["module"], context["source"]) == ("context-summarize", None)
    return Config.from_mapping(context["config"])


def test_it_names_itself_and_adds_the_context_and_its_tool_alone() -> None:
    """The session's loop, providers, other tools and agents stay those of the bundles beside it."""
    front, _ = parts()
    assert front["bundle"]["name"] == "context-summarize"
    assert set(front) == {"bundle", "session", "tools"}
    assert set(front["session"]) == {"context"}
    assert front["tools"] == [{"module": "tool-context-recall"}]


def test_it_has_the_version_of_the_package_and_no_body() -> None:
    """A body is an instruction, and that of the last bundle replaces the session's system prompt."""
    front, body = parts()
    assert front["bundle"]["version"] == __version__
    assert body.strip() == ""


def test_one_line_gives_the_defaults_of_this_module() -> None:
    """Under foundation's bundle, whose settings are those of another module."""
    plan = composed(FOUNDATION, parts()[0])
    assert _settings(plan) == Config()
    assert [tool["module"] for tool in plan["tools"]] == ["tool-filesystem", "tool-context-recall"]
    assert plan["session"]["orchestrator"]["module"] == "loop-streaming"


@pytest.mark.parametrize("threshold", [0.6, 120_000, [0.5, 70_000]])
def test_the_settings_of_a_bundle_that_includes_it_win(threshold: Any) -> None:
    """A bundle is composed after its includes; a list of its own meets no other list that it would be joined with."""
    own = {"session": {"context": {"config": {**USER, "compact_threshold": threshold}}}}
    made = _settings(composed(FOUNDATION, parts()[0], own))
    assert made == Config.from_mapping({**USER, "compact_threshold": threshold})


def test_as_an_app_bundle_it_leaves_every_other_setting_of_the_user() -> None:
    """App bundles are composed last, so what it sets is all that it replaces."""
    own = {"session": {"context": {"config": {**USER, "compact_threshold": 0.6}}}}
    assert _settings(composed(FOUNDATION, own, parts()[0])) == Config.from_mapping(USER)
