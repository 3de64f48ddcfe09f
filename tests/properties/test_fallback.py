"""For every input: fallback summaries and ledgers keep to their size, facts are the same again, transcripts parse."""

from __future__ import annotations

import re

from context_summarize.facts.extraction import coverage, extract_facts, identifiers
from context_summarize.facts.ledger import build_ledger
from context_summarize.facts.ledger_lines import format_ledger
from hypothesis import assume, given
from hypothesis import strategies as st

from context_summarize.notes.fallback import fallback_text
from context_summarize.transcript.rows import RenderedRow, parse_rendered, render_rows

any_text = st.text(st.characters(), max_size=200)  # surrogates included
pieces = st.sampled_from(
    ["HAT136 ", "$5", "src/a.py:3", '{"amount": 7', "\\", "\n", "https://x.example/y", "Error: ", "#12 ", " no ", '"',
     'call bash({"command": "ls"})\n', "\nexit code 1\n", "#2 user\n", "2024-05-20", "%", "reservation ABCDEF"]
)  # fmt: skip
texts = st.one_of(any_text, st.lists(st.one_of(pieces, any_text), max_size=12).map("".join))
rows = st.lists(
    st.builds(
        RenderedRow,
        number=st.just(1),
        role=st.sampled_from(["user", "assistant", "tool"]),
        name=st.none(),
        text=texts,
    ),
    max_size=6,
)
counters = st.sampled_from([len, lambda text: -(-len(text) // 4), lambda text: len(text.split())])
room = st.integers(1, 400)


@given(rows, room, counters)
def test_a_fallback_summary_never_exceeds_its_tokens(given_rows, max_tokens, count):
    """However small the room and whatever stands in the rows."""
    assert count(fallback_text(given_rows, max_tokens, count)) <= max_tokens


@given(rows, texts, room, counters)
def test_a_ledger_fits_is_in_order_and_holds_only_given_facts(given_rows, text, max_tokens, count):
    """A subsequence of the facts, within its tokens once formatted, at most a line a fact."""
    facts = extract_facts(given_rows)
    ledger = build_ledger(facts, text, max_tokens, count)
    shown = format_ledger(ledger)
    assert count(shown) <= max_tokens
    assert list(ledger) == [fact for fact in facts if fact in set(ledger)]
    assert len(shown.splitlines()) <= (1 + len(ledger) if ledger else 0)
    assert all(" ".join(fact.value.split()) in shown for fact in ledger)


@given(rows)
def test_facts_are_deterministic_distinct_and_carried_whole_by_a_full_ledger(given_rows):
    """The same rows give the same facts; a ledger of all of them covers all identifiers."""
    facts = extract_facts(given_rows)
    assert facts == extract_facts(given_rows)
    assert len({(fact.kind, fact.value) for fact in facts}) == len(facts)
    assert all(fact.count >= 1 and fact.value for fact in facts)
    assert all(fact.value == " ".join(fact.value.split()) for fact in identifiers(facts) if fact.kind != "amount")
    assert 0 <= coverage(facts, "") <= coverage(facts, format_ledger(facts)) <= 1


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["user", "assistant", "tool"]),
            st.none() | st.text(st.characters(exclude_characters="\n"), max_size=20),
            texts,
        ),
        max_size=6,
    ),
    st.integers(0, 10_000),
)
def test_parsing_undoes_rendering(given_rows, first):
    """Unless a text holds the very header that would follow."""
    made = [RenderedRow(first + place, role, name, text) for place, (role, name, text) in enumerate(given_rows)]
    for row in made:
        assume(not re.search(rf"^#0*{row.number + 1} (?:user|assistant|tool)", row.text, re.M))
    assert parse_rendered(render_rows(made)) == tuple(made)
