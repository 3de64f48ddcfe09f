"""For every window, output, budget and setting: more room never gives a smaller budget."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from context_summarize.config import Config
from context_summarize.session.windows import request_budget

TOKENS = st.one_of(st.integers(1, 20_000), st.integers(1, 2_000_000))
MAYBE = st.one_of(st.none(), TOKENS)
MOST = st.one_of(st.none(), st.integers(5_000, 20_000), st.integers(5_000, 2_000_000))
"""Upper bounds that hold any margin of these tests."""


def budget(window: int | None, output: int, given: int | None, margin: int, most: int | None) -> int:
    """Tokens of a request to a provider with this window and output."""
    config = Config(safety_margin=margin, max_tokens=most)
    provider: Any = SimpleNamespace(
        get_info=lambda: SimpleNamespace(defaults={"context_window": window, "max_output_tokens": output})
    )
    return asyncio.run(request_budget(config, given, provider if window else None))


@given(TOKENS, TOKENS, TOKENS, MAYBE, st.integers(0, 5_000), MOST)
@example(5_000, 1_000, 4_000, None, 1_000, None)
def test_a_larger_window_never_gives_a_smaller_budget(window, more, output, given, margin, most):
    small = budget(window, output, given, margin, most)
    assert 1 <= small <= budget(window + more, output, given, margin, most)
    if given is None:
        assert small <= window


@given(MAYBE, TOKENS, TOKENS, TOKENS, MOST)
def test_a_larger_token_budget_or_upper_bound_never_gives_a_smaller_budget(window, output, given, more, most):
    assert budget(window, output, given, 1_000, most) <= budget(window, output, given + more, 1_000, most)
    if most is not None:
        assert budget(window, output, given, 1_000, most) <= budget(window, output, given, 1_000, most + more)
        assert budget(window, output, None, 1_000, most) <= budget(window, output, None, 1_000, most + more)
