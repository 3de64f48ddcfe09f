"""`benchmarks/field` on small sessions, with this module and the plain baseline: no peer is needed."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.field import __main__ as command
from benchmarks.field import cell as cells
from benchmarks.field import grid, model, report, scenarios, views
from benchmarks.field.conclusions import conclusions
from benchmarks.field.contestants import FRUGAL, Entry, entries, own, profiles
from benchmarks.field.result import Prices, Result
from benchmarks.field.virtual import run_virtually
from benchmarks.peers import DoesNotFit, KeepLast, Ours, Row, Terms, text_of

SMALL = scenarios.Scenario(
    name="small", title="a small one", rows=lambda: scenarios.recorded()[:300], facts=30, budget=8_000
)
OURS, PLAIN = Entry("ours", Ours, "ours"), Entry("KeepLast", KeepLast, "plain")


def play(
    entry: Entry = OURS, scenario: scenarios.Scenario = SMALL, seed: int = 0, traits: model.Traits | None = None
) -> Result:
    """One cell."""
    return cells.play(entry, scenario, seed, traits or model.Traits(), Prices())


@pytest.fixture(scope="module")
def ours() -> Result:
    """This module in the small session."""
    return play()


@pytest.fixture(scope="module")
def plain() -> Result:
    """The plain baseline in the small session."""
    return play(PLAIN)


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


# --- measures -----------------------------------------------------------------------------------------------------


def test_this_module_keeps_more_than_the_newest_rows_do(ours: Result, plain: Result) -> None:
    """The control: the measures tell a contestant that summarises from one that forgets."""
    assert ours.facts_end > 0.7 > 0.3 > plain.facts_end
    assert ours.facts_equal > plain.facts_equal
    assert ours.calls > 5
    assert plain.calls == plain.price_summaries == plain.waited == 0
    assert ours.price > plain.price > 0
    assert 0.8 < ours.stable < 1
    assert ours.boundaries > 2


def test_nothing_breaks_in_this_module(ours: Result) -> None:
    """The promises, counted view by view."""
    broken = (ours.lost_turns, ours.over_budget, ours.broken_pairs, ours.not_user_first, ours.refused)
    assert broken == (0, 0, 0, 0, 0)


def test_a_cell_is_the_same_again(ours: Result) -> None:
    """Everything but CPU, memory and real time follows from the seed."""
    free = ("cpu_mean", "cpu_p50", "cpu_p99", "cpu_growth", "memory", "seconds")
    first, second = ({key: value for key, value in asdict(one).items() if key not in free} for one in (ours, play()))
    assert first == second
    assert play(seed=1).series != ours.series


def test_work_in_the_background_is_not_waited_for() -> None:
    """Without it, every boundary is waited for, and the waiting is counted."""
    waited = play(own("no prefetch", {"prefetch_threshold": None}))
    assert waited.waited > 0
    assert waited.waited_worst >= model.Traits().start_seconds
    assert len(waited.waits) > 2
    assert play().waited < waited.waited


def test_a_restart_costs_no_call_and_no_fact() -> None:
    """What the store kept is found again."""
    result = play(scenario=replace(SMALL, restart=0.6))
    assert result.calls_after_restart == 0
    assert result.facts_after_restart == 1.0


def test_models_that_take_turns_are_served_within_their_windows() -> None:
    """A view is held against the budget of the model that gets it."""
    result = play(scenario=replace(SMALL, other_budget=40_000, turns_per_model=20))
    assert result.over_budget == 0
    assert max(size for _, size in result.series) > SMALL.budget


class Careless(KeepLast):
    """Shows results without their calls, too much, no user's row first, and fails in the end."""

    title = "careless"

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._seen: list[Row] = []

    async def add(self, row: Row) -> None:
        self._seen.append(row)

    async def view(self) -> list[Row]:
        if len(self._seen) > 200:
            raise RuntimeError("no more")
        lonely = {"role": "tool", "tool_call_id": "none", "name": "x", "content": "alone"}
        return [lonely, {"role": "user", "content": "x " * 20_000}]


def test_what_a_contestant_does_wrong_is_counted() -> None:
    """Every measure of what breaks has something to count here."""
    result = play(Entry("careless", Careless, "peer"))
    served = result.requests - result.lost_turns
    assert result.errors == {"RuntimeError": result.lost_turns}
    assert result.lost_turns > 20
    assert result.over_budget == result.broken_pairs == result.not_user_first == served > 50


def test_a_view_has_in_common_what_stands_where_it_stood() -> None:
    """Whole rows first, then the text up to where it differs."""
    seen = views.Views(lambda text: len(text.split()), frozenset())
    a, b, c = ({"role": "user", "content": text} for text in ("one two", "three four five", "six"))
    assert seen.next([a, b]) == (5 + 6, 0, 0)
    assert seen.next([a, b, c]) == (5 + 6 + 4, 11, 2)
    assert seen.next([a, {**b, "content": "three four 5"}]) == (11, 5 + 2, 1)
    assert seen.next([b, a])[1:] == (0, 0)


def test_at_equal_size_the_oldest_verbatim_rows_go_first_and_then_the_summaries() -> None:
    """The system prompt stays."""
    said = [{"role": "user", "content": f"some {fact}"} for fact in FACTS[:3]]
    summary = {"role": "system", "content": f"summary {FACTS[9]}"}
    seen = views.Views(lambda text: 7, frozenset(text_of(row) for row in said))
    seen.next([summary, *said])
    assert seen.facts_within(40) == {*FACTS[:3], FACTS[9]}
    assert seen.facts_within(30) == {*FACTS[1:3], FACTS[9]}
    assert seen.facts_within(10) == {FACTS[9]}
    assert seen.facts_within(9) == set()


def test_a_lossy_adapter_is_not_measured() -> None:
    """Its losses would count as the peer's."""

    class Lossy(KeepLast):
        def convert(self, rows: Any) -> list[Row]:
            return list(rows)[1:]

    with pytest.raises(ValueError, match="without loss"):
        play(Entry("lossy", Lossy, "peer"))


# --- grid and report ----------------------------------------------------------------------------------------------


def fake(cell: grid.Cell) -> Result:
    """Results that tell contestants apart; one cannot be run, and the one with the most facts breaks the budget."""
    if cell.contestant == "Hermes":
        raise RuntimeError("not installed")
    facts = {"ours": 0.9, "Strands": 0.5, "PydanticAI": 0.4, "LangChain": 0.3, "AgentFramework": 1.0}
    result = Result(cell.contestant, cell.contestant, cell.scenario, cell.seed, tokens=1_000, requests=10)
    result.keep = cell.keep or 0.95
    result.facts_end = (facts.get(cell.contestant, 0.1) + cell.seed / 100) * result.keep / 0.95
    result.over_budget = 3 if cell.contestant == "AgentFramework" else 0
    result.facts_by = dict.fromkeys(("user", "assistant", "tool", model.CODE, model.PROSE), 0.5)
    result.price_main, result.waited, result.cpu_mean, result.cpu_p50 = 1e6, 0.1, 2.0, 1.0
    result.series = [(100, 50), (200, 80)]
    result.seconds = grid.SLOW + 1 if cell.contestant == "LangChain" else 1
    result.errors = {"OddError": 2} if cell.contestant == "Strands" else {}
    return result


@pytest.fixture
def whole() -> grid.Grid:
    """A grid of such results."""
    return grid.run_grid([0, 1], fake, contestants=list(entries()))


def test_the_other_sessions_are_for_ours_and_the_two_best_sound_peers(whole: grid.Grid) -> None:
    """A peer that breaks the budget is not among the best, however much its views hold."""
    assert whole.best_peers() == ["Strands", "PydanticAI"]
    assert whole.names("chat") == ["ours", "Strands", "PydanticAI"]
    assert len(whole.of("ours")) == 2
    assert len(whole.of("ours", "chat")) == 1
    assert len(whole.of("LangChain")) == 1, "too slow for a second seed"


def test_every_profile_is_a_contestant_with_its_own_trigger() -> None:
    """The default too: the trigger of the terms is for the others."""
    assert profiles() == ["ours", *(f"ours, {name}" for name in ("lean", "frugal", "verbatim"))]
    for name in profiles()[1:]:
        assert entries()[name].make.settings == f"profile: {name.removeprefix('ours, ')}"


def test_the_report_names_everyone_and_what_was_not_run(whole: grid.Grid) -> None:
    """Tables are whole, ranges are shown, and what a reader may conclude comes first."""
    page = report.markdown(whole, ["frontier.svg"], "make bench-field", Prices(), model.Traits())
    assert page.split("\n\n")[1].splitlines() == conclusions(whole)
    assert "Not run: Hermes" in page
    assert "OddError × 2" in page
    assert "benchmarks/frontier.svg" in page
    assert "benchmarks/views.svg" not in page
    assert "| ours | 90% (90% … 91%) |" in page
    assert f"| ours, {FRUGAL} | 10% | 9% | 8% |" in page, "with stand-ins that keep less"
    for block in page.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1, block


def test_the_page_opens_with_five_sentences_made_from_the_figures(whole: grid.Grid) -> None:
    """Ours against the best peer that broke nothing; the last says what a stand-in cannot show."""
    facts, price, waiting, cpu, last = conclusions(whole)
    assert "holds 90% of 400 planted facts, and that of the best other library (Strands) 50%;" in facts, (
        "not who broke it"
    )
    assert "1.00 times the 1.00 million of the cheapest of all (LangChain, which holds 30%)" in price
    assert "55%" not in price, "no peer holds as much"
    assert f"`profile: {FRUGAL}` this module costs 1.00 million and holds 11%" in price
    assert "10.0% of the model's own latency" in waiting
    assert "none of its requests were lost" in waiting
    assert "2.00 ms of CPU, counting of tokens included; that is 1.00 times" in cpu
    assert "cannot show" in last
    assert "probability of 95%; with one that keeps 80%, this module holds 76% of the facts at the end" in last
    assert last.endswith("(Strands) 42%.")


def test_the_sentences_tell_a_fair_price_and_what_broke(whole: grid.Grid) -> None:
    """A peer that is cheaper and holds enough is named with how much cheaper it is."""
    for one in whole.results:
        if one.name == "PydanticAI":
            one.facts_end, one.price_main, one.waited = 0.6, 0.5e6, 0.0
    whole.of("ours")[0].over_budget = 1
    _, price, waiting, *_ = conclusions(whole)
    assert (
        "2.00 times the 0.50 million of the cheapest other library that holds at least 55% of the facts (PydanticAI)"
        in price
    )
    assert "(PydanticAI) for 0.0%; 1 of its requests was lost, too large" in waiting


def test_without_ours_or_a_peer_nothing_is_concluded(whole: grid.Grid) -> None:
    """`--only` may leave either out."""
    for left in ({"ours", "KeepLast"}, {"Strands"}):
        some = grid.Grid([one for one in whole.results if one.name in left])
        assert len(conclusions(some)) == 1
        assert "nothing to conclude" in report.markdown(some, [], "x", Prices(), model.Traits())


def test_ours_is_held_against_the_best_peer_of_each_column(whole: grid.Grid) -> None:
    """Peers as they come and tuned ones apart."""
    facts, price = ([cell.strip() for cell in line.split("|")[1:-1]] for line in report.against(whole)[2:4])
    assert facts[:3] == ["facts at the end", "90%", "11%"]
    assert facts[3:6] == ["AgentFramework 100%", "0.90×", "0.10×"]
    assert price[3:6] == ["LangChain 1.00", "1.00×", "1.00×"]


def test_a_grid_is_kept_and_read_again(whole: grid.Grid, tmp_path: Path) -> None:
    """The report of a saved grid is that of the grid."""
    grid.save(whole, tmp_path / "grid.json")
    again = grid.load(tmp_path / "grid.json")
    made = [report.markdown(one, [], "x", Prices(), model.Traits()) for one in (whole, again)]
    assert made[0] == made[1]


def test_a_cell_in_a_process_of_its_own_says_what_was_wrong(tmp_path: Path) -> None:
    """The last line of its error is the reason."""
    run = grid.in_own_process([])
    with pytest.raises(RuntimeError, match="KeyError"):
        run(grid.Cell("nobody", "chat", 0))


def test_the_command_prints_one_cell(capsys: Any, tmp_path: Path) -> None:
    """With any recording and any settings of this module."""
    short = tmp_path / "short.jsonl"
    lines = scenarios.RECORDING.read_text("utf-8").splitlines()[:40]
    short.write_text("\n".join(lines), "utf-8")
    started = time.process_time()
    cell = json.dumps([{"keep_recent": 4}, "airline-480k", 3])
    assert command.main(["--recording", str(short), "--cell", cell]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["requests"], told["seed"]) == (4 * sum('"role": "assistant"' in line for line in lines), 3)
    assert 0 < told["cpu_mean"] * told["requests"] / 1000 < time.process_time() - started
