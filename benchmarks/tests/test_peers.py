"""`benchmarks/peers`: what adapters share, this module and the baseline; peers check themselves where installed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks import peers
from benchmarks.peers import __main__ as command
from benchmarks.peers import base, check, keep_last
from context_summarize.messages.pairs import broken_pairs
from context_summarize.testing import calls, result, tool_session, user


def quarter(text: str) -> int:
    return len(text) // 4


class Model:
    """A stand-in that counts its calls and remembers what it was asked for."""

    def __init__(self, refuses: bool = False) -> None:
        self.asked: list[tuple[str, int | None]] = []
        self._refuses = refuses

    async def __call__(self, shown: str, max_output: int | None) -> str:
        self.asked.append((shown, max_output))
        if self._refuses:
            raise peers.DoesNotFit("prompt is too long")
        return "Orders were looked up, and every one of them was found."


def terms_for(model: Any = check.no_answer, **changes: Any) -> peers.Terms:
    return peers.Terms(answer=model, count=quarter, **{"budget": 6_000, **changes})


async def play(contestant: peers.Contestant, rows: list[peers.Row]) -> list[list[peers.Row]]:
    """Every view of a session."""
    views = []
    for row in rows:
        if row["role"] == "assistant":
            views.append(await contestant.view())
        await contestant.add(row)
    return views


# --- conversion -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [check.recorded(), check.hand_made()], ids=["recorded", "made by hand"])
def test_the_shared_builders_make_each_row_again_from_its_parts(rows: list[peers.Row]) -> None:
    """An adapter that keeps text, calls, names and metadata gets the row back that went in."""
    for row in rows:
        meta = row.get("metadata")
        if row["role"] == "tool":
            made = base.result(row["tool_call_id"], row["name"], base.text_of(row), meta)
        else:
            parts = [(call["id"], call["tool"], call["arguments"]) for call in base.calls_of(row)]
            made = base.spoken(row["role"], base.text_of(row), parts, meta)
        assert made == row


def test_rows_made_by_hand_cover_what_the_recording_lacks() -> None:
    """Parallel calls, metadata, empty texts and open calls are among them, and every role."""
    rows = check.hand_made()
    assert {row["role"] for row in rows} == {"system", "user", "assistant", "tool"}
    assert max(len(base.calls_of(row)) for row in rows) == 2
    assert any("metadata" in row for row in rows)
    assert {row["role"] for row in rows if not base.text_of(row)} == {"user", "assistant", "tool"}


def test_this_module_and_the_baseline_convert_without_loss() -> None:
    """The check that every adapter has to pass finds nothing."""
    assert check.problems((peers.Ours, peers.OursUserRole, peers.KeepLast)) == {}


class Lossy(peers.KeepLast):
    title = "lossy"

    def convert(self, rows: Any) -> list[peers.Row]:
        return [{key: row[key] for key in row if key != "metadata"} for row in rows]


class Absent(peers.KeepLast):
    title = "absent"

    def __init__(self, terms: peers.Terms) -> None:
        raise ModuleNotFoundError("No module named 'absent'")


def test_the_check_fails_for_a_lossy_adapter_and_for_a_peer_that_is_absent(capsys: pytest.CaptureFixture[str]) -> None:
    """The command says for whom and why, and its exit code stops a benchmark."""
    assert command.main((peers.KeepLast, Lossy, Absent)) == 1
    kept, lossy, absent = capsys.readouterr().out.splitlines()
    assert kept.startswith("ok")
    assert lossy == "FAILED  lossy: its adapter does not convert the rows made by hand without loss"
    assert absent.startswith("FAILED  absent: not installed")


def test_the_check_passes_and_names_versions_when_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, a line a contestant, and the versions."""
    assert command.main((peers.Ours, peers.KeepLast)) == 0
    assert "amplifier-core" in capsys.readouterr().out.splitlines()[-1]


def test_every_contestant_says_what_is_set_under_a_title_of_its_own() -> None:
    """Titles tell the variants apart in a table."""
    assert len({one.title for one in peers.EVERYONE}) == len(peers.EVERYONE)
    assert all(one.settings for one in peers.EVERYONE)
    assert set(peers.PEERS) == {*peers.AS_THEY_COME, *peers.TUNED}


# --- this module ----------------------------------------------------------------------------------------------------


async def test_a_restart_of_ours_costs_no_call_and_changes_no_view() -> None:
    """History and store are what a host and this module keep."""
    model = Model()
    ours = peers.Ours(terms_for(model))
    await play(ours, tool_session(40, size=800))
    before = await ours.view()
    await ours.restart()  # it ends what was under way
    made = len(model.asked)
    assert await ours.view() == before
    assert len(model.asked) == made > 0
    await ours.close()


async def test_ours_tells_the_stand_in_how_much_it_may_write_and_keeps_instructions_apart() -> None:
    """Instructions are read and paid for, but not summarised."""
    heard: list[str] = []

    class Priced(peers.Terms):
        async def ask(self, shown: str, instructions: str = "", max_output: int | None = None) -> str:
            heard.append(instructions)
            return await super().ask(shown, instructions, max_output)

    model = Model()
    ours = peers.Ours(Priced(answer=model, count=quarter, budget=6_000))
    await play(ours, tool_session(40, size=800))
    assert model.asked
    assert all(limit for _, limit in model.asked)
    assert all(heard)
    assert not any(instructions in shown for instructions, (shown, _) in zip(heard, model.asked, strict=True))
    await ours.close()


async def test_ours_serves_its_views_when_nothing_fits_the_stand_in() -> None:
    """`DoesNotFit` reaches this module as the error that providers raise."""
    model = Model(refuses=True)
    terms = terms_for(model)
    ours = peers.Ours(terms)
    views = await play(ours, tool_session(40, size=800))
    assert model.asked
    assert all(terms.size(view) <= terms.budget for view in views)
    await ours.close()


async def test_other_settings_of_ours_are_contestants_of_their_own() -> None:
    """The user role shows in its views; any key can be set."""
    rows = tool_session(40, size=800)
    views, asked = {}, {}
    for made in (peers.Ours, peers.OursUserRole, peers.ours_with("cut", compaction_strategy="truncate")):
        model = Model()
        one = made(terms_for(model))
        views[made.title] = (await play(one, rows))[-1]
        asked[made.title] = len(model.asked)
        await one.close()
    sources = {
        title: {row["role"] for row in view if (row.get("metadata") or {}).get("source") == "context-summarize"}
        for title, view in views.items()
    }
    assert sources["context-summarize"] == {"system"}
    assert sources["context-summarize, user role"] == {"user"}
    assert peers.ours_with("early", compact_threshold=0.4).settings == "compact_threshold: 0.4"
    assert asked["context-summarize"] > 0
    assert asked["cut"] == 0


# --- the baseline ---------------------------------------------------------------------------------------------------


async def test_keep_last_keeps_pairs_the_budget_and_the_system_prompt() -> None:
    """At every request of a session of calls; the newest rows are there, the oldest in the end are not."""
    rows = [{"role": "system", "content": "You help."}, *tool_session(60, size=800)]
    terms = terms_for(system="You help.")
    one = peers.KeepLast(terms)
    views = await play(one, rows)
    for view in views:
        assert view[0] == rows[0]
        assert [row["role"] for row in view].count("system") == 1
        assert not broken_pairs(view)
        assert terms.size(view) < terms.trigger_tokens
    assert views[-1][-1] == rows[-2]
    assert rows[1] not in views[-1]
    await one.restart()
    assert await one.view() == [*views[-1], rows[-1]]


async def test_keep_last_keeps_fewer_when_the_newest_do_not_fit_and_one_in_any_case() -> None:
    """A single row beyond the budget is served as it is: a provider refuses it, and the figures show that."""
    one = peers.KeepLast(terms_for(budget=1_000))
    for _ in range(5):
        await one.add(user("x" * 1_600))
    assert len(await one.view()) == 2
    await one.add(user("y" * 8_000))
    assert await one.view() == [user("y" * 8_000)]


def test_newest_groups_are_whole() -> None:
    """A cut falls before a call, never among its results."""
    rows = [user("a"), calls(("1", "t", {}), ("2", "t", {})), result("1"), result("2"), user("b")]
    assert keep_last.newest_groups(rows, 1) == rows[4:]
    assert keep_last.newest_groups(rows, 2) == rows[1:]
    assert keep_last.newest_groups(rows, 2, at_most=True) == rows[4:]
    assert keep_last.newest_groups(rows, 9) == rows
    assert keep_last.newest_groups(rows[1:4], 2, at_most=True) == []


# --- clocks ---------------------------------------------------------------------------------------------------------


async def test_a_virtual_clock_adds_up_what_is_slept() -> None:
    """Without waiting."""
    clock = peers.VirtualClock()
    assert await clock.sleep(3_600, "done") == "done"
    assert clock.now() == 3_600


async def test_the_loop_s_clock_sleeps_in_the_loop_s_time_while_sleep_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An adapter that replaces `asyncio.sleep` by the clock's does not call itself."""
    clock = peers.LoopClock()
    monkeypatch.setattr(asyncio, "sleep", clock.sleep)
    before = clock.now()
    assert await asyncio.sleep(0.001, "done") == "done"
    assert clock.now() > before
