"""The event loop that a manager belongs to: its locks and its work cannot be shared with another loop or thread."""

from __future__ import annotations

import asyncio
import threading

from context_summarize.errors import WrongLoopError


class OneLoop:
    """Remembers the event loop of the first call, and refuses calls from any other."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[asyncio.AbstractEventLoop, str]] = {}

    def check(self) -> None:
        """Do nothing in the loop of the first call.

        Raises:
            WrongLoopError: the call comes from another event loop; nothing has changed.
        """
        running, here = asyncio.get_running_loop(), threading.current_thread().name
        loop, thread = self._first.setdefault("loop", (running, here))  # one step, also between threads
        if loop is running:
            return
        if loop.is_closed():
            raise WrongLoopError(
                f"this manager was used in an event loop that has ended (thread {thread!r}), and is called from "
                f"another one (thread {here!r}); nothing has changed. Keep all calls of a session in one loop, as in "
                "one asyncio.run, or make a new manager and hand it the old one's `messages` with set_messages()"
            )
        raise WrongLoopError(
            f"this manager works in an event loop of thread {thread!r}, and is called from another loop in thread "
            f"{here!r}; nothing has changed. Call it with asyncio.run_coroutine_threadsafe(call, loop) and the first "
            "loop, or make a manager for each loop"
        )
