"""Where compactions begin, what they leave free, and what they free."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from typing import Any

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

    def __init__(self, window: int, *, then: Any = answer, **settings: Any) -> None:
        provider = partial(ScriptedProvider, then=then, context_window=window, max_output_tokens=0)
        super().__init__(provider=provider, **{"prefetch": False, **settings})
        self.sizes: list[int] = []

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


@pytest.mark.parametrize(
    ("settings", "times", "tokens", "least", "most"),
    [({"compact_threshold": [0.65, 20_000]}, 60, 1_000, 20_000, 26_000), ({}, 16, 30_000, 60_000, 151_000)],
    ids=["small rows", "a few large ones, and the default"],
)
async def test_a_threshold_in_tokens_holds_in_a_window_of_a_million(settings, times, tokens, least, most):
    """All else follows it: what summaries may take, and how full a base makes the next compaction wait."""
    reader = await Reader(1_000_000, **settings).read(times, tokens)
    assert len(reader.made) > 2
    for one in reader.made:
        assert least <= one["before_tokens"] < most
        assert one["after_tokens"] < 0.7 * least


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
