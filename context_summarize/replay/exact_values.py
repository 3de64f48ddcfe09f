"""What was lost: which exact values of its source a summary holds, and which it does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from context_summarize.core.nodes import Summary
from context_summarize.facts.directives import format_directives
from context_summarize.facts.extraction import extract_facts, identifiers
from context_summarize.facts.fact import Fact, FactKind
from context_summarize.facts.ledger_lines import format_ledger
from context_summarize.facts.patterns import holds, one_line
from context_summarize.redaction.redactor import Redact
from context_summarize.session.snapshot import SummaryNode
from context_summarize.transcript.rows import RenderedRow

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class HeldValues:
    """The exact values of a summary's source: paths, addresses, ids and amounts. Each stands in one of the three."""

    in_text: tuple[Fact, ...]
    """Held by its text or its user directives."""
    in_ledger: tuple[Fact, ...]
    lost: tuple[Fact, ...]
    """In neither."""


def values_of_nodes(
    nodes: Iterable[SummaryNode], messages: Sequence[RenderedRow], clean: Redact
) -> dict[int, tuple[Fact, ...]]:
    """The exact values of the whole messages that each node stands for, most useful first, by identity of the node.

    Args:
        messages: all messages from number 1 on. The values of a merged summary are those of its parts together.
    """
    found: dict[int, tuple[Fact, ...]] = {}
    for node in nodes:
        if node.children:
            found |= values_of_nodes(node.children, messages, clean)
            found[id(node)] = _together([found[id(child)] for child in node.children])
        else:
            rows = [replace(row, text=clean(row.text)) for row in messages[node.first - 1 : node.last]]
            found[id(node)] = identifiers(extract_facts(rows)) if rows else ()
    return found


def _together(children: Sequence[Sequence[Fact]]) -> tuple[Fact, ...]:
    """Each value once, the newest first, with how often all children together hold it."""
    found: dict[tuple[FactKind, str], Fact] = {}
    for facts in reversed(children):
        for fact in facts:
            known = found.setdefault((fact.kind, fact.value), replace(fact, count=0))
            found[fact.kind, fact.value] = replace(known, count=known.count + fact.count)
    return tuple(found.values())


def held_values(values: Iterable[Fact], summary: Summary) -> HeldValues:
    """Where a summary holds each value."""
    directives = format_directives(summary.directives, summary.text)
    text, ledger = one_line(f"{summary.text}\n{directives}"), one_line(format_ledger(summary.ledger))
    in_text: list[Fact] = []
    in_ledger: list[Fact] = []
    lost: list[Fact] = []
    for fact in values:
        value = one_line(fact.value)
        (in_text if holds(text, value) else in_ledger if holds(ledger, value) else lost).append(fact)
    return HeldValues(tuple(in_text), tuple(in_ledger), tuple(lost))


class Haystack:
    """A long text that is asked for many values."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = one_line("\n".join(dict.fromkeys(texts)))
        self._words = set(_WORD.findall(self._text))

    def __contains__(self, value: str) -> bool:
        # Most values that are not there are ruled out by their words, without a search through the text.
        return self._words.issuperset(_WORD.findall(value)) and holds(self._text, one_line(value))
