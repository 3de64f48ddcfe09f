"""Checks of rows that go to a provider: calls with their results, and a user message first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from context_summarize.messages.reading import analyse, blocks_of, ids_of_results, is_hook, is_result
from context_summarize.messages.rows import SYSTEM_ROLES, JsonRow


def opens_conversation(row: JsonRow) -> bool:
    """True for a user message: role user, no hook row, no tool result in it."""
    return row["role"] == "user" and not is_hook(row) and not any(map(is_result, blocks_of(row)))


def opens_with_user(rows: Iterable[JsonRow]) -> bool | None:
    """Whether the first row that is neither system nor developer is a user message; None when there is none."""
    for row in rows:
        if row["role"] not in SYSTEM_ROLES:
            return opens_conversation(row)
    return None


def broken_pairs(rows: Sequence[JsonRow]) -> list[str]:
    """What breaks the pairing of calls and results in a view, one text a problem; empty when every pair is whole.

    A result must follow its call, and nothing but other results may stand between them. Calls at the very end may be
    open. The checks of a replay use it, and so may tests of a user's own module.
    """
    problems: list[str] = []
    waiting: list[str] = []
    for at, row in enumerate(rows):
        results = list(ids_of_results(row)) if row["role"] in ("tool", "user") else []
        for call_id in results:
            if call_id in waiting:
                waiting.remove(call_id)
            else:
                problems.append(f"row {at}: result {call_id!r} without its call")
        if not results:
            problems += [f"row {at}: call {call_id!r} has no result" for call_id in waiting]
            waiting = [call.id for call in analyse(row).calls]
    return problems
