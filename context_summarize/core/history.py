"""Every row of a conversation in order, with what follows from the rows alone: groups, sizes, hashes. It only grows."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from itertools import accumulate

from context_summarize.background import LONG, copied
from context_summarize.core.groups import Group, Grouper, group_hash, render_group
from context_summarize.messages.reading import rough_size
from context_summarize.messages.rows import SYSTEM_ROLES, JsonRow, Row, compact_json
from context_summarize.redaction import Redact
from context_summarize.tokens.measure import Count, measure
from context_summarize.transcript.rows import RenderedRow

_HASH_BYTES = 32


class History:
    """Rows as they came, and what follows from them alone.

    Groups are numbered twice: by position among all closed groups, and, where "rendered group" is said, among those
    that the summariser is shown. Segments, nodes and frontiers count rendered groups, because hosts drop the rest.
    """

    def __init__(self, *, recall: bool = False) -> None:
        self.recall = recall
        """True where summaries and shortened rows tell the model how to ask for the originals."""
        self.rows: list[Row] = []
        self.first_user: JsonRow | None = None
        """The first user message."""
        self.tokens = array("q")
        """Tokens per row; -1 while not counted."""
        self.groups: list[Group] = []
        self.open_groups: list[Group] = []
        """The run of open calls at the end, as one group, or nothing."""
        self.rendered: array[int] = array("q")
        """Position in `groups` of each rendered group."""
        self.rendered_rows: array[int] = array("q")
        """Rendered rows that stand before each rendered group."""
        self.users: array[int] = array("q")
        """Rendered groups that are user messages."""
        self.pins: array[int] = array("q")
        """Position in `groups` of each group that stays verbatim beside its summary; of equal system rows the first."""
        self._system_texts: set[str] = set()
        self._rendered_total = 0
        self._grouper = Grouper()
        self._hashes = bytearray()
        """The hashes of the rendered groups, one after the other: hosts save these rows, so that records find them."""
        self._hashed = 0
        """How many of them are there; the others are zeros. Threads that find the same ones write the same."""

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, row: Row, tokens: int = -1) -> None:
        """Append one analysed row; `tokens` -1 leaves the counting for later."""
        index = len(self.rows)
        self.rows.append(row)
        if row.user and self.first_user is None:
            self.first_user = row.raw
        self.tokens.append(tokens)
        for group in self._grouper.feed(index, row):
            self._close(group)
        self.open_groups = self._grouper.open_groups()

    def _is_repeated(self, row: Row) -> bool:
        """True for a system row whose equal stands before it: hosts may add their prompt again and again."""
        if row.role not in SYSTEM_ROLES:
            return False
        text = compact_json([row.role, row.raw.get("content")])
        is_repeated = text in self._system_texts
        self._system_texts.add(text)
        return is_repeated

    def _close(self, group: Group) -> None:
        position = len(self.groups)
        repeated = [self._is_repeated(row) for row in self.rows[group.start : group.end] if row.pinned]
        self.groups.append(group)  # before its numbers, because a thread may be reading them
        if not all(repeated):
            self.pins.append(position)
        if group.rendered:
            self.rendered_rows.append(self._rendered_total)
            self._rendered_total += sum(self.rows[i].rendered for i in range(group.start, group.end))
            self._hashes += bytes(_HASH_BYTES)
            self.rendered.append(position)
            if group.user:
                self.users.append(len(self.rendered) - 1)

    def opens_with_user(self) -> bool:
        """True if the first row that is neither system nor developer is a user message."""
        return next((row.user for row in self.rows if row.role not in SYSTEM_ROLES and not row.hidden), False)

    @property
    def rows_of_newest_group(self) -> int:
        """How many rows its newest group has."""
        groups = self.open_groups or self.groups[-1:]
        return len(self) - groups[0].start if groups else 0

    def rendered_group(self, ordinal: int) -> Group:
        """The rendered group of this number."""
        return self.groups[self.rendered[ordinal]]

    def render(
        self, group: Group, *, number: int = 1, segment_tokens: int | None = None, redact: Redact | None = None
    ) -> list[RenderedRow]:
        """The rendered rows of a group of this history; see `render_group`."""
        rows, first = self.rows, self.first_user
        return render_group(rows, group, number=number, segment_tokens=segment_tokens, redact=redact, first_user=first)

    def message_range(self, first_group: int, end_group: int) -> tuple[int, int]:
        """(first, last) rendered row of a run of rendered groups, counted from 1."""
        last = self.rendered_rows[end_group] if end_group < len(self.rendered_rows) else self._rendered_total
        return self.rendered_rows[first_group] + 1, last

    def group_of_message(self, number: int) -> int | None:
        """The rendered group that holds the rendered row of this number, counted from 1; None outside closed groups."""
        if not 1 <= number <= self._rendered_total:
            return None
        return bisect_right(self.rendered_rows, number - 1) - 1

    def closed_rows(self) -> int:
        """How many rendered rows stand in closed groups."""
        return self._rendered_total

    def row_after(self, ordinal: int, keep_from: int) -> int:
        """History row at which the verbatim part begins when rendered groups before `ordinal` are summarised.

        Rows that are not rendered and follow the last summarised one are dropped with it, as far as `keep_from` allows.
        """
        if ordinal == 0:
            return 0
        return max(self.rendered_group(ordinal - 1).end, min(self.row_of(ordinal), keep_from))

    def summarisable(self, keep_recent: int) -> int:
        """How many rendered groups lie wholly before the newest `keep_recent` rows; the newest group never does."""
        most = len(self.rendered) - (not self.open_groups)
        bound = len(self.rows) - keep_recent
        return max(0, min(most, bisect_right(self.rendered, bound, key=lambda at: self.groups[at].end)))

    def group_position(self, row: int) -> int:
        """Position of the first closed group that starts at or after this history row."""
        return bisect_right(self.groups, row - 1, key=lambda group: group.start)

    def row_of(self, ordinal: int) -> int:
        """History row at which the rendered group of this number starts; after the last, the open one, or the end."""
        if ordinal < len(self.rendered):
            return self.rendered_group(ordinal).start
        return self.open_groups[0].start if self.open_groups else len(self.rows)

    def number_of(self, row: int) -> int | None:
        """The number of a rendered row, counted from 1; None for one that is not rendered."""
        if not self.rows[row].rendered:
            return None
        if self.open_groups and row >= self.open_groups[0].start:
            before, start = self._rendered_total, self.open_groups[0].start
        else:
            ordinal = bisect_right(self.rendered, row, key=lambda at: self.groups[at].start) - 1
            before, start = self.rendered_rows[ordinal], self.rendered_group(ordinal).start
        return before + sum(self.rows[at].rendered for at in range(start, row + 1))

    def count_row(self, index: int, count: Count) -> int:
        """Tokens of a row; it is counted once."""
        if self.tokens[index] < 0:
            self.tokens[index] = measure(self.rows[index].raw, count)
        return self.tokens[index]

    def characters_from(self, row: int) -> int:
        """Characters to read of the rows from this one on, about, as far as it matters whether they are many."""
        raws = (self.rows[at].raw for at in range(row, len(self.rows)))
        sizes = accumulate(rough_size([raw.get("content"), raw.get("tool_calls")]) for raw in raws)
        total = 0
        for total in sizes:
            if total > LONG:
                break
        return total

    def backlog(self) -> int:
        """Characters of the rows whose groups have not been hashed, about."""
        return self.characters_from(self.row_of(self._hashed))

    def advance(self) -> None:
        """Hash the rendered groups that have come since the last time."""
        self._hash_until(len(self.rendered))

    def _hash_until(self, end: int) -> None:
        for ordinal in range(self._hashed, end):
            group = self.rendered_group(ordinal)
            digest = group_hash(self.render(group))
            self._hashes[ordinal * _HASH_BYTES : (ordinal + 1) * _HASH_BYTES] = digest
        self._hashed = max(self._hashed, end)

    def copy(self) -> History:
        """The history as it is now; rows may be added to this one meanwhile."""
        return copied(self, "_grouper")

    def _hash_of(self, ordinal: int) -> bytes:
        self._hash_until(ordinal + 1)
        return bytes(self._hashes[ordinal * _HASH_BYTES : (ordinal + 1) * _HASH_BYTES])

    def hash_of(self, ordinal: int) -> str:
        """The hash of one rendered group."""
        return self._hash_of(ordinal).hex()

    def hash_of_row(self, row: int) -> str:
        """The hash of one rendered row, whose group may still be open."""
        return group_hash(self.render(Group(row, row + 1, True, False))).hex()

    def find_group(self, number: int, hash_: str) -> int | None:
        """The rendered group of this hash, the nearest to this number; None without one."""
        same = (at for at in range(len(self.rendered)) if self.hash_of(at) == hash_)
        return min(same, key=lambda at: abs(at - number), default=None)

    def running_hash(self, seed: str, until: int) -> str:
        """The running hash after the rendered groups [0, until), uncut and unredacted."""
        self._hash_until(until)
        return hashlib.sha256(seed.encode() + self._hashes[: until * _HASH_BYTES]).hexdigest()

    def running_hashes(self, seed: str, until: int) -> list[str]:
        """The running hash after each of the rendered groups [0, until)."""
        running, found = hashlib.sha256(seed.encode()), []
        for ordinal in range(until):
            running.update(self._hash_of(ordinal))
            found.append(running.copy().hexdigest())
        return found
