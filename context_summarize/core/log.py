"""The log: every row of a conversation in order, and all that is computed from the rows alone. It only grows."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from context_summarize.background import LONG
from context_summarize.core.entries import Entry, Group, Grouper, group_entries
from context_summarize.core.nodes import Node
from context_summarize.messages.reading import rough_size
from context_summarize.messages.rows import SYSTEM_ROLES, Row, compact_json
from context_summarize.redaction import Redact, redact_known
from context_summarize.tokens.measure import Count, measure
from context_summarize.transcript.groups import PartRow, read_group

if TYPE_CHECKING:
    from context_summarize.core.parts import Ends, Forced, Parts


class Rendering(NamedTuple):
    """A group as a summariser reads it."""

    rows: list[PartRow]
    length: int
    """See `stable_length`."""


class Log:
    """The rows as they came, their groups, sizes and hashes.

    A group has a position among all closed groups. A rendered group, one that the summariser reads, also has an ordinal
    among the rendered groups. Segments, nodes and frontiers use the ordinal: it is the same after a resume, because
    hosts save all rendered rows.

    Sizes, entries and hashes are computed at the first call. Sizes and hashes stay; `forget_before` drops entries. A
    thread may compute them ahead; if another thread computes the same one meanwhile, it gets the same value.

    Args:
        count: returns the tokens of a text.
        redact: removes secrets from rendered text; None = leaves them in.
        recall: True if summaries and shortened rows say how the model reads the originals.
        summary_role: role of the rows that represent the summarised part.
        hashes: of the templates for segments and for merges, which are parts of the keys.
    """

    def __init__(
        self,
        count: Count,
        redact: Redact | None = None,
        *,
        recall: bool = False,
        summary_role: str = "system",
        hashes: tuple[str, str] = ("", ""),
    ) -> None:
        self.count, self.redact, self.hashes = count, redact, hashes
        self.redact_for_keys = redact and redact_known  # the user's own patterns may be too slow to search a text
        self.recall, self.summary_role = recall, summary_role
        self.rows: list[Row] = []
        self.tokens = array("q")  # -1 while not counted
        self._numbers = array("q")
        """For each row, how many rows are rendered up to it."""
        self.groups: list[Group] = []
        self.open_groups: list[Group] = []
        """The run of open calls at the end, as one group, or nothing."""
        self.rendered: array[int] = array("q")
        """Position in `groups` of each rendered group."""
        self.users: array[int] = array("q")
        """Rendered groups that are user messages."""
        self.always_verbatim: array[int] = array("q")
        """Positions in `groups` of the groups that are always shown verbatim; of equal system rows only the first."""
        self._made: dict[tuple[int, tuple[object, ...]], tuple[Entry, ...]] = {}
        """A cache: see `made`."""
        self.parts: dict[Ends, Parts] = {}
        """A cache: see `parts_of`."""
        self.leaves: dict[tuple[int, int, Forced | None], Node] = {}
        """A cache: leaves, by first group, tokens of a segment, and whether and where they end early."""
        self.readings: dict[tuple[int, int], Rendering] = {}
        """A cache: groups that are in no leaf yet, by number and tokens of a segment."""
        self._hashes: dict[int, bytes] = {}
        """A cache: the hashes of rendered groups."""
        self._system_texts, self._grouper = set[str](), Grouper()

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, row: Row, tokens: int = -1) -> None:
        """Appends one analysed row; `tokens` -1 leaves the counting for later."""
        index = len(self.rows)
        self.rows.append(row)
        self._numbers.append((self._numbers[-1] if index else 0) + row.rendered)
        self.tokens.append(tokens)
        for group in self._grouper.feed(index, row):
            self._close(group)
        self.open_groups = self._grouper.open_groups()

    def _is_repeated(self, row: Row) -> bool:
        """Remembers a system row; returns True if an equal one came before: hosts may add their prompt repeatedly."""
        if row.role not in SYSTEM_ROLES:
            return False
        text = compact_json([row.role, row.raw.get("content")])
        is_repeated = text in self._system_texts
        self._system_texts.add(text)
        return is_repeated

    def _close(self, group: Group) -> None:
        position = len(self.groups)
        new = [row for row in self.rows[group.start : group.end] if row.pinned and not self._is_repeated(row)]
        self.groups.append(group)  # first: a thread that finds its position in `rendered` must find the group too
        if new:
            self.always_verbatim.append(position)
        first = self.rows[group.start]
        if first.rendered:
            self.rendered.append(position)
            if first.user:
                self.users.append(len(self.rendered) - 1)

    def opens_with_user(self) -> bool:
        """Returns True if the first row that is neither system nor developer is a user message."""
        return next((row.user for row in self.rows if row.role not in SYSTEM_ROLES and not row.hidden), False)

    def rendered_group(self, ordinal: int) -> Group:
        """Returns the rendered group of this number."""
        return self.groups[self.rendered[ordinal]]

    def from_row(self, row: int) -> list[Group]:
        """Returns all groups that start at or after this row, the open one included."""
        return [*self.groups[bisect_left(self.groups, row, key=lambda group: group.start) :], *self.open_groups]

    def row_of(self, ordinal: int) -> int:
        """Returns the first row of this rendered group; after the last one, that of the open group, or the end."""
        if ordinal < len(self.rendered):
            return self.rendered_group(ordinal).start
        return self.open_groups[0].start if self.open_groups else len(self.rows)

    def summarisable(self, keep_recent: int) -> int:
        """Returns how many rendered groups lie wholly before the newest `keep_recent` rows; never the newest group."""
        but_newest = len(self.rendered) if self.open_groups else len(self.rendered) - 1
        bound = len(self.rows) - keep_recent
        return max(0, min(but_newest, self.closed_before(bound)))

    def open_at(self, rows: int) -> int:
        """Returns the row with the calls that were open when the history had so many rows; `rows` if none were."""
        results = set[str]()
        for at in reversed(range(rows)):
            row = self.rows[at]
            if row.calls:
                return rows if results.issuperset(call.id for call in row.calls) else at
            if row.rendered and row.role in ("user", "assistant") and not row.result_ids:
                break
            results.update(row.result_ids)
        return rows

    def closed_before(self, row: int) -> int:
        """Returns how many rendered groups lie wholly before this row."""
        return bisect_right(self.rendered, row, key=lambda at: self.groups[at].end)

    def message_range(self, first_group: int, end_group: int) -> tuple[int, int]:
        """Returns the (first, last) message of a run of rendered groups."""
        first, last = self.rendered_group(first_group), self.rendered_group(end_group - 1)
        return self._numbers[first.start], self._numbers[last.end - 1]

    @property
    def closed_rendered_rows(self) -> int:
        """How many rendered rows the closed groups have."""
        return self._numbers[self.groups[-1].end - 1] if self.groups else 0

    def group_of_message(self, number: int) -> int | None:
        """Returns the rendered group that contains this message; None outside of closed groups."""
        if not 1 <= number <= self.closed_rendered_rows:
            return None
        return bisect_right(self.rendered, number, key=lambda at: self._numbers[self.groups[at].start]) - 1

    @property
    def rendered_rows(self) -> int:
        """How many rendered rows the log has."""
        return self._numbers[-1] if self._numbers else 0

    def numbered(self, row: int) -> int:
        """Returns how many rendered rows there are up to this row, itself included."""
        return self._numbers[row] if row >= 0 else 0

    def row_after_number(self, number: int) -> int:
        """Returns the row behind so many rendered rows."""
        return bisect_left(self._numbers, number) + 1 if number else 0

    def number_of(self, row: int) -> int | None:
        """Returns the number of a rendered row; None for one that is not rendered."""
        return self._numbers[row] if self.rows[row].rendered else None

    def characters_from(self, row: int, *, uncounted: bool = False) -> int:
        """Returns about how many characters the rows from this one on have. Counting ends above `LONG`.

        Args:
            uncounted: True to count only rows whose tokens are not known.
        """
        total = 0
        for at in range(row, len(self.rows)):
            if not uncounted or self.tokens[at] < 0:
                raw = self.rows[at].raw
                total += rough_size([raw.get("content"), raw.get("tool_calls")])
                if total > LONG:
                    break
        return total

    def count_row(self, index: int) -> int:
        """Returns the tokens of a row."""
        if self.tokens[index] < 0:
            self.tokens[index] = measure(self.rows[index].raw, self.count)
        return self.tokens[index]

    def entries(self, group: Group) -> tuple[Entry, ...]:
        """Returns the rows of a group as views show them whole."""
        return self.made(
            group.start,
            ("group", group.end, group.open),
            lambda: group_entries(self.rows, group, self.count_row, self.count),
        )

    def made(self, row: int, what: tuple[object, ...], make: Callable[[], Iterable[Entry]]) -> tuple[Entry, ...]:
        """Returns what `make` makes of this row, from a cache if it was made before; row -1 is none of the history."""
        found = self._made.get((row, what))
        if found is None:
            found = self._made[row, what] = tuple(make())
        return found

    def take_in(self, row: int) -> None:
        """Counts the tokens of all rows from this one on, and makes the entries of the groups that end behind it."""
        for index in range(row, len(self.rows)):
            self.count_row(index)
        for group in self.groups[bisect_right(self.groups, row, key=lambda group: group.end) :]:
            self.entries(group)

    def forget_before(self, row: int) -> None:
        """Drops what is made of rows before this one, and of none."""
        made = self._made.copy()  # a thread may be adding to it
        self._made = {key: found for key, found in made.items() if key[0] >= row}

    def read(self, group: Group, redact: Redact | None = None) -> list[PartRow]:
        """Returns the rendered rows of a group; see `read_group`."""
        answers = {at - group.start: calls for at, calls in group.answers.items()}
        first_user = self.rows[self.row_of(self.users[0])].raw if self.users else None
        return read_group(self.rows[group.start : group.end], answers, group.missing, redact, first_user)

    def hash_of(self, ordinal: int) -> bytes:
        """Returns the hash of one rendered group."""
        found = self._hashes.get(ordinal)
        if found is None:
            texts = compact_json([(row.title, row.text) for row in self.read(self.rendered_group(ordinal))])
            found = self._hashes[ordinal] = hashlib.sha256(texts.encode("utf-8", "surrogatepass")).digest()
        return found

    def find_group(self, number: int, hash_: str) -> int | None:
        """Returns the rendered group of this hash, the nearest to this number; None without one."""
        same = (at for at in range(len(self.rendered)) if self.hash_of(at).hex() == hash_)
        return min(same, key=lambda at: abs(at - number), default=None)

    def running_hashes(self, seed: str, until: int) -> list[str]:
        """Returns the running hash after each of the rendered groups [0, until), uncut and unredacted."""
        running, found = hashlib.sha256(seed.encode()), []
        for ordinal in range(until):
            running.update(self.hash_of(ordinal))
            found.append(running.copy().hexdigest())
        return found
