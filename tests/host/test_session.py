"""The module in a real Amplifier session: loaded by entry point and from a source, driven by an agent loop."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from amplifier_core.events import ALL_EVENTS as KERNEL_EVENTS
from amplifier_core.testing import MockCoordinator

from context_summarize import mount, on_session_ready
from context_summarize.events import ALL_EVENTS
from tests.support.bare_host import bare_host, run_python
from tests.support.gated import SUMMARY
from tests.support.paths import ROOT
from tests.support.rows import tool_session, user
from tests.support.views import untimed

BUDGET = 5_000


async def test_a_long_session_stays_within_its_window_keeps_everything_and_tells_its_compactions(hosts):
    """Sixty prompts with a tool call each, some 60,000 tokens, through a budget of 5,000."""
    host = await hosts()
    await host.talk(60)

    assert host.tool.call_count == 60
    assert untimed(await host.context.get_messages()) == host.loop.added
    assert len(host.loop.added) == 240
    assert host.loop.problems == []
    assert await host.context.get_token_count() <= BUDGET

    pre, post, made = (host.seen(f"context:{name}") for name in ("pre_compact", "post_compact", "compaction"))
    assert len(pre) == len(post) == len(made) >= 8
    for told, compaction in zip(post, made, strict=True):
        assert told["tokens_saved"] == compaction["before_tokens"] - compaction["after_tokens"] > 0
        assert told["fallbacks"] == 0
        assert compaction["budget"] == BUDGET
        assert compaction["after_tokens"] < 0.5 * BUDGET, "below the threshold, also where only a part was ready"
    assert {(data["reason"], data["tokens"] >= 0.5 * data["budget"]) for data in pre} == {("threshold", True)}
    assert {data["attempts"] for data in host.seen("context-summarize:summary")} == {1}
    assert host.seen("context-summarize:failure") == host.seen("context-summarize:over_budget") == []
    assert any(SUMMARY in str(row["content"]) for row in host.loop.views[-1])
    assert [name for name, data in host.events if SUMMARY in str(data)] == [], "loggers write events whole"
    assert host.seen("context:include") == [], "it is for the attribution of bundles"
    await host.end()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_rows_carry_their_time_and_a_saved_session_keeps_it(hosts, tmp_path):
    """`metadata.timestamp`, as the command line saves and replays it; requests, sizes and summaries do not know it."""
    began, cache = datetime.now(UTC), {"cache": str(tmp_path / "summaries.db")}
    host = await hosts(cache)
    await host.talk(12)
    saved = await host.context.get_messages()
    times = [row["metadata"]["timestamp"] for row in saved]

    assert began - timedelta(milliseconds=1) <= datetime.fromisoformat(times[0])
    assert times == sorted(times)
    assert datetime.fromisoformat(times[-1]) <= datetime.now(UTC)
    assert "timestamp" not in str(host.loop.views)
    await host.end()

    context = (resumed := await hosts(cache)).context
    await context.set_messages(saved)
    assert await context.get_messages() == saved
    await context.get_messages_for_request(provider=resumed.provider)
    assert (await context.statistics()).from_cache > 0, "the summaries are found all the same"
    await context.set_messages([*untimed(saved[:8]), user("In between."), *untimed(saved[8:])])
    kept = [row["metadata"]["timestamp"] for row in await context.get_messages()]
    assert [*kept[:8], *kept[9:]] == times, "a repair of the host's changes no time"
    assert kept[8] > times[-1]


def instruction(text: str, role: str = "system", disposition: str = "delivered") -> dict[str, Any]:
    """context-simple (its instructions.py, version 1): fixed between the messages, and saved with them."""
    marks = {"version": 1, "source": "modes", "binding": "fixed", "disposition": disposition}
    return {"role": role, "content": text, "metadata": {"amplifier:instruction": marks}}


async def test_a_checkpoint_of_a_newer_host_is_taken_with_its_instructions_and_origins(hosts):
    """Instructions stand in requests while they are in force, and nobody's words are taken for the user's."""
    host = await hosts()
    await host.context.set_system_prompt_factory(AsyncMock(return_value="You are the clerk of an order desk."))
    made_up = {"amplifier:input": {"version": 1, "input_id": "i", "message_id": "i", "origin": "synthetic"}}
    saved = [
        *tool_session(2, size=600),
        instruction("Mode: read only."),
        instruction("Always use feet, says a mode.", "user"),
        instruction("Mode: you may write.", disposition="retired"),
        {**user("From now on always count in dozens."), "metadata": made_up},
        {**user("Reminded."), "metadata": {"ephemeral": True, "persisted": True}},
        {**user("From now on always answer in French."), "metadata": {"timestamp": "2026-11-01T10:00:00.000+00:00"}},
        *tool_session(14, size=600, start=2),
    ]
    await host.context.restore_host_checkpoint(saved)
    assert untimed(await host.context.get_messages()) == untimed(saved)

    view = await host.context.get_messages_for_request(provider=host.provider)
    assert len(host.seen("context:compaction")) == 1
    asked = "".join(str(request.messages) for request in host.provider.summary_requests)
    shown = [row["content"] for row in view]
    told = "".join(row["content"] for row in view if "notes" in (row.get("metadata") or {}))
    assert "Mode: read only." in shown
    assert "Always use feet, says a mode." in shown
    assert "Mode: you may write." not in shown
    assert "Mode: " not in asked
    assert "says a mode" not in asked + told
    assert "Reminded." in asked
    assert "dozens" in asked
    assert "dozens" not in told
    assert "French" in told


async def test_a_session_has_the_tool_recall_by_its_name_and_what_hosts_look_up(hosts):
    """Tools are mounted after the context. What only a program calls is a method of the manager."""
    host = await hosts(tools=("tool-context-recall",))
    coordinator = host.session.coordinator
    recall = coordinator.get("tools")["recall"]
    answer = await recall.execute({"messages": "1"})
    assert not answer.success
    assert answer.get_serialized_output().startswith("Error: ")

    def offered(name: str) -> Any:
        return coordinator.get_capability(f"context.{name}")

    await host.talk(4)
    assert (await recall.execute({"messages": "1"})).success
    assert (await offered("preview")()).segments > 0
    assert await offered("compact")(focus="open orders") > 0
    assert "recall(messages=" in str(await host.context.get_messages_for_request(provider=host.provider))
    assert (await offered("statistics")()).compactions == 1
    assert await offered("pin")(5) == (5,)
    assert await offered("unpin")() == ()
    assert await offered("undo")() > 0
    assert await offered("history")() == await host.context.get_messages()
    assert offered("history_authority") == "host"


async def test_a_wrong_setting_stops_the_session_with_its_name_and_remedy(hosts):
    """Before anything runs."""
    with pytest.raises(RuntimeError, match="unknown setting 'keep_recnt'; did you mean 'keep_recent'"):
        await hosts({"keep_recnt": 3})


def test_a_checkout_as_source_is_used_as_it_stands(tmp_path):
    """A fresh process, a copy of the repository as source: code and prompts come from the copy, nothing else.

    The loader finds `on_session_ready` there too, which says that a summary provider is not mounted.
    """
    checkout = tmp_path / "checkout"
    for folder in (ROOT / "context_summarize", ROOT / "prompts", *ROOT.glob("amplifier_module_*")):
        shutil.copytree(folder, checkout / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", checkout)
    shutil.copytree(ROOT / "prompts" / "default", checkout / "prompts" / "of-the-copy")

    settings = {"prompts": "of-the-copy", "summary_provider": "nobody"}
    done = run_python(bare_host(source=f"file://{checkout}", config=settings), tmp_path)

    view, used = done.stdout.splitlines()
    assert view == "[{'role': 'user', 'content': 'hello', 'metadata': {'shown_by': 'context-summarize'}}]"
    assert Path(used).is_relative_to(checkout)
    assert "'nobody' is not mounted" in done.stderr


# --- mount() ---------------------------------------------------------------------------------------------------------


def test_mount_writes_no_file_touches_no_network_and_starts_no_thread(tmp_path):
    """From `mount()` to its cleanup, by Python's own audit events; the last one shows that they are seen."""
    script = """
        import asyncio, os, re, sys, threading
        from amplifier_core.testing import MockCoordinator
        import context_summarize

        CHANGES = "socket|sqlite3|subprocess|tempfile|os.(mkdir|rename|remove|rmdir|link|symlink|truncate)"
        seen = []

        def hear(event, args):
            if re.match(CHANGES, event) or (event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
                seen.append(event)

        async def main():
            coordinator = MockCoordinator()
            sys.addaudithook(hear)
            file = {"persistence": {"path": "made/h.jsonl"}, "cache": "./a.db", "prompts": "default"}
            for config in (None, {}, file):
                before = threading.active_count()
                cleanup = await context_summarize.mount(coordinator, config)
                await context_summarize.on_session_ready(coordinator)
                begun = threading.active_count() - before
                await cleanup()
                print(begun)
            os.open(os.devnull, os.O_WRONLY)
            print(*seen, flush=True)
            os._exit(0)  # the kernel's own threads can crash an interpreter that ends

        asyncio.run(main())
    """
    assert run_python(script, tmp_path).stdout.split() == ["0", "0", "0", "open"]


async def test_mount_may_be_run_twice_on_one_coordinator():
    """The second one takes the place; each cleanup ends its own alone, and may be awaited more than once."""
    coordinator = MockCoordinator()
    ends, contexts = [], []
    for _ in range(2):
        ends.append(await mount(coordinator, {}))
        contexts.append(coordinator.get("context"))
        told = await coordinator.collect_contributions("observability.events")
        declared = [name for names in told for name in names] + [*(set(ALL_EVENTS) & set(KERNEL_EVENTS))]
        assert sorted(declared) == sorted(ALL_EVENTS), "each is declared once, by the kernel or by the mounted manager"
    (first, second), (before, after) = ends, contexts
    await before.add_message(user("kept by the first"))
    assert await after.get_messages() == []

    await first()
    await first()

    await after.add_message(user("How much does a day of rain weigh?"))
    await after.get_messages_for_request()
    size = await after.get_token_count()
    await coordinator.hooks.emit("llm:response", {"status": "ok", "usage": {"input_tokens": size + 40}})
    assert await after.get_token_count() == size + 40, "the second one still hears"
    await second()
    await second()
    assert coordinator.hooks.list_handlers("llm:response") == {"llm:response": []}
    assert len(await before.get_messages()) == len(await after.get_messages()) == 1


async def test_another_context_module_in_our_place_is_left_alone():
    coordinator = MockCoordinator()
    await on_session_ready(coordinator)
    await coordinator.mount("context", object())
    await on_session_ready(coordinator)
