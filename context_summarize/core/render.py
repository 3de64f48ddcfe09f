"""The rows of a request: a log as a view shows it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from context_summarize.core.entries import HARD_FLOOR, Entry, short_length, shortened_row
from context_summarize.core.frames import no_summary, opening_row, row_hint
from context_summarize.core.groups import Group
from context_summarize.core.limits import Limits
from context_summarize.core.log import Log
from context_summarize.core.nodes import View
from context_summarize.messages.reading import is_hook, is_instruction
from context_summarize.messages.rows import SHOWN, JsonRow, copy_json
from context_summarize.messages.view_rows import unbound
from context_summarize.tokens.measure import measure


@dataclass(frozen=True, slots=True)
class Rendering:
    """The rows of a view, in three parts. They are shared: callers must not change them."""

    head: Sequence[Entry]
    """The rows that represent the summarised part: nodes, the verbatim groups among them, the notes."""
    verbatim: Sequence[Entry]
    """The newest user message, if it is summarised, and the rows that are not."""
    open: Sequence[Entry]
    """The calls at the end that may still get results, and the results so far."""
    left: int
    """Tokens of the rows that were in the view right after the last compaction."""

    @property
    def entries(self) -> list[Entry]:
        """All rows of the view."""
        return [*self.head, *self.verbatim, *self.open]

    @property
    def tokens(self) -> int:
        """The size of the view, without the system prompt."""
        return sum(entry.tokens for entry in self.entries)

    @property
    def system_tokens(self) -> int:
        """Tokens of the view's system rows, which providers send separately."""
        return sum(entry.tokens for entry in (*self.head, *self.verbatim) if entry.row["role"] == "system")

    def rows(self, system_prompt: str | None) -> list[JsonRow]:
        """Returns copies of the rows, system prompt first."""
        head = [{"role": "system", "content": system_prompt, "metadata": dict(SHOWN)}] if system_prompt else []
        return [*head, *(copy_json(entry.row) for entry in self.entries)]

    def largest(self, system_tokens: int = 0, most: int = 3) -> list[dict[str, Any]]:
        """Returns the largest rows, as events name them: position in the request, role, tokens."""
        head = [{"row": 0, "role": "system", "tokens": system_tokens}] if system_tokens else []
        found = [
            {"row": at, "role": entry.row["role"], "tokens": entry.tokens}
            for at, entry in enumerate(self.entries, start=len(head))
        ]
        return sorted([*head, *found], key=lambda item: -item["tokens"])[:most]


def render(log: Log, view: View) -> Rendering:
    """Returns the rows of a request with this view."""
    before = tuple(head(log, view))
    verbatim, left = list[Entry](), sum(entry.tokens for entry in before)
    for group in (*_from_newest(log, view), *log.groups[log.group_position(view.frontier_row) :]):
        entries = shown(log, group, view)
        verbatim += entries
        if group.start < view.rows_at_compaction:
            left += sum(entry.tokens for entry in entries)
    return Rendering(before, verbatim, [entry for group in log.open_groups for entry in shown(log, group, view)], left)


def _from_newest(log: Log, view: View) -> list[Group]:
    """Returns the newest user message, if it is summarised, and the verbatim groups after it that are.

    The first user message is none: it opens the view even if it is the only one.
    """
    newest = view.newest_user
    if newest is None or newest >= view.frontier or newest == log.users[0]:
        return []
    start = log.rendered_group(newest).start
    return [group for group in verbatim_groups(log, view) if group.start >= start]


def head(log: Log, view: View) -> Iterator[Entry]:
    """Yields what stands before the newest user message: the verbatim groups before it, nodes and notes.

    The row of a node follows the verbatim groups of its range. Last come the notes, which change most often.
    """
    beside = verbatim_groups(log, view)
    beside = beside[: len(beside) - len(_from_newest(log, view))]
    if view.compactions and not log.opens_with_user():
        yield _own(log, opening_row())
    for item in () if view.is_bare else view.shown:
        end = log.rendered_group(item.node.end_group - 1).end
        while beside and beside[0].start < end:
            yield from shown(log, beside.pop(0), view)
        yield Entry(None, item.row, item.tokens)
    for group in beside:
        yield from shown(log, group, view)
    if view.is_bare:
        yield _own(log, no_summary(log, view.frontier))
    elif view.notes is not None:
        yield Entry(None, view.notes.row, view.notes.tokens)


def _own(log: Log, row: JsonRow) -> Entry:
    return Entry(None, row, measure(row, log.count))


def verbatim_groups(log: Log, view: View) -> list[Group]:
    """Returns the groups before the frontier that the view also shows verbatim, in order.

    They are the groups of pinned rows, the first and the newest user message, and the groups that the user has pinned.
    """
    found = dict[int, Group]()
    for group in map(log.groups.__getitem__, log.always_verbatim):
        if group.start >= view.frontier_row:
            break
        if any(log.rows[at].pinned and not _is_hidden(log, at, view) for at in range(group.start, group.end)):
            found[group.start] = group
    for ordinal in (*log.users[:1], view.newest_user, *view.pinned):
        if ordinal is not None and ordinal < view.frontier:
            group = log.rendered_group(ordinal)
            found[group.start] = group
    return [found[start] for start in sorted(found)]


def shown(log: Log, group: Group, view: View) -> Sequence[Entry]:
    """Returns the rows of a group as the view shows them."""
    entries: Sequence[Entry] = log.entries(group)
    if group.start < view.bound_from:
        entries = [kept for entry in entries if (kept := _unbound(log, entry, view)) is not None]
    if view.hides_system:
        entries = [entry for entry in entries if entry.origin is None or not _is_hidden(log, entry.origin, view)]
    if view.shortened:
        entries = [short(log, entry, view) for entry in entries]
    return entries


def _unbound(log: Log, entry: Entry, view: View) -> Entry | None:
    """Returns an entry from before the newest change of the view, without what binds it to the rows before it.

    Thinking in a turn whose calls were open then stays. So what a row loses is decided when the view changes.
    """
    if entry.origin is None or entry.row["role"] != "assistant":
        return entry
    known, keeps_thinking = log.unbound, entry.origin >= log.open_at(view.bound_from)
    if (entry.origin, keeps_thinking) not in known:
        row = unbound(entry.row, keeps_thinking=keeps_thinking)
        changed = None if row is None else Entry(entry.origin, row, measure(row, log.count))
        known[entry.origin, keeps_thinking] = entry if row == entry.row else changed
    return known[entry.origin, keeps_thinking]


def _is_hidden(log: Log, index: int, view: View) -> bool:
    """Returns True for a system row that the host's own prompt replaces."""
    row = log.rows[index]
    return view.hides_system and row.role == "system" and not (is_hook(row.raw) or is_instruction(row.raw))


def short(log: Log, entry: Entry, view: View) -> Entry:
    """Returns an entry as the view shows it, shortened or whole."""
    keep = None if entry.origin is None else view.shortened.get(entry.origin)
    return entry if keep is None or entry.tokens <= keep else _cut(log, entry, keep)


def _cut(log: Log, entry: Entry, keep: int) -> Entry:
    """Returns the entry of a history row, cut to about `keep` tokens. The log keeps it, so it is cut only once."""
    row = entry.origin
    if row is None:
        return entry
    key = row, keep, entry.tokens
    found = log.shortened.get(key)
    if found is None:
        hint = row_hint(log.number_of(row)) if log.recall else ""
        found = log.shortened[key] = Entry(row, *shortened_row(entry.row, entry.tokens, keep, log.count, hint))
    return found


def to_shorten(log: Log, view: View, limits: Limits) -> list[Entry]:
    """Returns the results that a plan will shorten first and that are not cut yet."""
    longest, last = limits.shorten_above, len(log) - limits.keep_recent
    if longest is None:
        return []
    known, keep = log.shortened.keys(), short_length(longest)
    return [
        entry
        for entry in results(log, view.frontier_row, last)
        if entry.tokens > longest
        and entry.origin not in view.shortened
        and (entry.origin, keep, entry.tokens) not in known
    ]


def shorten_ahead(log: Log, entries: Iterable[Entry], limits: Limits) -> None:
    """Shortens these results before a plan needs them; a thread may do it."""
    keep = short_length(limits.shorten_above or 0)  # where it is None, there are no entries
    for entry in entries:
        _cut(log, entry, keep)


def results(log: Log, first: int, end: int) -> Iterator[Entry]:
    """Yields the results in history rows [first, end) that may be shortened."""
    for group in log.from_row(first):
        if group.start >= end:
            break
        for entry in log.entries(group):
            if entry.origin is not None and entry.origin < end and entry.tokens > HARD_FLOOR:
                row = log.rows[entry.origin]
                if row.result_ids and not row.pinned:
                    yield entry
