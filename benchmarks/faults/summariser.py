"""The stand-in for a model that writes summaries, with one fault, and the session with planted facts that it reads."""

from __future__ import annotations

import re

from benchmarks.peers import Row
from benchmarks.peers.check import recorded

ROWS, FACTS, BUDGET = 400, 100, 12_000
FACT = re.compile(r"FACT-\d{4}-[0-9A-F]{4}")


class SummariserDown(ConnectionError):
    """What the raising summariser raises."""


class Summariser:
    """The stand-in for a model that writes summaries, with one fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.calls = 0
        self.largest_input = 0
        """Characters."""

    async def answer(self, shown: str, max_output: int | None = None) -> str:
        """What it says of the text that it is shown, however long that is."""
        del max_output
        self.calls += 1
        self.largest_input = max(self.largest_input, len(shown))
        match self.fault:
            case "empty":
                return ""
            case "raises":
                raise SummariserDown("the summariser's service is down")
            case "oversized":
                return shown
        return "Customers were served. Known facts: " + " ".join(dict.fromkeys(FACT.findall(shown)))


FAULTS = ("none", "empty", "raises", "oversized")


def planted(total: int = ROWS, facts: int = FACTS) -> list[Row]:
    """The first rows of the recording, numbered in their metadata, with facts spread evenly over the user rows."""
    rows = recorded()[:total]
    users = [at for at, row in enumerate(rows) if row["role"] == "user"]
    facts = min(facts, len(users))
    for number in range(facts):
        row = rows[users[number * len(users) // facts]]
        row["content"] += f" My note for later is FACT-{number:04d}-{number * 7919 % 65536:04X}."
    return [{**row, "metadata": {"row": at}} for at, row in enumerate(rows)]
