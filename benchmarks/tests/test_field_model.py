"""What `benchmarks/field` is made of: virtual time, planted facts, the stand-in for a model, and the sessions."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from benchmarks.field import model, scenarios
from benchmarks.field.virtual import run_virtually
from benchmarks.peers import DoesNotFit, text_of

# --- virtual time -------------------------------------------------------------------------------------------------


def test_virtual_hours_pass_at_once_and_side_by_side(no_hang: Any) -> None:
    """A sleep costs no time, sleeps side by side take the longest, and the clock shows it."""

    async def main() -> tuple[float, list[str]]:
        order: list[str] = []

        async def nap(hours: float, name: str) -> None:
            await asyncio.sleep(hours * 3600)
            order.append(name)

        await asyncio.gather(nap(3, "late"), nap(1, "early"))
        return asyncio.get_running_loop().time(), order

    assert run_virtually(main()) == (3 * 3600, ["early", "late"])


def test_work_for_a_thread_is_done_before_time_passes(no_hang: Any) -> None:
    """`asyncio.to_thread` gives its result, or its error, at the moment at which it was asked for."""

    def fails() -> None:
        raise LookupError("no")

    async def main() -> tuple[str, float]:
        timer = asyncio.create_task(asyncio.sleep(5))
        found = await asyncio.to_thread(str.upper, "done")
        at = asyncio.get_running_loop().time()
        with pytest.raises(LookupError):
            await asyncio.to_thread(fails)
        await timer
        return found, at

    assert run_virtually(main()) == ("DONE", 0.0)


# --- facts and the stand-in ---------------------------------------------------------------------------------------


def test_facts_are_spread_over_roles_kinds_and_the_session() -> None:
    """Every fact stands once, whole, in a row of its role; the seed decides where; nothing else is changed."""
    rows = scenarios.recorded()
    planted, facts = model.plant(rows, 90, seed=1)
    for fact in facts:
        assert planted[fact.row]["role"] == fact.role
        assert fact.value in model.facts_in(text_of(planted[fact.row]))
    assert len({fact.value for fact in facts}) == 90
    assert {role: sum(fact.role == role for fact in facts) for role in ("user", "assistant", "tool")} == dict.fromkeys(
        ("user", "assistant", "tool"), 30
    )
    assert sum(fact.kind == model.CODE for fact in facts) == 45
    assert min(fact.row for fact in facts) < len(rows) / 10 < len(rows) * 0.9 < max(fact.row for fact in facts)
    assert sum(row != before for row, before in zip(planted, rows, strict=True)) <= 90
    assert model.plant(rows, 90, seed=1) == (planted, facts)
    assert model.plant(rows, 90, seed=2) != (planted, facts)
    assert scenarios.recorded() == rows, "the rows that were handed in are not changed"


def test_a_recording_that_holds_what_reads_like_a_fact_is_refused() -> None:
    """Otherwise facts would be counted that nobody planted."""
    with pytest.raises(ValueError, match="reads like a planted fact"):
        model.plant([{"role": "user", "content": "It is FACT-0001-AAAA."}], 1, seed=0)


def ask(shown: str, *args: Any, seed: int = 0, traits: model.Traits | None = None) -> tuple[str, float, model.StandIn]:
    """The stand-in's answer, the virtual seconds that it took, and the stand-in."""
    stand_in = model.StandIn(lambda text: len(text.split()), traits or model.Traits(), seed)

    async def main() -> tuple[str, float]:
        return await stand_in.ask(shown, *args), asyncio.get_running_loop().time()

    return (*run_virtually(main()), stand_in)


FACTS = [f"FACT-{at:04d}-0A0A" for at in range(400)]


def test_the_stand_in_keeps_its_share_of_facts_in_its_share_of_the_length() -> None:
    """About 19 of 20 facts, a sixth of the length, latency by the tokens; the same for the same input and seed."""
    shown = " ".join(
        f"some words of talk that say little, nothing more than {fact} and that is all of it" for fact in FACTS
    )
    text, seconds, stand_in = ask(shown)
    (call,) = stand_in.calls
    kept = model.facts_in(text)
    assert 0.9 < len(kept) / 400 < 0.99
    assert 0.8 * call.read / 6 < call.wrote <= call.read / 6
    assert seconds == pytest.approx(stand_in.traits.seconds(call.read, call.wrote))
    assert ask(shown)[0] == text
    assert ask(shown, seed=1)[0] != text
    assert model.facts_in(ask("talk " * 5_000)[0]) == frozenset(), "filler holds no fact"


def test_the_stand_in_writes_as_much_as_it_is_asked_for() -> None:
    """A length in the prompt and a limit of the request are kept to; facts that find no room are lost."""
    shown = " ".join(f"talk about this and that and {fact}" for fact in FACTS)
    short, _, _ = ask(shown, "Use at most 60 words, please.")
    assert 40 <= len(short.split()) <= 80
    assert 30 < len(model.facts_in(short)) <= 80
    assert len(ask(shown, "", 30)[0].split()) <= 30


def test_the_stand_in_refuses_what_its_window_does_not_hold() -> None:
    """As a provider does; the call is counted."""
    stand_in = model.StandIn(len, model.Traits(window=1_000))
    with pytest.raises(DoesNotFit, match="too long"):
        run_virtually(stand_in.ask("x" * 1_001))
    assert [call.refused for call in stand_in.calls] == [True]


# --- sessions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(scenarios.scenarios()))
def test_every_session_has_whole_pairs_and_room_for_its_facts(name: str) -> None:
    """Call ids do not repeat, every call is answered, and the facts can be planted."""
    scenario = scenarios.scenarios()[name]
    rows = scenario.rows()
    made = [call["id"] for row in rows for call in row.get("tool_calls") or []]
    told = [row["tool_call_id"] for row in rows if row["role"] == "tool"]
    assert len(set(made)) == len(made)
    assert sorted(made) == sorted(told)
    assert [row["role"] for row in rows].count("system") <= 1
    assert len(model.plant(rows, scenario.facts, 0)[1]) == scenario.facts


def test_copies_of_the_recording_differ_in_their_ids_and_keep_their_sense() -> None:
    """A reservation code of the second copy is another one, and the same one throughout."""
    one, two = scenarios.recorded(), scenarios.recorded(copies=2)
    second = two[len(one) :]
    assert two[: len(one)] == one
    changed = [row for row, before in zip(second, one[1:], strict=True) if row != before]
    assert len(changed) > 500
    assert json.dumps(one).count("mia_li_3668") == json.dumps(second).count("mia_li_6991") > 1
