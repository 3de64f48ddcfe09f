"""The meter and providers that chain on their server: their figures hold earlier requests too."""

from __future__ import annotations

from itertools import accumulate

import pytest

from context_summarize.tokens.calibration import Meter

TOOLS = 9_000


def told(meter: Meter, estimate: int, actual: int, *, may_chain: bool = True) -> bool:
    meter.served(estimate, may_chain=may_chain)
    return meter.observe({"input_tokens": actual})


@pytest.mark.parametrize("growth", [200, 1_000, 5_000])
@pytest.mark.parametrize("tools", [0, TOOLS])
def test_a_chain_does_not_move_the_measuring(growth: int, tools: int) -> None:
    """Each figure is the whole chain: what was sent in every request since its beginning."""
    meter, views = Meter(), [4_000 + growth * turn for turn in range(40)]
    assert told(meter, views[0], views[0] + tools, may_chain=False)
    for view, chain in zip(views[1:], list(accumulate(views))[1:], strict=True):
        told(meter, view, chain + tools)
        assert meter.correct(view) == pytest.approx(view + tools, rel=0.01)


def test_a_chain_that_is_taken_up_from_an_earlier_process_says_nothing() -> None:
    """Nothing was measured before; the first figures are those of the restored chain."""
    meter = Meter()
    for turn in range(10):
        assert not told(meter, 5_000 + 400 * turn, 60_000 + 5_000 * turn)
    assert meter.correct(5_000) == 5_000


@pytest.mark.parametrize("before", [[], [5_000]], ids=["from the start", "later on"])
def test_tools_are_learned_from_the_second_figure_where_rows_carry_ids(before: list[int]) -> None:
    """Their share stays as large as it is, and that of a chain does not."""
    meter = Meter()
    for view in before:
        assert told(meter, view, view, may_chain=False)
    assert not told(meter, 6_000, 6_000 + TOOLS)
    assert told(meter, 6_300, 6_300 + TOOLS)
    assert meter.correct(6_500) == pytest.approx(6_500 + TOOLS, rel=0.02)


def test_after_a_compaction_the_chain_is_cut_and_the_figure_counts() -> None:
    meter = Meter()
    assert told(meter, 5_000, 5_000, may_chain=False)
    assert not told(meter, 6_000, 11_000)
    assert told(meter, 3_000, 3_600, may_chain=False)
    assert meter.correct(3_000) == 3_600


class Chaining:
    """A server that restores what was sent and answered; it counts `ratio` for a token of ours, and its tools once."""

    ANSWER = 300

    def __init__(self, ratio: float, system: int = 0) -> None:
        self.meter = Meter()
        self._ratio = ratio
        self._system = system
        self._restored = 0.0

    def own(self, conversation: int) -> float:
        """What it counts for a request without a chain."""
        return TOOLS + self._ratio * (self._system + conversation)

    def asked(self, conversation: int, *, may_chain: bool = True) -> bool:
        """A request whose instructions are not carried over; True if its figure was taken."""
        actual = round(self.own(conversation) + self._restored)
        self.meter.served(self._system + conversation, system=self._system, may_chain=may_chain)
        self._restored += self._ratio * conversation + self.ANSWER
        return self.meter.observe({"input_tokens": actual, "output_tokens": self.ANSWER})

    def begin(self) -> None:
        """A new chain, as after a compaction."""
        self._restored = 0.0


@pytest.mark.parametrize("ratio", [0.75, 1.0, 1.4])
def test_the_growth_of_a_chain_tells_the_ratio(ratio: float) -> None:
    """Of a provider that chains no figure but the first is that of a single view."""
    server = Chaining(ratio)
    server.asked(2_000, may_chain=False)
    for conversation in range(3_000, 40_000, 500):
        assert not server.asked(conversation)
    for conversation in (5_000, 20_000, 60_000):
        assert server.meter.correct(conversation) == pytest.approx(server.own(conversation), rel=0.02)


def test_a_short_conversation_behind_long_instructions_is_known_as_chained() -> None:
    """After a compaction summaries take most of a view, and no chain repeats them: its figures exceed by little."""
    server = Chaining(1.0, system=6_000)
    assert server.asked(1_000, may_chain=False)
    for conversation in range(1_100, 5_000, 100):
        assert not server.asked(conversation)
    server.begin()
    assert server.asked(900, may_chain=False)
    assert not server.asked(1_000)
    assert server.meter.correct(26_000) == pytest.approx(server.own(20_000), rel=0.02)


def test_figures_without_the_answers_between_them_give_the_same_ratio() -> None:
    """Some loops tell the input tokens alone."""
    meter, restored = Meter(), 0
    for view in range(2_000, 20_000, 500):
        told(meter, view, TOOLS + round(0.8 * view) + restored, may_chain=view > 2_000)
        restored += round(0.8 * view) + 100
    assert meter.correct(60_000) == pytest.approx(TOOLS + 48_000, rel=0.02)


def test_a_chain_whose_reasoning_is_not_restored_tells_nothing() -> None:
    """Its figures grow by less than was answered, now more and now less: that is no ratio."""
    meter, chain = Meter(), 0
    told(meter, 2_000, 2_000, may_chain=False)
    for turn, view in enumerate(range(2_500, 12_000, 250)):
        meter.served(view, may_chain=True)
        chain += view
        meter.observe({"input_tokens": 2_000 + chain, "output_tokens": (0, 2_400, 900, 100, 1_700)[turn % 5]})
    assert meter.correct(10_000) == pytest.approx(10_000, rel=0.02)


def test_a_chain_beyond_what_tools_could_be_is_still_that_of_the_view() -> None:
    """Whoever calls after it is a helper, and its figure is not taken for the view's."""
    server = Chaining(1.0)
    server.asked(2_000, may_chain=False)
    for conversation in range(30_000, 40_000, 1_000):
        server.asked(conversation)
    assert not server.meter.observe({"input_tokens": 39_000, "output_tokens": 10})


class TestForegroundUsage:
    """A loop that knows which response was for the view says so itself."""

    def test_a_claimed_view_is_measured_by_its_recorder_alone(self) -> None:
        meter = Meter()
        meter.served(10_000)
        record = meter.claim()
        assert not meter.observe({"input_tokens": 17_000})
        assert record(input_tokens=9_000, cache_write_tokens=3_000)
        assert meter.correct(10_000) == 12_000

    def test_the_next_view_is_heard_of_by_events_again(self) -> None:
        meter = Meter()
        meter.served(10_000)
        meter.claim()
        meter.served(11_000)
        assert meter.observe({"input_tokens": 12_000})

    def test_a_claim_before_any_view_records_nothing(self) -> None:
        assert not Meter().claim()(input_tokens=5)
