"""Where compactions begin, by what cannot shrink: prompts, tools, newest rows; and what is shortened for it."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any
from unittest.mock import AsyncMock

import pytest
from amplifier_core.message_models import ChatRequest

from context_summarize.testing import ScriptedProvider
from tests.support.gated import answer, shortened
from tests.support.managed import Managed
from tests.support.rows import call, result, user
from tests.support.virtual import run_virtually

WORDS = "the line of a file that an agent reads "


class Reader(Managed):
    """An agent that reads one file after another, with a request before each."""

    def __init__(self, window: int, output: int = 0, *, then: Any = answer, **settings: Any) -> None:
        sizes: dict[str, Any] = {"context_window": window, "max_output_tokens": output}
        super().__init__(provider=lambda: ScriptedProvider(then=then, **sizes), **{"prefetch": False, **settings})
        self.sizes: list[int] = []

    async def prompted(self, tokens: int) -> Reader:
        """The same, with a system prompt of so many tokens."""
        prompt = "a rule of the house " * (tokens // 5)
        await self.manager.set_system_prompt_factory(AsyncMock(return_value=prompt))
        return self

    async def read(self, times: int, *tokens: int, pause: float = 0) -> Reader:
        """Files of these sizes in turn."""
        await self.add([user("Please read all files.")])
        for at in range(times):
            text = f"{at}: " + WORDS * (tokens[at % len(tokens)] // 9)
            await self.add([call(f"c{at}", "read", path=f"src/{at}.py"), result(f"c{at}", text, "read")])
            await self.view()
            self.sizes.append(await self.manager.get_token_count())
            await asyncio.sleep(pause)
        return self

    @property
    def made(self) -> list[dict[str, Any]]:
        """The compactions, as hosts hear of them."""
        return list(self.host.of("context:compaction"))

    @property
    def shortened(self) -> int:
        return sum(data["shortened"] for data in self.host.of("context:post_compact"))

    @property
    def reasons(self) -> list[str]:
        return [data["reason"] for data in self.host.of("context:pre_compact")]


@pytest.mark.parametrize(("window", "tokens"), [(31_000, 3_500), (41_000, 2_500)])
async def test_between_two_compactions_a_request_grows_by_half_of_what_the_first_left_free(window, tokens):
    """Whatever cannot shrink: the newest rows take more than half of a small window, or a third of the budget."""
    reader, budget = await Reader(window).read(45, tokens), window - 1_000
    assert max(reader.sizes) <= budget
    assert len(reader.made) > 3
    for before, after in itertools.pairwise(reader.made):
        grown, free = after["before_tokens"] - before["after_tokens"], budget - before["after_tokens"]
        assert grown >= 0.5 * free or after["before_tokens"] > budget
    assert reader.shortened > 0 or window > 31_000


async def test_a_large_prompt_beside_much_output_leaves_room_for_the_conversation():
    """A window of 200,000 of which the model may write 128,000, and a prompt of 40,000: shares are of what is left."""
    reader = await (await Reader(200_000, 128_000).prompted(40_000)).read(40, 3_000, 9_000)
    assert max(reader.sizes) <= 149_000
    assert reader.made
    assert min(one["before_tokens"] for one in reader.made) - 40_000 >= 0.65 * (149_000 - 40_000)
    assert max(one["after_tokens"] for one in reader.made) - 40_000 <= 0.35 * (149_000 - 40_000)
    assert min(one["target_tokens"] for one in reader.made) > 40_000


@pytest.mark.parametrize(
    ("settings", "times", "tokens", "least", "most"),
    [({"compact_threshold": [0.65, 20_000]}, 60, 1_000, 20_000, 26_000), ({}, 16, 30_000, 90_000, 169_000)],
    ids=["small rows", "a few large ones, and the default"],
)
async def test_a_threshold_in_tokens_holds_in_a_window_of_a_million(settings, times, tokens, least, most):
    """All else follows it: what summaries may take, and how full a base makes the next compaction wait."""
    reader = await Reader(1_000_000, **settings).read(times, tokens)
    assert len(reader.made) > 2
    for one in reader.made:
        assert least <= one["before_tokens"] < most
        assert one["after_tokens"] < 0.7 * least


async def test_no_result_below_the_limit_is_shortened_while_a_request_fits():
    reader = await Reader(31_000, shorten_tool_results=2_000).read(40, 1_500)
    assert reader.made
    assert reader.shortened == 0


async def test_a_session_goes_on_at_its_threshold_after_a_compaction_on_demand():
    """Which ended within a segment: the next one begins there."""
    reader = await Reader(41_000).read(12, 1_000)
    assert await reader.manager.compact() > 0
    await reader.read(60, 1_000)
    assert len(reader.reasons) > 2
    assert reader.reasons == ["manual", *["threshold"] * (len(reader.reasons) - 1)]


@pytest.mark.parametrize("sizes", [[4_600, 3_800, 3_800], [6_000, 3_900]], ids=["few long results", "many"])
def test_however_slow_the_summariser_a_compaction_frees_a_quarter_of_the_request(sizes):
    """It breaks the prompt cache: to shorten one result of a request that is nearly full is not worth that."""

    async def slow(request: ChatRequest) -> str:
        await asyncio.sleep(45)
        return shortened(request)

    async def work() -> list[dict[str, Any]]:
        reader = Reader(100_000, then=slow, prefetch=True, clock=asyncio.get_running_loop().time)
        await reader.read(60, *sizes, pause=2)
        await reader.manager.close()
        return reader.made

    made = run_virtually(work())
    assert made
    assert [data for data in made if data["before_tokens"] - data["after_tokens"] < data["before_tokens"] / 4] == []


async def test_a_compaction_soon_after_another_waits_until_the_request_does_not_fit():
    """Where little room is left beside the prompt, each break of the cache has to last as long as it can."""
    reader = await (await Reader(27_000).prompted(8_000)).read(80, 2_000)
    assert set(reader.reasons[1:]) == {"must_fit"}
    assert len(reader.made) <= 20
    assert max(reader.sizes) <= 26_000


async def test_segments_are_as_long_as_suits_what_the_prompt_leaves_of_the_window():
    """A segment longer than the room for the conversation would stay verbatim until it is full."""
    reader = await (await Reader(101_000).prompted(70_000)).read(30, 1_000)
    assert reader.made
    assert min(len(str(request.messages)) for request in reader.provider.requests) < 4 * 8_192


async def test_a_compaction_shortens_results_among_the_newest_rows_where_it_leaves_little_room():
    """The longest first, without a setting; the newest stays whole: the model has not seen it yet."""
    reader = await Reader(31_000).read(40, 2_900)
    assert reader.made
    assert max(made["after_tokens"] for made in reader.made) <= 0.45 * 30_000
    assert "left out to save room" not in str((await reader.view())[-1]["content"])


async def test_after_an_undo_the_next_compaction_comes_where_it_would_have_come_without_an_earlier_one():
    """Those that were taken back are none that few rows have followed."""
    grown: list[int] = []
    for made in (1, 2):
        reader = Reader(41_000)
        while len(reader.made) < made:
            await reader.read(1, 2_000)
        await reader.manager.undo()
        undone = await reader.manager.get_token_count()
        while len(reader.made) < made + 2:  # the undo is told as one
            await reader.read(1, 2_000)
        grown.append((reader.made[-1]["before_tokens"] - undone) // 2_500)
    assert grown[0] == grown[1]
