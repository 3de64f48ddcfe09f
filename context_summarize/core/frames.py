"""The rows that represent summaries and the thread, with hints how the model reads the originals back."""

from __future__ import annotations

from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, ShownNode, ShownNotes, Summary
from context_summarize.messages.rows import LASTING, SHOWN, SOURCE, JsonRow
from context_summarize.notes.thread import mark
from context_summarize.tokens.measure import measure
from context_summarize.transcript.escaping import Frame, quoted, without_surrogates

CONTINUES = "(This conversation began earlier; what is not shown whole is summarised or shortened.)"


def show_node(log: Log, node: Node, summary: Summary, frame: Frame, text: str | None = None) -> ShownNode:
    """Returns the row that represents a node, and its size; `text` is the shown part of the summary, None = all."""
    first, last = log.message_range(node.first_group, node.end_group)
    text = summary.text if text is None else text
    content = frame(
        text=quoted(without_surrogates(text), frame, thread_frame),
        first=str(first),
        last=str(last),
        count=str(last - first + 1),
        level=str(node.level),
        recall=f' Originals: {NAME}(messages="{first}-{last}").' if log.recall else "",
    )
    row = _row(content, log.summary_role, key=node.key, level=node.level, messages=[first, last])
    return ShownNode(node, summary, text, row, measure(row, log.count))


def no_summary(log: Log, frontier: int) -> JsonRow:
    """Returns the row that replaces all summaries before a rendered group if they do not fit."""
    _, last = log.message_range(0, frontier)
    return _row(f"[messages 1–{last} of the conversation: no room for a summary]", log.summary_role, messages=[1, last])


def _row(content: str, role: str, **marks: object) -> JsonRow:
    return {"role": role, "content": content, "metadata": {**SHOWN, "source": SOURCE, **LASTING, **marks}}


def thread_frame(*, text: str, last: str, recall: str = "", **_: str) -> str:
    """Returns the lines of the thread in their frame."""
    return (
        f"[Thread of messages 1 to {last}: the user's words, quoted by code, with the agent's words at the end of each "
        f"turn. {mark(7)} is message 7.{recall}]\n{text}\n[End of the thread of messages 1 to {last}.]"
    )


def show_thread(log: Log, text: str, frontier: int) -> ShownNotes:
    """Returns the row of the thread of the rendered groups before `frontier`, and its size."""
    _, last = log.message_range(0, frontier)
    hint = f' More: {NAME}(words="a value from below").' if log.recall else ""
    content = thread_frame(text=quoted(without_surrogates(text), thread_frame), last=str(last), recall=hint)
    row = _row(content, log.summary_role, notes=[1, last])
    return ShownNotes(text, row, measure(row, log.count))


def opening_row() -> JsonRow:
    """Returns the first row of a view whose history begins with an assistant row, which some providers refuse."""
    return _row(CONTINUES, "user")


NAME = "recall"
"""The name of the tool. Its results are not searched again."""


def row_hint(number: int | None) -> str:
    """Returns the hint in a shortened row how to read the whole; "" for a row without a number."""
    return "" if number is None else f'; whole: {NAME}(messages="{number}")'
