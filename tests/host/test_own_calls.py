"""Our calls for summaries as hosts see them: announced to hooks, denied by hooks, and sent to the model of a role."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core import HookResult

from tests.support.session import Host, SessionProvider

SMALL = {"safety_margin": 500, "segment_tokens": 512, "keep_recent": 6, "shorten_tool_results": None}
CALLS = ("provider:resolve", "provider:request", "llm:response")


async def watched(host: Host, answer: HookResult) -> list[tuple[str, dict[str, Any]]]:
    """What hooks hear of calls from now on, in order; every `provider:request` gets this answer."""
    heard: list[tuple[str, dict[str, Any]]] = []

    async def hear(event: str, data: dict[str, Any]) -> HookResult:
        heard.append((event, dict(data)))
        return answer if event == "provider:request" else HookResult(action="continue")

    for name in CALLS:
        host.session.coordinator.hooks.register(name, hear, name=f"watch-{name}")
    return heard


async def test_each_call_for_a_summary_is_announced_as_other_helpers_calls_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newest loop-streaming (`_evaluate_goal`) emits `provider:request` with provider and iteration 0."""
    host = await Host(monkeypatch, {**SMALL, "prefetch": False, "max_concurrency": 1}).start()
    heard = await watched(host, HookResult(action="inject_context", context_injection="Be brief."))
    rows = len(await host.context.get_messages())
    await host.talk(18)

    made = len(host.provider.summary_requests)
    resolved, asked = ([data for event, data in heard if event == name] for name in CALLS[:2])
    assert made > 0
    assert len(asked) == len(resolved) == made
    for data in resolved:
        assert {name: data[name] for name in ("provider", "model", "scope", "basis")} == {
            "provider": "scripted",
            "model": None,
            "scope": "context-summarize",
            "basis": "request",
        }
    for data in asked:
        assert {name: data[name] for name in ("provider", "iteration", "purpose")} == {
            "provider": "scripted",
            "iteration": 0,
            "purpose": "context-summarize",
        }
    order = [event for event, _ in heard]
    at = order.index("provider:resolve")
    assert order[at : at + 3] == list(CALLS)
    assert len(await host.context.get_messages()) == rows + 72, "what a hook injects belongs to no summary"
    await host.end()


async def test_a_hook_that_denies_a_call_is_obeyed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Fallbacks stand in, and it is told once."""
    host = await Host(monkeypatch, SMALL).start()
    await watched(host, HookResult(action="deny", reason="no helpers today"))
    caplog.set_level(logging.WARNING, "context_summarize")
    await host.talk(12)

    assert host.provider.summary_requests == []
    assert len(host.tool.orders) == 12
    assert host.loop.problems == []
    assert {data["kind"] for data in host.seen("context-summarize:failure")} == {"denied"}
    assert all(data["fallbacks"] > 0 for data in host.seen("context:post_compact"))
    [told] = [record.getMessage() for record in caplog.records]
    assert "no helpers today" in told
    await host.end()


class Approval:
    """Answers what hooks ask the user, and notes whether a compaction waited then."""

    def __init__(self, says: str) -> None:
        self.says, self.context = says, SimpleNamespace(is_compacting=None)
        self.waited: list[Any] = []

    async def request_approval(self, prompt: str, options: list[str], *_: Any) -> str:
        self.waited.append(self.context.is_compacting)
        return self.says


@pytest.mark.parametrize(("says", "calls"), [("Allow once", True), ("Deny", False)])
async def test_a_hook_asks_the_user_while_a_request_waits_and_never_in_the_background(
    monkeypatch: pytest.MonkeyPatch, says: str, calls: bool
) -> None:
    """What is put off is no failure."""
    approval = Approval(says)
    host = await Host(monkeypatch, SMALL, approval=approval).start()
    approval.context = host.context
    await watched(host, HookResult(action="ask_user", approval_prompt="A helper may cost money."))
    await host.talk(12)

    assert approval.waited
    assert all(approval.waited)
    assert bool(host.provider.summary_requests) is calls
    assert {data["kind"] for data in host.seen("context-summarize:failure")} <= {"denied"}
    assert bool(host.seen("context-summarize:failure")) is not calls
    await host.end()


# --- the model of a role --------------------------------------------------------------------------------------------


class Resolver:
    """The capability `model_role_resolver` as amplifier-bundle-routing-matrix 6f8d744 registers it."""

    def __init__(self, *found: tuple[str, str], error: Exception | None = None) -> None:
        self._found = found
        self._error = error
        self.asked: list[Any] = []

    async def resolve(self, model_role: str | list[str]) -> list[Any]:
        self.asked.append(model_role)
        if self._error is not None:
            raise self._error
        return [SimpleNamespace(provider=provider, model=model, config={}) for provider, model in self._found]


async def with_role(
    monkeypatch: pytest.MonkeyPatch, resolver: Resolver | None, turns: int = 18
) -> tuple[Host, SessionProvider]:
    """A session with `summary_model_role: fast`, and the second provider that is mounted in it."""
    host = Host(monkeypatch, {**SMALL, "summary_model_role": "fast"})
    if resolver is not None:
        host.capabilities["model_role_resolver"] = resolver
    await host.start()
    cheap = SessionProvider(host.session.coordinator.hooks)
    await host.session.coordinator.mount("providers", cheap, name="cheap")
    await host.talk(turns)
    await host.end()
    return host, cheap


async def test_a_role_names_the_provider_and_model_of_the_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that is not mounted is passed over; the role is resolved once, for it may ask a server."""
    resolver = Resolver(("absent", "tiny-0"), ("provider-cheap", "small-1"), ("scripted", "large-1"))
    host, cheap = await with_role(monkeypatch, resolver)

    assert resolver.asked == ["fast"]
    assert host.provider.summary_requests == []
    assert len(cheap.summary_requests) == len(cheap.requests) > 0
    assert {options["model"] for options in cheap.options} == {"small-1"}


@pytest.mark.parametrize(
    ("resolver", "said"),
    [
        (None, "'fast' needs a module that resolves roles"),
        (Resolver(), "'fast' names no mounted provider"),
        (Resolver(error=OSError("no route")), "no route"),
    ],
    ids=["none mounted", "unknown role", "it fails"],
)
async def test_without_a_model_for_the_role_it_is_said_once_and_the_session_summarises(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, resolver: Resolver | None, said: str
) -> None:
    caplog.set_level(logging.ERROR, "context_summarize")
    host, cheap = await with_role(monkeypatch, resolver)

    [told] = [record.getMessage() for record in caplog.records]
    assert "summary_model_role" in told
    assert said in told
    assert cheap.requests == []
    assert {"model" in options for options in host.provider.options} == {False}
    assert len(host.provider.summary_requests) > 0
