"""One huge row: what its counting does to the loop, though a thread does it."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.speed.blocks import Found, Monitor, ObservedLoop
from benchmarks.speed.figures import BLOCK_MS, Figure
from benchmarks.speed.imports import WINDOW, timed
from benchmarks.speed.profiles import Profiles
from benchmarks.speed.rows import RECORDING, rows, tokens_per_row
from benchmarks.speed.sessions import block_figures
from context_summarize import SummarizingContextManager
from context_summarize.testing import call, result, user


@dataclass(slots=True)
class LargeRow:
    """A tool result of so many megabytes in a session of 400 rows."""

    megabytes: int
    samples: bool = False
    adding: float = 0.0
    asking: float = 0.0
    found: Found = field(default_factory=Found)

    @property
    def title(self) -> str:
        """How large."""
        return f"{self.megabytes} MB row"

    async def run(self, loop: ObservedLoop, profiles: Profiles | None) -> None:
        """Add it, then ask for a request."""
        await tokens_per_row(200)
        manager = SummarizingContextManager()
        await manager.set_messages([*rows(400), user("Show me the log."), call("call_large", "show")])
        await manager.get_messages_for_request(token_budget=WINDOW)
        text = RECORDING.read_text("utf-8")
        text = (text * (1 + self.megabytes * 2**20 // len(text)))[: self.megabytes * 2**20]
        monitor = Monitor(loop, bar_ms=BLOCK_MS, samples=self.samples)
        self.found = monitor.found
        if profiles is not None:
            loop.wrap = profiles.in_thread
            profiles.start()
        with monitor.watching():
            self.adding = (await timed(monitor, "add_message", manager.add_message(result("call_large", text)))).own
            request = manager.get_messages_for_request(token_budget=WINDOW)
            self.asking = (await timed(monitor, "get_messages_for_request", request)).own
        if profiles is not None:
            profiles.stop()
        await manager.close()

    def figures(self) -> list[Figure]:
        """Seconds, and blocks."""
        return [
            Figure(f"{self.title}: add_message, s", self.adding),
            Figure(f"{self.title}: next request, s", self.asking),
            *block_figures(self.title, self.found, BLOCK_MS),
        ]
