"""A session's next request is a function of its rows, its texts and its newest cut: a restart changes nothing in it."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from context_summarize.errors import SteeringError
from context_summarize.testing import broken_pairs
from tests.support.effort import EXAMPLES
from tests.support.gated import Shortening
from tests.support.managed import Managed
from tests.support.recorder import Recorder
from tests.support.rows import tool_session
from tests.support.views import untimed

SMALL: dict[str, Any] = {"prefetch": False, "keep_recent": 4, "compact_threshold": 0.5}
WINDOWS = [900, 2_000, 6_000, 40_000]
STEPS = st.one_of(
    st.tuples(st.just("turns"), st.integers(1, 12)),
    st.tuples(st.just("window"), st.sampled_from(WINDOWS)),
    st.tuples(st.just("compact"), st.sampled_from([None, "the orders"])),
    st.tuples(st.just("pin"), st.integers(1, 20)),
    st.tuples(st.sampled_from(["undo", "unpin", "restart"]), st.none()),
)


class Life:
    """A session that its user steers, and that restarts now and then."""

    def __init__(self) -> None:
        self.made = Managed(6_000, provider=Shortening, host=Recorder(session_id="one"), **SMALL)
        self.turns = 0

    async def step(self, name: str, given: Any) -> None:
        manager = self.made.manager
        if name == "turns":
            await self.made.add(tool_session(given, size=120, start=self.turns))
            self.turns += given
        elif name == "window":
            self.made.budget = given
        elif name == "restart":
            self.made = await self.made.again()
        else:
            try:
                await getattr(manager, name)(*([given] if given else []))
            except SteeringError:
                pass  # nothing to take back, no such message, or no room: nothing has changed
        if name in ("turns", "window"):
            assert broken_pairs(await self.made.view()) == []


FALLEN_BACK = [
    *[("compact", "the orders"), ("restart", None), ("undo", None), ("compact", "the orders"), ("turns", 12)],
    *[("compact", "the orders"), ("undo", None)],
]
"""The cut shows a fallback although the store has the model's text."""


@given(steps=st.lists(STEPS, min_size=4, max_size=14))
@example(steps=FALLEN_BACK)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
async def test_after_a_restart_the_next_request_is_equal_and_costs_no_call(steps):
    life = Life()
    await life.step("turns", 12)
    for name, given_ in steps:
        await life.step(name, given_)
    await life.made.view()
    view, rows = await life.made.view(), await life.made.rows()
    again = await life.made.again()
    shown = await again.view()
    assert untimed(shown) == untimed(view)
    assert (again.provider.calls, again.host.compactions) == (0, life.made.host.compactions)
    assert await again.rows() == rows
    await again.manager.close()
