"""Our calls for summaries as hosts see them: announced to hooks, denied by hooks, and sent to the model of a role."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core import HookResult

from tests.support.session import Host, SessionProvider


def answering(host: Host, answer: HookResult) -> None:
    """Every `provider:request` gets this answer from now on."""

    async def hear(event: str, data: dict[str, Any]) -> HookResult:
        return answer

    host.session.coordinator.hooks.register("provider:request", hear, name="answering")


async def test_each_call_for_a_summary_is_announced_as_other_helpers_calls_are(hosts):
    """Newest loop-streaming (`_evaluate_goal`) emits `provider:request` with provider and iteration 0."""
    host = await hosts({"prefetch": False, "max_concurrency": 1})
    answering(host, HookResult(action="inject_context", context_injection="Be brief."))
    await host.talk(18)

    made = len(host.provider.summary_requests)
    resolved, asked = host.seen("provider:resolve"), host.seen("provider:request")
    assert made > 0
    assert len(asked) == len(resolved) == made
    resolve = {"provider": "scripted", "model": None, "scope": "context-summarize", "basis": "request"}
    request = {"provider": "scripted", "iteration": 0, "purpose": "context-summarize"}
    assert all(data.items() >= resolve.items() for data in resolved)
    assert all(data.items() >= request.items() for data in asked)
    calls = ["provider:resolve", "provider:request", "llm:response"]
    order = [event for event, _ in host.events if event in calls]
    at = order.index("provider:resolve")
    assert order[at : at + 3] == calls
    assert len(await host.context.get_messages()) == 72, "what a hook injects belongs to no summary"


async def test_a_hook_that_denies_a_call_is_obeyed(hosts, caplog):
    """Fallbacks stand in, and it is told once."""
    host = await hosts()
    answering(host, HookResult(action="deny", reason="no helpers today"))
    caplog.set_level(logging.INFO, "context_summarize")
    await host.talk(16)

    assert host.provider.summary_requests == []
    assert host.tool.call_count == 16
    assert host.loop.problems == []
    assert {data["kind"] for data in host.seen("context-summarize:failure")} == {"denied"}
    made = [data for data in host.seen("context:post_compact") if data["segments"]]  # others went on, as they fitted
    assert made
    assert all(data["fallbacks"] > 0 for data in made)
    assert sum("no helpers today" in record.getMessage() for record in caplog.records) == 1


class Approval:
    """Answers what hooks ask the user, and notes whether a compaction waited then."""

    def __init__(self, says: str) -> None:
        self.says, self.context = says, SimpleNamespace(is_compacting=None)
        self.waited: list[Any] = []

    async def request_approval(self, prompt: str, options: list[str], *_: Any) -> str:
        self.waited.append(self.context.is_compacting)
        return self.says


@pytest.mark.parametrize(("says", "calls"), [("Allow once", True), ("Deny", False)])
async def test_a_hook_asks_the_user_while_a_request_waits_and_never_in_the_background(hosts, says, calls):
    """What is put off is no failure."""
    approval = Approval(says)
    host = await hosts(approval=approval)
    approval.context = host.context
    answering(host, HookResult(action="ask_user", approval_prompt="A helper may cost money."))
    await host.talk(12)

    assert approval.waited
    assert all(approval.waited)
    assert bool(host.provider.summary_requests) is calls
    assert {data["kind"] for data in host.seen("context-summarize:failure")} == (set() if calls else {"denied"})


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


async def with_second(hosts: Any, settings: dict[str, Any], resolver: Resolver | None) -> tuple[Host, SessionProvider]:
    """A session, and the second provider that is mounted in it."""
    host = await hosts(settings, capabilities={"model_role_resolver": resolver} if resolver else None)
    cheap = SessionProvider(host.session.coordinator.hooks)
    await host.session.coordinator.mount("providers", cheap, name="cheap")
    await host.talk(18)
    return host, cheap


@pytest.mark.parametrize(
    "settings",
    [{"summary_provider": "cheap", "summary_model": "small-1"}, {"summary_model_role": "fast"}],
    ids=["by name", "by role"],
)
async def test_the_provider_and_model_that_are_meant_write_the_summaries(hosts, settings):
    """A candidate that is not mounted is passed over; a role is resolved once, for it may ask a server."""
    resolver = Resolver(("absent", "tiny-0"), ("provider-cheap", "small-1"), ("scripted", "large-1"))
    host, cheap = await with_second(hosts, settings, resolver)

    assert resolver.asked == [role for name, role in settings.items() if name == "summary_model_role"]
    assert host.provider.summary_requests == []
    assert len(cheap.summary_requests) == len(cheap.requests) > 0
    assert {options["model"] for options in cheap.options} == {"small-1"}
    assert {data["provider"] for data in host.seen("context-summarize:summary")} == {"cheap"}


@pytest.mark.parametrize(
    ("resolver", "said"),
    [
        (None, "'fast' needs a module that resolves roles"),
        (Resolver(), "'fast' names no mounted provider"),
        (Resolver(error=OSError("no route")), "no route"),
    ],
    ids=["none mounted", "unknown role", "it fails"],
)
async def test_without_a_model_for_the_role_it_is_said_once_and_the_session_summarises(hosts, caplog, resolver, said):
    caplog.set_level(logging.ERROR, "context_summarize")
    host, cheap = await with_second(hosts, {"summary_model_role": "fast"}, resolver)

    [told] = [record.getMessage() for record in caplog.records]
    assert "summary_model_role" in told
    assert said in told
    assert cheap.requests == []
    assert {"model" in options for options in host.provider.options} == {False}
    assert len(host.provider.summary_requests) > 0
