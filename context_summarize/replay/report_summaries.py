"""The summaries of a report's data: the tree, the exact values that each keeps and loses, and all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from context_summarize.core.nodes import Summary
from context_summarize.facts.fact import Fact
from context_summarize.replay.exact_values import Haystack, HeldValues
from context_summarize.replay.excerpts import common_limit, cut
from context_summarize.replay.kept_values import KeptValues, all_nodes
from context_summarize.replay.report_rows import Clean, ReportRows
from context_summarize.session.snapshot import Snapshot, SummaryNode

_CHARS = 400_000
"""Characters for the texts of all summaries together."""
_VALUES = 20_000
"""Values that are listed, of all summaries together."""


@dataclass(frozen=True, slots=True)
class _Limits:
    chars: int
    values: int


class ReportSummaries:
    """The tree with its values.

    Args:
        rows: give the size of the messages, and the last request.
    """

    def __init__(self, snapshot: Snapshot, rows: ReportRows, clean: Clean) -> None:
        self._nodes = snapshot.nodes
        self._source_tokens = rows.source_tokens()
        self._last = Haystack(rows.last_texts())
        found = list(all_nodes(snapshot.nodes))
        self._values = KeptValues(snapshot.nodes, snapshot.messages, clean)
        self._limits = _Limits(
            common_limit([len(node.summary.text) for node in found if node.summary], _CHARS),
            max(5, _VALUES // max(1, len(found))),
        )

    def nodes(self) -> list[dict[str, Any]]:
        """The tree, with a number for each node of the page."""
        numbers = iter(range(sum(1 for _ in all_nodes(self._nodes))))
        return [self._node(node, numbers) for node in self._nodes]

    def values(self) -> dict[str, int]:
        """How many different values all summarised messages hold, and where they stand in the last request.

        A value counts once: as held by a text before a ledger, by a ledger before another row of the request.
        """
        found = self._values.together()
        lost = found.every - found.in_text - found.in_ledger
        elsewhere = sum(value in self._last for _, value in lost)
        return {
            "all": len(found.every),
            "in_text": len(found.in_text),
            "in_ledger": len(found.in_ledger - found.in_text),
            "elsewhere": elsewhere,
            "lost": len(lost) - elsewhere,
        }

    def _node(self, node: SummaryNode, numbers: Iterator[int]) -> dict[str, Any]:
        told: dict[str, Any] = {
            "id": next(numbers),
            "key": node.key,
            "level": node.level,
            "first": node.first,
            "last": node.last,
            "rest": node.rest,
            "kept": node.summary is not None,
            "source_tokens": self._size(node.last) - self._size(node.first - 1),
        }
        if node.summary is not None:
            told |= self._summary(node.summary) | self._told_values(self._values.held(node))
        return {**told, "children": [self._node(child, numbers) for child in node.children]}

    def _size(self, number: int) -> int:
        """Tokens of the messages 1 to `number`."""
        return self._source_tokens[min(number, len(self._source_tokens) - 1)]

    def _summary(self, summary: Summary) -> dict[str, Any]:
        chars, values = self._limits.chars, self._limits.values
        return {
            "text": cut(summary.text, chars),
            "directives": [cut(directive, chars) for directive in summary.directives],
            "ledger": [
                [fact.kind, cut(fact.value, chars), fact.count, cut(f"{fact.about} {fact.label}".strip(), chars)]
                for fact in summary.ledger[:values]
            ],
            "facts_left_out": max(0, len(summary.ledger) - values),
            "tokens": summary.tokens,
            "fallback": summary.fallback,
            "writer": " · ".join(dict.fromkeys(part for part in (summary.provider, summary.model) if part)),
        }

    def _told_values(self, held: HeldValues) -> dict[str, Any]:
        return {
            "counts": [len(held.in_text), len(held.in_ledger), len(held.lost)],
            "in_text": self._listed(held.in_text),
            "lost": [[*told, int(told[1] in self._last)] for told in self._listed(held.lost)],
        }

    def _listed(self, facts: Sequence[Fact]) -> list[list[Any]]:
        return [[fact.kind, fact.value, fact.count] for fact in facts[: self._limits.values]]
