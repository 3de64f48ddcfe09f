"""Forks sessions that write a history and acknowledge each call that has returned; run by a test that kills them.

It reads one line for each session, `SEED CALLS SECONDS PATH`, and forks a process that carries out the plan of this
seed, and prints `done` for each call that has returned. So many seconds after so many calls the process is killed, by
an alarm that it has no handler for; with 0 seconds it kills itself in that moment. Then this prints `gone`.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys

from context_summarize import SummarizingContextManager
from context_summarize.testing import JsonRow
from tests.support.rows import user

_CALLS = [*["append"] * 8, "replace", "grow", "clear", "resume", "resume", "request"]
_LENGTHS = [9, 9, 9, 9, 9, 20_000]
"""Characters of a row: a short one, and one that takes several pages."""
Step = tuple[str, list[JsonRow]]
"""One call and the rows that it adds."""


def plan(seed: int) -> list[Step]:
    """The calls of one session, the same for the same seed. The first one comes before the file is loaded."""
    choice = random.Random(seed)
    steps: list[Step] = []
    for number in range(40):
        call = choice.choice(_CALLS)
        count = {"append": 1, "replace": 3, "grow": 3}.get(call, 0)
        rows = [user(f"{seed}-{number}-{at} " + "x" * choice.choice(_LENGTHS)) for at in range(count)]
        steps.append((call, rows))
    return steps


def after(history: list[JsonRow], step: Step) -> list[JsonRow]:
    """The history when the call has returned."""
    call, rows = step
    if call in ("append", "grow"):
        return [*history, *rows]
    return rows if call in ("replace", "clear") else history


async def session(seed: int, calls: int, seconds: float, path: str) -> None:
    """Carry out a plan, and acknowledge each call that has returned."""
    made = SummarizingContextManager(persistence={"path": path})
    for number, (call, rows) in enumerate([("none", []), *plan(seed)]):
        if call == "append":
            await made.add_message(rows[0])
        elif call == "replace":
            await made.set_messages(rows)
        elif call == "grow":
            await made.set_messages([*await made.get_messages(), *rows])
        elif call == "clear":
            await made.clear()
        elif call == "request":
            await made.get_messages_for_request(10**9)
        elif call == "resume":
            await made.close()
            made = SummarizingContextManager(persistence={"path": path})
        if number:
            os.write(1, b"done\n")
        if number == calls and seconds:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        elif number == calls:
            os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.Event().wait()


def serve() -> None:
    """Fork a session for each line that comes in; it has imported everything."""
    for line in sys.stdin:
        seed, calls, seconds, path = line.rstrip("\n").split(" ", 3)
        child = os.fork()
        if child == 0:
            asyncio.run(session(int(seed), int(calls), float(seconds), path))
        os.waitpid(child, 0)
        os.write(1, b"gone\n")


if __name__ == "__main__":
    serve()
