"""The events of this module: their names, and the outbox that emits each once. Also lines for the host's user."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

from amplifier_core.models import HookResult

from context_summarize.background import awaited, end_tasks
from context_summarize.host_types import Coordinator, Hooks
from context_summarize.redaction import traceback_of

logger = logging.getLogger(__name__)

PRE_COMPACT = "context:pre_compact"
POST_COMPACT = "context:post_compact"
COMPACTION = "context:compaction"
STARTED, FINISHED = "context:compaction_started", "context:compaction_finished"
"""Newer hosts (amplifier-unified) listen to these two: they show a pause, and save a checkpoint after it."""
RESOLVE = "provider:resolve"
REQUEST = "provider:request"
LOOP_ERROR = "provider:error"
OBSERVED = ("llm:response", LOOP_ERROR)
"""Events that this module observes: providers report every call, loops their own calls that fail."""
SUMMARY = "context-summarize:summary"
FAILURE = "context-summarize:failure"
OVER_BUDGET = "context-summarize:over_budget"

ALL_EVENTS = (
    PRE_COMPACT,
    POST_COMPACT,
    COMPACTION,
    STARTED,
    FINISHED,
    RESOLVE,
    REQUEST,
    SUMMARY,
    FAILURE,
    OVER_BUDGET,
)

_SOURCE = "context-summarize"
"""The source of a line for the user, for hosts that show from which hook a line comes."""
_CANNOT_ASK = "the host cannot ask its user"

_Process = Callable[[HookResult, str, str], Awaitable[HookResult]]

_hook_of: ContextVar[Outbox | None] = ContextVar("context_summarize_hook_of", default=None)
"""The outbox whose event is being handled: its hooks must not wait for what waits for them."""


class AskLater(Exception):
    """A hook would ask the user about work that no request waits for."""


class Outbox:
    """Emits events and lines for the user one after the other, in order, even if a caller is cancelled meanwhile."""

    def __init__(
        self, coordinator: Coordinator | None, redact: bool | Sequence[str] = True, *, tells_user: bool = True
    ) -> None:
        self.tells_user = tells_user
        """True if the host's user gets a line about what takes time or costs quality."""
        self._hooks: Hooks | None = getattr(coordinator, "hooks", None)
        self._process: _Process | None = getattr(coordinator, "process_hook_result", None)
        self._redact = redact
        self._waiting: deque[Callable[[], Coroutine[Any, Any, object]]] = deque()
        self._emitting: asyncio.Task[None] | None = None

    def put(self, name: str, data: dict[str, Any]) -> None:
        """Adds an event; the next `flush` emits it."""
        if self._hooks is not None:
            self._waiting.append(partial(self.emit, name, data))

    def notify(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """Adds a line for the host's user, from any thread. The next `flush` shows it, if the host has a screen."""
        if self._process is not None:
            self._waiting.append(partial(self._shown, HookResult(user_message=text, user_message_level=level)))

    def tell(self, text: str, level: Literal["warning", "error"]) -> None:
        """Adds a line that wants no other one beside it: the log has it at `level` only if no host shows it."""
        shows = self.tells_user and self._process is not None
        is_for_log = self.tells_user and self._process is None
        logger.log(getattr(logging, level.upper()) if is_for_log else logging.INFO, "%s", text)
        if shows:
            self.notify(text, level)

    @property
    def is_in_hook(self) -> bool:
        """True for a caller that is a hook of one of these events, or a task that such a hook has started."""
        return _hook_of.get() is self

    def start(self) -> None:
        """Begins to emit all waiting events and lines, for callers that cannot wait for it."""
        if self._waiting and (self._emitting is None or self._emitting.done()):
            self._emitting = asyncio.create_task(self._emit(), name="context-summarize:events")

    async def flush(self) -> None:
        """Waits until all waiting events and lines are emitted. A hook or a host that raises changes nothing."""
        self.start()
        if self._emitting is not None and not self.is_in_hook:
            await asyncio.shield(self._emitting)

    async def _emit(self) -> None:
        while self._waiting:
            await self._waiting.popleft()()

    async def emit(self, name: str, data: dict[str, Any]) -> HookResult | None:
        """Emits an event now; returns the hooks' answer, None without hooks or if one raises."""
        if self._hooks is None:
            return None
        return await self._answer(partial(self._hooks.emit, name, data), f"a hook failed on {name}")

    async def denial(self, name: str, data: dict[str, Any], may_ask: Callable[[], bool]) -> str | None:
        """Announces work; returns the reason if a hook denies it, else None.

        A hook may ask the user if the host can. Text that a hook injects is ignored: it is for the conversation's own
        requests.

        Args:
            may_ask: returns True while a request waits for the work; called once the hooks have answered.

        Raises:
            AskLater: a hook would ask the user, and no request waits.
        """
        answer = await self.emit(name, data)
        if answer is not None and answer.action == "ask_user" and self._process is not None:
            if not may_ask():
                raise AskLater(name)
            answer = await self._answer(partial(self._process, answer, name, _SOURCE), _CANNOT_ASK)
            if answer is None:
                return _CANNOT_ASK
        if answer is None or answer.action not in ("deny", "ask_user"):
            return None
        return str(answer.reason or answer.approval_prompt or "it gives no reason")

    async def _shown(self, line: HookResult) -> None:
        if self._process is not None:
            await self._answer(partial(self._process, line, _SOURCE, _SOURCE), "the host cannot show its user a line")

    async def _answer(self, call: Callable[[], Awaitable[HookResult | None]], failed: str) -> HookResult | None:
        """Returns the answer of hooks or host; None if they raise, which is logged with the words `failed`."""
        before = _hook_of.set(self)
        try:
            return await awaited(call)
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            logger.warning("%s: %s", failed, traceback_of(error, self._redact))
            return None
        finally:
            _hook_of.reset(before)

    async def close(self) -> None:
        """Cancels events that are still being emitted."""
        await end_tasks([] if self._emitting is None else [self._emitting])
