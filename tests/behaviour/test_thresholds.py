"""Where compactions begin, by what cannot shrink: prompts, tools, newest rows; and what is shortened for it."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from amplifier_core.message_models import ChatRequest

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.support.gated import answer, shortened
from tests.support.recorder import Recorder
from tests.support.rows import call, result, user
from tests.support.virtual import run_virtually

WORDS = "the line of a file that an agent reads "


class Reader:
    """An agent that reads one file after another, with a request before each."""

    def __init__(self, window: int, output: int = 0, **settings: Any) -> None:
        self.host = Recorder()
        self.manager = SummarizingContextManager(self.host, **settings)
        self.provider = ScriptedProvider(then=answer, context_window=window, max_output_tokens=output)
        self.sizes: list[int] = []

    async def read(self, times: int, tokens: int) -> Reader:
        await self.manager.add_message(user("Please read all files."))
        for at in range(times):
            await self.manager.add_message(call(f"c{at}", "read", path=f"src/{at}.py"))
            await self.manager.add_message(result(f"c{at}", f"{at}: " + WORDS * (tokens // 9), "read"))
            await self.manager.get_messages_for_request(provider=self.provider)
            self.sizes.append(await self.manager.get_token_count())
        return self

    @property
    def shortened(self) -> int:
        return sum(data["shortened"] for data in self.host.of("context:post_compact"))


@pytest.mark.parametrize(("window", "tokens"), [(31_000, 3_500), (41_000, 2_500)])
async def test_between_two_compactions_a_request_grows_by_half_of_what_the_first_left_free(
    window: int, tokens: int
) -> None:
    """Whatever cannot shrink: the newest rows take more than half of a small window, or a third of the budget."""
    reader = await Reader(window, prefetch=False).read(60, tokens)
    budget, made = window - 1_000, reader.host.of("context:compaction")
    assert max(reader.sizes) <= budget
    assert len(made) > 4
    for before, after in itertools.pairwise(made):
        grown, free = after["before_tokens"] - before["after_tokens"], budget - before["after_tokens"]
        assert grown >= 0.5 * free or after["before_tokens"] > budget
    assert reader.shortened > 0 or window > 31_000


async def test_a_large_prompt_beside_much_output_leaves_room_for_the_conversation() -> None:
    """A window of 200,000 of which the model may write 128,000, and a prompt of 40,000: shares are of what is left."""

    async def prompt() -> str:
        return "a rule of the house " * 8_000

    reader = Reader(200_000, 128_000, prefetch=False)
    await reader.manager.set_system_prompt_factory(prompt)
    await reader.read(80, 3_000)
    assert max(reader.sizes) <= 149_000
    made = reader.host.of("context:compaction")
    assert made
    for one in made:
        assert one["before_tokens"] - 40_000 >= 0.65 * (149_000 - 40_000)
        assert one["after_tokens"] - 40_000 <= 0.35 * (149_000 - 40_000)
        assert one["target_tokens"] > 40_000


async def test_a_threshold_in_tokens_holds_in_a_window_of_a_million() -> None:
    """All else follows it: what a compaction leaves, and what summaries may take."""
    reader = await Reader(1_000_000, compact_threshold=[0.65, 20_000], prefetch=False).read(60, 1_000)
    made = reader.host.of("context:compaction")
    assert made
    for one in made:
        assert 20_000 <= one["before_tokens"] < 26_000
        assert one["after_tokens"] < 14_000


async def test_no_result_below_the_limit_is_shortened_while_a_request_fits() -> None:
    """Also where it stays above the threshold; an event tells of those that are."""
    reader = await Reader(31_000, shorten_tool_results=2_000, prefetch=False).read(40, 1_500)
    assert reader.host.compactions
    assert reader.shortened == 0


async def test_a_session_goes_on_at_its_threshold_after_a_compaction_on_demand() -> None:
    """Which ended within a segment: the next one begins there."""
    reader = await Reader(41_000, prefetch=False).read(12, 1_000)
    assert await reader.manager.compact() > 0
    await reader.read(60, 1_000)
    reasons = [data["reason"] for data in reader.host.of("context:pre_compact")]
    assert len(reasons) > 2
    assert reasons == ["manual", *["threshold"] * (len(reasons) - 1)]


@pytest.mark.parametrize("sizes", [[4_600, 3_800, 3_800], [6_000, 3_900]], ids=["few long results", "many"])
def test_however_slow_the_summariser_a_compaction_frees_a_quarter_of_the_request(sizes: list[int]) -> None:
    """It breaks the prompt cache: to shorten one result of a request that is nearly full is not worth that."""

    async def slow(request: ChatRequest) -> str:
        await asyncio.sleep(45)
        return shortened(request)

    async def work() -> list[dict[str, Any]]:
        loop, host = asyncio.get_running_loop(), Recorder()
        manager = SummarizingContextManager(host, clock=loop.time)
        provider = ScriptedProvider(then=slow, context_window=100_000, max_output_tokens=0)
        await manager.add_message(user("Please read all files."))
        for at in range(60):
            await manager.add_message(call(f"c{at}", "read", path=f"src/{at}.py"))
            await manager.add_message(result(f"c{at}", f"{at}: " + WORDS * (sizes[at % len(sizes)] // 9), "read"))
            await manager.get_messages_for_request(provider=provider)
            await asyncio.sleep(2)
        await manager.close()
        return host.of("context:compaction")

    made = run_virtually(work())
    assert made
    assert [data for data in made if data["before_tokens"] - data["after_tokens"] < data["before_tokens"] / 4] == []


async def test_a_compaction_soon_after_another_waits_until_the_request_does_not_fit() -> None:
    """Where little room is left beside the prompt, each break of the cache has to last as long as it can."""

    async def prompt() -> str:
        return "a rule of the house " * 1_600

    reader = Reader(27_000, prefetch=False)
    await reader.manager.set_system_prompt_factory(prompt)
    await reader.read(120, 2_000)
    reasons = [data["reason"] for data in reader.host.of("context:pre_compact")]
    assert set(reasons[1:]) == {"must_fit"}
    assert reader.host.compactions <= 30
    assert max(reader.sizes) <= 26_000


async def test_segments_are_as_long_as_suits_what_the_prompt_leaves_of_the_window() -> None:
    """A segment longer than the room for the conversation would stay verbatim until it is full."""

    async def prompt() -> str:
        return "a rule of the house " * 14_000

    reader = Reader(101_000, prefetch=False)
    await reader.manager.set_system_prompt_factory(prompt)
    await reader.read(60, 1_000)
    assert reader.host.compactions
    read = [len(str(request.messages)) for request in reader.provider.requests]
    assert min(read) < 4 * 8_192


async def test_a_compaction_shortens_results_among_the_newest_rows_where_it_leaves_little_room() -> None:
    """The longest first, without a setting; the newest stays whole: the model has not seen it yet."""
    reader = await Reader(31_000, prefetch=False).read(60, 2_900)
    left = [made["after_tokens"] for made in reader.host.of("context:compaction")]
    assert left
    assert max(left) <= 0.45 * 30_000
    view = await reader.manager.get_messages_for_request(provider=reader.provider)
    assert "left out to save room" not in str(view[-1]["content"])


async def test_few_large_rows_after_a_compaction_do_not_fill_a_window_of_a_million() -> None:
    """The next compaction waits until the base is full, which the threshold in tokens bounds."""
    reader = await Reader(1_000_000, prefetch=False).read(30, 30_000)
    before = [made["before_tokens"] for made in reader.host.of("context:compaction")]
    assert len(before) > 2
    assert max(before) < 90_000 / 0.65 + 31_000


async def test_after_an_undo_the_next_compaction_comes_where_it_would_have_come_without_an_earlier_one() -> None:
    """Those that were taken back are none that few rows have followed."""
    grown: list[int] = []
    for made in (1, 2):
        reader = Reader(41_000, prefetch=False)
        while reader.host.compactions < made:
            await reader.read(1, 2_000)
        await reader.manager.undo()
        undone = await reader.manager.get_token_count()
        while reader.host.compactions < made + 2:  # the undo is told as one
            await reader.read(1, 2_000)
        grown.append((reader.host.of("context:compaction")[-1]["before_tokens"] - undone) // 2_500)
    assert grown[0] == grown[1]
