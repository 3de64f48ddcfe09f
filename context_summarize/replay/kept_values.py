"""How many exact values of the messages a tree of summaries keeps: of each summary, and of all together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from context_summarize.facts.fact import Fact, FactKind
from context_summarize.redaction.redactor import Redact
from context_summarize.replay.exact_values import HeldValues, held_values, values_of_nodes
from context_summarize.session.snapshot import SummaryNode
from context_summarize.transcript.rows import RenderedRow

Value: TypeAlias = tuple[FactKind, str]


@dataclass(frozen=True, slots=True)
class Kept:
    """Exact values of messages, and how many of them summaries hold."""

    values: int
    kept: int

    @property
    def share(self) -> float:
        """0…1; 1 if there are no values."""
        return self.kept / self.values if self.values else 1.0


@dataclass(frozen=True, slots=True)
class Together:
    """The different exact values of all summarised messages, and those that the shown summaries hold."""

    every: frozenset[Value] = frozenset()
    in_text: frozenset[Value] = frozenset()
    in_ledger: frozenset[Value] = frozenset()

    @property
    def kept(self) -> Kept:
        """As numbers."""
        return Kept(len(self.every), len(self.every & (self.in_text | self.in_ledger)))


def all_nodes(nodes: Iterable[SummaryNode]) -> Iterator[SummaryNode]:
    """The summaries of a tree, each before those that it was merged from."""
    for node in nodes:
        yield node
        yield from all_nodes(node.children)


class KeptValues:
    """The exact values of the messages behind each summary of a tree, also of a merged one.

    Args:
        nodes: the summaries shown.
        messages: all messages from number 1 on.
    """

    def __init__(self, nodes: Sequence[SummaryNode], messages: Sequence[RenderedRow], clean: Redact) -> None:
        self._nodes = nodes
        self._values = values_of_nodes(nodes, messages, clean)
        self._held = {
            id(node): held_values(self._values[id(node)], node.summary) for node in all_nodes(nodes) if node.summary
        }

    def held(self, node: SummaryNode) -> HeldValues:
        """Where a summary holds each of its values; nothing for one whose text is not kept."""
        return self._held.get(id(node), HeldValues((), (), ()))

    def kept(self, node: SummaryNode) -> Kept:
        """How many of its values a summary holds."""
        held = self.held(node)
        return Kept(len(self._values[id(node)]), len(held.in_text) + len(held.in_ledger))

    def together(self) -> Together:
        """The values of all messages that the shown summaries stand for."""
        held = [self.held(node) for node in self._nodes]
        return Together(
            every=_different(fact for node in self._nodes for fact in self._values[id(node)]),
            in_text=_different(fact for each in held for fact in each.in_text),
            in_ledger=_different(fact for each in held for fact in each.in_ledger),
        )


def _different(facts: Iterable[Fact]) -> frozenset[Value]:
    return frozenset((fact.kind, fact.value) for fact in facts)
