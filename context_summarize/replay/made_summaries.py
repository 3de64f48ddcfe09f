"""Watches which summaries a provider writes in a replay, and which of them a request shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from context_summarize.core.nodes import Node
from context_summarize.core.view_state import ViewState
from context_summarize.replay.result import ReplayResult


class MadeSummaries:
    """Which summaries the provider has written, and which of them requests have shown."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, int]] = {}
        """Key → tokens in and out."""
        self._used: set[str] = set()
        self._view: ViewState | None = None

    def made(self, event: dict[str, Any]) -> None:
        """The provider has written one."""
        self._made[event["key"]] = event["usage"]

    def shown(self, view: ViewState) -> None:
        """A request shows these, and with them what they were merged from."""
        if view is not self._view:
            self._view = view
            self._use([item.node for item in view.nodes])

    def _use(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.key not in self._used:
                self._used.add(node.key)
                self._use(node.children)

    def tell(self, result: ReplayResult) -> None:
        """Write the figures into the result."""
        unused = [usage for key, usage in self._made.items() if key not in self._used]
        result.made_summaries, result.unused_summaries = len(self._made), len(unused)
        result.unused_input_tokens = sum(usage["input_tokens"] for usage in unused)
        result.unused_output_tokens = sum(usage["output_tokens"] for usage in unused)
