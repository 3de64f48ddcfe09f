"""The rows of a view that are ours: summaries, the thread, what stands in their place; and hints how to read back."""

from __future__ import annotations

from context_summarize.core.entries import Entry
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.messages.rows import LASTING, SHOWN, SOURCE, JsonRow
from context_summarize.notes.thread import mark
from context_summarize.tokens.measure import measure
from context_summarize.transcript.escaping import Frame, quoted, without_surrogates

CONTINUES = "(This conversation began earlier; what is not shown whole is summarised or shortened.)"
NAME = "recall"
"""The name of the tool. Its results are not searched again."""


def summary_entry(log: Log, node: Node, summary: Summary, frame: Frame) -> Entry:
    """Returns the row that represents a node."""
    place = (node.key, node.first_group, summary.text)
    found = log.summary_rows.get(place)
    if found is None:
        found = log.summary_rows[place] = _summary_entry(log, node, summary, frame)
    return found


def _summary_entry(log: Log, node: Node, summary: Summary, frame: Frame) -> Entry:
    first, last = log.message_range(node.first_group, node.end_group)
    content = frame(
        text=quoted(without_surrogates(summary.text), frame, thread_frame),
        first=str(first),
        last=str(last),
        count=str(last - first + 1),
        level=str(node.level),
        recall=f' Originals: {NAME}(messages="{first}-{last}").' if log.recall else "",
    )
    return own_entry(log, _row(content, log.summary_role, key=node.key, level=node.level, messages=[first, last]))


def no_summary(log: Log, groups: int) -> Entry:
    """Returns the row that replaces all summaries before a rendered group if they do not fit."""
    _, last = log.message_range(0, groups)
    text = f"[messages 1–{last} of the conversation: no room for a summary]"
    return own_entry(log, _row(text, log.summary_role, messages=[1, last]))


def _row(content: str, role: str, **marks: object) -> JsonRow:
    return {"role": role, "content": content, "metadata": {**SHOWN, "source": SOURCE, **LASTING, **marks}}


def thread_frame(*, text: str, last: str, recall: str = "", **_: str) -> str:
    """Returns the lines of the thread in their frame."""
    return (
        f"[Thread of messages 1 to {last}: the user's words, quoted by code, with the agent's words at the end of each "
        f"turn. {mark(7)} is message 7.{recall}]\n{text}\n[End of the thread of messages 1 to {last}.]"
    )


def thread_entry(log: Log, text: str, groups: int) -> Entry:
    """Returns the row of the thread of the rendered groups before this one."""
    _, last = log.message_range(0, groups)
    hint = f' More: {NAME}(words="a value from below").' if log.recall else ""
    content = thread_frame(text=quoted(without_surrogates(text), thread_frame), last=str(last), recall=hint)
    return own_entry(log, _row(content, log.summary_role, notes=[1, last]))


def opening_entry(log: Log) -> Entry:
    """Returns the first row of a view whose history begins with an assistant row, which some providers refuse."""
    return own_entry(log, _row(CONTINUES, "user"))


def own_entry(log: Log, row: JsonRow) -> Entry:
    """Returns a row that is in no history, with its size."""
    return Entry(None, row, measure(row, log.count))


def row_hint(number: int | None) -> str:
    """Returns the hint in a shortened row how to read the whole; "" for a row without a number."""
    return "" if number is None else f'; whole: {NAME}(messages="{number}")'
