"""`bundle.md`: what it adds to a session, composed by a replica of amplifier-foundation's few lines."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # comes with amplifier-core

from context_summarize import __version__
from context_summarize.config import Config
from tests.support.paths import ROOT

_, FRONT, BODY = (ROOT / "bundle.md").read_text("utf-8").split("---\n", 2)
BUNDLE: dict[str, Any] = yaml.safe_load(FRONT)
"""Split as amplifier-foundation splits it."""

FOUNDATION: dict[str, Any] = {
    "session": {
        "context": {
            "module": "context-simple",
            "source": "git+https://github.com/microsoft/amplifier-module-context-simple@main",
            "config": {"max_tokens": 300_000, "compact_threshold": 0.8, "auto_compact": True},
        }
    },
    "tools": [{"module": "tool-filesystem"}],
}
"""What matters here of amplifier-foundation's own bundle, at commit d0d96f7."""


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`deep_merge` of microsoft/amplifier-foundation at commit d0d96f7: mappings in depth, lists joined."""
    merged = dict(base)
    for key, value in over.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            value = _merged(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            value = [*before, *(item for item in value if item not in before)]
        merged[key] = value
    return merged


def settings(*bundles: dict[str, Any]) -> Config:
    """Those of this module under bundles, the later over the earlier, all over foundation's."""
    plan = reduce(_merged, bundles, FOUNDATION)
    context = plan["session"]["context"]
    assert (context["module"], context["source"]) == ("context-summarize", None)
    assert [tool["module"] for tool in plan["tools"]] == ["tool-filesystem", "tool-context-recall"]
    return Config.from_mapping(context["config"])


def test_it_has_the_packages_version_and_no_body_and_adds_the_context_and_its_tool_alone() -> None:
    """A body is an instruction, and that of the last bundle replaces the session's system prompt."""
    assert (ROOT / "bundle.md").read_text("utf-8").startswith("---\n")
    assert BODY.strip() == ""
    assert (BUNDLE["bundle"]["name"], BUNDLE["bundle"]["version"]) == ("context-summarize", __version__)
    assert set(BUNDLE) == {"bundle", "session", "tools"}
    assert set(BUNDLE["session"]) == {"context"}
    assert BUNDLE["tools"] == [{"module": "tool-context-recall"}]


@pytest.mark.parametrize("threshold", [0.6, 120_000, [0.5, 70_000]])
def test_it_brings_its_defaults_and_settings_of_a_bundle_that_includes_it_win(threshold: Any) -> None:
    """A bundle is composed after its includes, and app bundles last: as one it replaces foundation's settings alone."""
    kept = {"keep_recent": 20, "prompts": "coding"}
    own = {"session": {"context": {"config": {**kept, "compact_threshold": threshold}}}}
    assert settings(BUNDLE) == Config()
    assert settings(BUNDLE, own) == Config.from_mapping({**kept, "compact_threshold": threshold})
    assert settings(own, BUNDLE) == Config.from_mapping(kept)
