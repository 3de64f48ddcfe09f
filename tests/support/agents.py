"""Sessions of an agent that edits, fails and tests, over a provider whose summaries hold none of it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from context_summarize import SummarizingContextManager
from context_summarize.testing import JsonRow, ScriptedProvider, assistant, call, result, user
from tests.support.gated import answer
from tests.support.kept import KeptStore
from tests.support.recorder import Recorder
from tests.support.views import notes

TASKS = 24
WINDOW = 10_000
LISTING = "\n".join(f"{line}: the quick brown fox jumps over the lazy dog" for line in range(70))


def agent_session(tasks: int = TASKS) -> Iterator[JsonRow]:
    """Tasks, each with a request, long listings, an edit, a command that fails and a test run."""
    for task in range(tasks):
        yield user(f"Please mend part {task} of invoice INV-{7_000 + 37 * task}.")
        for part in range(3):
            yield from called(f"r{task}-{part}", "read_file", f"{task} {LISTING}", file_path=f"docs/page_{part}.md")
        edit = {"file_path": f"src/part_{task}.py", "old_string": "a", "new_string": "b"}
        yield from called(f"e{task}", "edit_file", "ok", **edit)
        fails = f'{{"stdout": "", "stderr": "no target", "returncode": {task % 7 + 1}}}'
        yield from called(f"f{task}", "bash", fails, command=f"make part-{task}")
        passed = f'{{"stdout": "{task} passed in 0.1s", "returncode": 0}}'
        yield from called(f"t{task}", "bash", passed, command=f"pytest tests/area_{task % 3}.py")
        yield assistant(f"Part {task} is done.")


def called(call_id: str, name: str, text: str, **arguments: Any) -> list[JsonRow]:
    return [call(call_id, name, **arguments), result(call_id, text, name)]


@dataclass
class AgentSession:
    """A manager over a store that outlives it."""

    settings: dict[str, Any] = field(default_factory=dict)
    store: KeptStore = field(default_factory=KeptStore)
    provider: ScriptedProvider = field(default_factory=lambda: ScriptedProvider(then=answer))
    views: list[list[JsonRow]] = field(default_factory=list)
    """After each compaction."""
    host: Any = None

    def __post_init__(self) -> None:
        given = {"max_tokens": WINDOW, "prefetch": False, **self.settings}
        self.manager = SummarizingContextManager(self.host, store=self.store, **given)

    async def play(self, rows: Iterable[JsonRow]) -> AgentSession:
        """As an agent loop does: a request before each answer."""
        compactions = 0
        for row in rows:
            if row["role"] == "assistant":
                view = await self.view()
                if (now := (await self.manager.statistics()).boundaries) > compactions:
                    compactions = now
                    self.views.append(view)
            await self.manager.add_message(row)
        return self

    async def view(self) -> list[JsonRow]:
        return await self.manager.get_messages_for_request(provider=self.provider)

    async def again(self, rows: Iterable[JsonRow]) -> AgentSession:
        """The session of these rows in a new process, with a provider that must not be asked."""
        other = AgentSession(self.settings, self.store)
        await other.manager.set_messages(rows)
        return other

    @property
    def rows_of_notes(self) -> list[JsonRow]:
        found = [notes(view) for view in self.views]
        return [row for row in found if row is not None]


class Busy(Recorder):
    """A coordinator that lists what is under way; an error is raised instead."""

    def __init__(self, operations: Any) -> None:
        super().__init__()
        self.operations, self.thread = operations, threading.get_ident()

    def get_capability(self, name: str) -> Any:
        return self.listed if name == "context.active_operations" else None

    def listed(self) -> Any:
        assert threading.get_ident() == self.thread, "asked in the thread of its loop"
        if isinstance(self.operations, Exception):
            raise self.operations
        return self.operations
