"""The view: the rows of a request, as a function of a log, the texts by key, and a cut. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from context_summarize.core.cut import Cut
from context_summarize.core.entries import HARD_FLOOR, Entry, Group, shortened_row
from context_summarize.core.frames import no_summary, opening_entry, row_hint, summary_entry
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.parts import parts_of
from context_summarize.messages.reading import is_hook, is_instruction
from context_summarize.messages.rows import SHOWN, SYSTEM_ROLES, JsonRow, copy_json
from context_summarize.messages.view_rows import unbound
from context_summarize.tokens.measure import measure

TextOf = Callable[[Node], Summary | None]
"""Returns the text of a node as a cut shows it; None while there is none. Starts nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The rows of a request, in their order. They are shared: callers must not change them."""

    texts: Mapping[Node, Summary]
    """What represents the summarised groups. In a view that is shown every node has a text."""
    top: Sequence[Entry]
    """The rows of the nodes, each after the rows of its range that are shown verbatim as well."""
    thread: Entry | None = None
    newest: Sequence[Entry]
    """The newest user message, if it is summarised, and what the user has pinned after it."""
    verbatim: Sequence[Entry]
    open: Sequence[Entry]
    """The calls at the end that may still get results, and the results so far."""
    left: int
    """Tokens of the rows that were there when the view last changed otherwise than by growth."""
    shortened: Set[int]
    """The log's rows that are shown cut."""

    @property
    def head(self) -> list[Entry]:
        """The rows before the verbatim part."""
        return [*self.top, *([self.thread] if self.thread else []), *self.newest]

    @property
    def entries(self) -> list[Entry]:
        """All rows."""
        return [*self.head, *self.verbatim, *self.open]

    @property
    def tokens(self) -> int:
        """The size, without the system prompt."""
        return sum(entry.tokens for entry in self.entries)

    @property
    def system_tokens(self) -> int:
        """Tokens of the system rows, which providers send separately."""
        return sum(entry.tokens for entry in (*self.head, *self.verbatim) if entry.row["role"] == "system")

    def with_thread(self, thread: Entry | None) -> View:
        """Returns the view with this row between the summaries and the verbatim part."""
        return replace(self, thread=thread, left=self.left + (thread.tokens if thread else 0))

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


def view(log: Log, cut: Cut, text_of: TextOf, *, hides_system: bool = False) -> View:
    """Returns the view of a cut, without its thread.

    Args:
        hides_system: True if a prompt of the host's factory replaces stored system rows.
    """
    rows = Rows(log, cut, hides_system=hides_system)
    texts = texts_of(nodes_of(log, cut), text_of)
    before, behind = rows.around_thread()
    top = [*top_rows(rows, before, texts)]
    newest = [entry for group in behind for entry in rows.of(group)]
    groups = [(group, rows.of(group)) for group in log.from_row(rows.first)]
    verbatim = [entry for group, entries in groups if not group.open for entry in entries]
    there = [entry for group, entries in groups if group.start < rows.since and not group.open for entry in entries]
    open_rows = [entry for group, entries in groups if group.open for entry in entries]
    return View(
        texts=texts,
        top=top,
        newest=newest,
        verbatim=verbatim,
        open=open_rows,
        left=sum(entry.tokens for entry in (*top, *newest, *there)),
        shortened=rows.cut_rows([*top, *newest, *verbatim, *open_rows]),
    )


def nodes_of(log: Log, cut: Cut) -> tuple[Node, ...]:
    """Returns the nodes that represent the groups which a cut summarises, the oldest first."""
    if not cut.groups:
        return ()
    parts = parts_of(log, cut.ends)
    if parts.end < cut.groups:
        parts.take_in()
    return parts.tree(cut.groups)


def first_row(log: Log, cut: Cut) -> int:
    """Returns the row at which the verbatim part begins.

    Unrendered rows right after the summarised groups are left out too, unless they were among the newest rows.
    """
    if not cut.groups:
        return 0
    kept_from = log.row_after_number(cut.rows) - cut.keep_recent
    return max(log.rendered_group(cut.groups - 1).end, min(log.row_of(cut.groups), kept_from))


def texts_of(nodes: Iterable[Node], text_of: TextOf) -> dict[Node, Summary]:
    """Returns the nodes that have a text, with it."""
    return {node: text for node in nodes if (text := text_of(node)) is not None}


def top_rows(rows: Rows, beside: list[Group], texts: Mapping[Node, Summary]) -> Iterator[Entry]:
    """Yields the row of each node after the verbatim groups of its range."""
    log, cut = rows.log, rows.cut
    if cut.since and not log.opens_with_user():
        yield opening_entry(log)
    for node, text in () if cut.is_bare else texts.items():
        end = log.rendered_group(node.end_group - 1).end
        while beside and beside[0].start < end:
            yield from rows.of(beside.pop(0))
        yield summary_entry(log, node, text)
    for group in beside:
        yield from rows.of(group)
    if cut.is_bare and cut.groups:
        yield no_summary(log, cut.groups)


class Rows:
    """The rows of a log as a cut shows them: which ones, whole or cut, with or without what binds them to a prefix."""

    def __init__(self, log: Log, cut: Cut, *, hides_system: bool = False) -> None:
        self.log, self.cut, self._hides_system = log, cut, hides_system
        self.first = first_row(log, cut)
        self.since = log.row_after_number(cut.since)
        """The row that was the next one when the view last changed otherwise than by growth."""
        self._first_user = log.row_of(log.users[0]) if log.users and log.users[0] < cut.groups else None
        self._bound_from = log.row_after_number(cut.bound_from)
        self._open_at = log.open_at(self._bound_from)
        """The row whose calls were open then."""
        made = log.row_after_number(cut.rows)
        users = bisect_left(log.users, made, key=log.row_of)
        self._newest_user = [at for at in log.users[max(1, users - 1) : users] if at < cut.groups]
        """The newest user message, if it is summarised; the first one keeps its place."""
        pinned = map(log.rendered_group, cut.pinned)
        self.pinned = {row for group in pinned for row in range(group.start, group.end)}

    def beside(self) -> list[Group]:
        """Returns the summarised groups that are shown verbatim as well, in order.

        They are the groups of pinned rows, the first and the newest user message, and what the user has pinned.
        """
        log, found = self.log, dict[int, Group]()
        for group in map(log.groups.__getitem__, log.always_verbatim):
            if group.start >= self.first:
                break
            if any(log.rows[at].pinned and not self._is_hidden(at) for at in range(group.start, group.end)):
                found[group.start] = group
        for ordinal in (*log.users[:1], *self.cut.pinned, *self._newest_user):
            if ordinal < self.cut.groups:
                group = log.rendered_group(ordinal)
                found[group.start] = group
        return [found[start] for start in sorted(found)]

    def around_thread(self) -> tuple[list[Group], list[Group]]:
        """Returns them in two: from the newest user message on they stand behind the thread, the others before it."""
        beside, from_row = self.beside(), min(map(self.log.row_of, self._newest_user), default=self.first)
        return [one for one in beside if one.start < from_row], [one for one in beside if one.start >= from_row]

    def of(self, group: Group) -> Sequence[Entry]:
        """Returns the rows of a group as they are shown."""
        entries: Sequence[Entry] = self.log.entries(group)
        if group.start < self._bound_from:
            entries = [kept for entry in entries for kept in self._unbound(entry)]
        if self._hides_system:
            entries = [entry for entry in entries if entry.origin is None or not self._is_hidden(entry.origin)]
        return [self.short(entry) for entry in entries]

    def _unbound(self, entry: Entry) -> Sequence[Entry]:
        """Returns what is left of an entry from before the newest change of the view, without what binds it.

        Thinking in a turn whose calls were open then stays. So what a row loses is decided when the view changes.
        """
        if entry.origin is None or entry.row["role"] != "assistant":
            return [entry]
        keeps_thinking = entry.origin >= self._open_at

        def left() -> Iterator[Entry]:
            row = unbound(entry.row, keeps_thinking=keeps_thinking)
            if row is not None:
                yield entry if row == entry.row else Entry(entry.origin, row, measure(row, self.log.count))

        return self.log.made(entry.origin, ("unbound", keeps_thinking), left)

    def _is_hidden(self, index: int) -> bool:
        """Returns True for a system row that the host's own prompt replaces."""
        row = self.log.rows[index]
        return self._hides_system and row.role == "system" and not (is_hook(row.raw) or is_instruction(row.raw))

    def cut_rows(self, entries: Sequence[Entry]) -> frozenset[int]:
        """Returns which of these rows are cut."""
        whole = self.log.tokens
        return frozenset(e.origin for e in entries if e.origin is not None and e.tokens < whole[e.origin])

    def short(self, entry: Entry) -> Entry:
        """Returns an entry as it is shown, cut or whole."""
        log, row, size = self.log, entry.origin, entry.tokens
        keep = None if row is None else self._keep(row, size)
        if row is None or keep is None or size <= keep:
            return entry
        hint = row_hint(log.number_of(row)) if log.recall else ""
        cut = log.made(
            row, ("cut", keep, size), lambda: [Entry(row, *shortened_row(entry.row, size, keep, log.count, hint))]
        )
        return cut[0]

    def _keep(self, row: int, tokens: int) -> int | None:
        """Returns the tokens that are kept of a row; None if it is shown whole."""
        cut, number = self.cut, self.log.numbered(row)
        rules = (rule for rule in cut.shortened if number <= rule.until and tokens > rule.above)
        keeps = [
            rule.keep for rule in rules if (self.is_result(row) if rule.only_results else not self.is_instruction(row))
        ]
        if row == self._first_user and row not in self.pinned:
            keeps.append(max(HARD_FLOOR, cut.ends.lengths[-1].segment_tokens))
        return min(keeps, default=None)

    def is_result(self, row: int) -> bool:
        """Returns True for a result that may be cut."""
        facts = self.log.rows[row]
        return bool(facts.result_ids) and not facts.pinned and row not in self.pinned

    def is_instruction(self, row: int) -> bool:
        """Returns True for a system row of the host: half an instruction is worse than none."""
        facts = self.log.rows[row]
        return facts.role in SYSTEM_ROLES and facts.pinned
