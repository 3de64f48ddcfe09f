"""Which exact values of its messages a summary holds, on sessions whose values are known."""

from __future__ import annotations

from context_summarize.core.nodes import Summary
from context_summarize.facts.fact import Fact
from context_summarize.replay.exact_values import Haystack, held_values, values_of_nodes
from context_summarize.session.snapshot import SummaryNode
from context_summarize.transcript.rows import RenderedRow

MESSAGES = (
    RenderedRow(1, "user", None, "Book HAT136 for $250, invoice INV-2031-B7, see src/desk/book.py."),
    RenderedRow(2, "assistant", None, "HAT136 costs $250. I use https://example.com/desk and HAT255."),
    RenderedRow(3, "tool", "look", 'ticket PROJ-77 is in "docs/plan.md"; token s3cr3t-77777'),
    RenderedRow(4, "user", None, "Thank you."),
)


def summary(text: str, ledger: tuple[Fact, ...] = (), directives: tuple[str, ...] = ()) -> Summary:
    return Summary("k", 0, text, ledger, 7, 90, directives=directives)


def leaf(first: int, last: int, made: Summary | None = None) -> SummaryNode:
    return SummaryNode(f"k{first}", 0, first, last, False, made)


def named(facts: tuple[Fact, ...]) -> set[tuple[str, str]]:
    return {(fact.kind, fact.value) for fact in facts}


def test_each_value_is_in_the_text_in_the_ledger_or_lost():
    """The text comes first; words of a directive count as text; a part of a longer word does not."""
    node = leaf(1, 2, summary("It books HAT136; not HAT2555.", (Fact("amount", "$250"),), ("See src/desk/book.py.",)))
    values = values_of_nodes([node], MESSAGES, str)[id(node)]

    assert node.summary is not None
    held = held_values(values, node.summary)
    assert named(held.in_text) == {("id", "HAT136"), ("path", "src/desk/book.py")}
    assert named(held.in_ledger) == {("amount", "$250")}
    assert named(held.lost) == {("id", "INV-2031-B7"), ("id", "HAT255"), ("url", "https://example.com/desk")}
    assert {fact.value: fact.count for fact in held.in_text}["HAT136"] == 2


def test_a_merged_summary_is_held_against_all_messages_below_it():
    """Not against the texts that it was merged from: what those have lost counts as lost."""
    children = (leaf(1, 2, summary("nothing")), leaf(3, 3, None))
    node = SummaryNode("m", 1, 1, 3, False, summary("PROJ-77 and HAT255"), children)
    found = values_of_nodes([node], MESSAGES, str)

    assert node.summary is not None
    held = held_values(found[id(node)], node.summary)
    assert named(held.in_text) == {("id", "PROJ-77"), ("id", "HAT255")}
    assert held.in_ledger == ()
    below = [named(found[id(child)]) for child in children]
    assert named(held.in_text) | named(held.lost) == below[0] | below[1]


def test_secrets_are_no_values():
    """What is removed from the messages is not listed as lost."""
    node = leaf(3, 3, summary("nothing"))

    values = values_of_nodes([node], MESSAGES, lambda text: text.replace("s3cr3t-77777", "[redacted]"))[id(node)]
    assert named(values) == {("id", "PROJ-77"), ("path", "docs/plan.md")}


def test_a_haystack_holds_whole_values_only():
    texts = Haystack(["a HAT136\nb", "$1,250.50 and\tdocs/plan.md"])

    assert "HAT136" in texts
    assert "docs/plan.md" in texts
    assert "$1,250.50" in texts
    assert "HAT13" not in texts
    assert "$1,250" not in texts
    assert "plan docs" not in texts
