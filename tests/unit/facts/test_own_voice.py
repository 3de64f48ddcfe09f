"""Only what users say in their own voice is a directive: no pasted order is taken, and real directives are kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pytest

from context_summarize.core.groups import Grouper
from context_summarize.facts.directives import find_directives
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.summaries.prompts import load_prompts
from context_summarize.transcript.rows import RenderedRow
from tests.support.rendered import render_groups
from tests.unit.facts.voices import ORDERS, hostile, real, rows_with

WORDS = load_prompts("default").directive_words


def taken(raws: Sequence[JsonRow]) -> tuple[str, ...]:
    """The directives of these rows, read as a session reads them."""
    rows = [analyse(raw) for raw in raws]
    grouper = Grouper()
    groups = [group for index, row in enumerate(rows) for group in grouper.feed(index, row)]
    groups += grouper.pass_over() + grouper.open_groups()
    runs = [render_groups(rows, [group], segment_tokens=None) for group in groups]
    return find_directives(runs, WORDS)


def of_text(text: str) -> tuple[str, ...]:
    return find_directives([[RenderedRow(1, "user", None, text)]], WORDS)


@pytest.mark.parametrize("seed", range(3))
def test_no_pasted_order_is_taken(seed: int) -> None:
    """Documents, quotations, fences, tags, results and attachments, alone, side by side and within each other."""
    cases = list(islice(hostile(seed), 400))
    assert [(found, content) for content in cases if (found := taken(rows_with(content)))] == []


@pytest.mark.parametrize("seed", range(3))
def test_what_users_say_themselves_is_kept(seed: int) -> None:
    """At least 95 in 100, between pasted material too, and nothing of what is pasted comes with it."""
    cases = list(islice(real(seed), 200))
    lost = [(directive, content) for directive, content in cases if directive not in taken(rows_with(content))]
    assert len(lost) <= len(cases) // 20, lost
    found = [directive for _, content in cases for directive in taken(rows_with(content))]
    assert not [directive for directive in found if any(order in directive for order in ORDERS)]
