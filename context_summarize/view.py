"""History + shown nodes → the rows of a request: pins, frames, shortened rows, pairs in order. Pure, with a cache."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .digest import format_ledger
from .elide import elide_row
from .history import Count, History, measure
from .messages import SOURCE, Shape, analyse, compact_json, copy_json, copy_shaped, is_hook, shape_of
from .outgoing import synthetic_result, view_row, without_continuation
from .recall import frame_hint, row_hint
from .rules import format_rules
from .segments import INVISIBLE, LINE_END
from .types import Group, JsonRow, Node, Summary

Frame = Callable[..., str]
"""Fills `frame.md`: called with text, first, last, count, level and recall, all strings."""

_ROLE = r"(?:system|developer|assistant|user|human|tool|function)"
_ROLE_LINE = re.compile(rf"\W*+{_ROLE}(?: (?:message|prompt|note|instructions?))?\W{{0,6}}:|(\W*+)(?:0 )?{_ROLE}\b")
"""`system:` begins a line of some transcripts, and so does `#0 system`, as group 1 tells."""
_TEMPLATE = re.compile(
    r"<\|[\w ]{1,40}\|>|\[/?(?:inst|sys|system)\]|<</?sys>>|</?(?:system|developer|assistant|user|instructions?)\b"
    r"|== {0,40}transcript"
)
"""Tokens and tags of chat templates, and our own fence."""
_LINE_ENDS = re.compile(rf"\r\n|[{LINE_END}]")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_LOOK_ALIKES = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d"
    "\u03b1\u03b5\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0131\u0251\u0261\u0578\u057d",
    "abekmhopctyxsijhldqwaenikmvoptuxiagnu",
)
"""Letters of other scripts that look like Latin ones, after case folding."""

CONTINUES = "(The conversation so far is summarised in the notes above; it goes on below.)"


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node with its text and the row that stands for it in the view."""

    node: Node
    summary: Summary
    row: JsonRow
    tokens: int
    """Size of the row, frame included."""
    line: bool = False
    """True when only one line of it is shown."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """What the last boundary decided. Nothing in it changes between boundaries."""

    nodes: tuple[ShownNode, ...] = ()
    frontier: int = 0
    """Rendered groups [0, frontier) are represented by nodes and pins."""
    frontier_row: int = 0
    """History rows from here on stand verbatim."""
    elided: Mapping[int, int] = field(default_factory=dict)
    """History row → tokens kept of it."""
    newest_user: int | None = None
    """Rendered group of the newest user message when the boundary was made."""
    boundary_rows: int = 0
    """Length of the history at the newest boundary; older rows lose their continuation id."""
    boundaries: int = 0


# --- rows of groups -------------------------------------------------------------------------------------------------


def hidden(history: History, index: int, factory: bool) -> bool:
    """Stored system rows of the host are hidden while a system prompt factory is set; hook rows are not."""
    row = history.rows[index]
    return factory and row.role == "system" and not is_hook(row.raw)


Entry = tuple[int | None, JsonRow, int]
"""(history row, view row, tokens); None for a synthetic result."""


def group_entries(
    history: History, group: Group, state: ViewState, count: Count, *, factory: bool = False
) -> list[Entry]:
    """What a view shows of one group: the call, all its results right after it, then what stood between.

    Of an open group (nothing has followed its calls yet) what stands between is held back until it closes: the
    results still to come would otherwise push it down, and the earlier view would be no prefix of the later one.
    """
    answers: dict[int, list[str]] = {}
    for index, call_id in group.answers:
        answers.setdefault(index, []).append(call_id)
    first: list[Entry] = []
    results: list[Entry] = []
    between: list[Entry] = []
    for index in range(group.start, group.end):
        if hidden(history, index, factory):
            continue
        row = view_row(history.rows[index], answers.get(index))
        if row is None:
            continue
        if index < state.boundary_rows:
            row = without_continuation(row)
        keep = state.elided.get(index)
        history.count_rows(index, index + 1, count)
        size = history.tokens[index]
        if keep is not None and size > keep:
            row = elide_row(row, keep, count, row_hint(history, index) if history.recall else "")
            size = measure(row, count)
        place = first if index == group.start else results if index in answers else between
        place.append((index, row, size))
    synthetic: list[Entry] = [(None, row, measure(row, count)) for row in map(synthetic_result, group.missing)]
    return [*first, *results, *synthetic, *([] if group.open else between)]


# --- nodes and pins -------------------------------------------------------------------------------------------------


def node_text(summary: Summary) -> str:
    """Text, standing rules and ledger as they are shown; what there is not takes no room."""
    parts = (summary.text, format_rules(summary.rules, summary.text), format_ledger(summary.ledger))
    return "\n\n".join(part for part in parts if part)


def one_line(history: History, node: Node) -> str:
    """What is left of a node where even its summary does not fit."""
    first, last = history.message_range(node.first_group, node.end_group)
    return f"[messages {first}–{last} of the conversation, {last - first + 1} in all: no room for a summary]"


def _folded(line: str) -> str:
    """The line as it looks: no invisible characters, accents or look-alikes, in lower case, each number as 0."""
    plain = unicodedata.normalize("NFKD", _INVISIBLE.sub("", line))
    plain = "".join(char for char in plain if not unicodedata.combining(char)).casefold().translate(_LOOK_ALIKES)
    return re.sub(r"\d+", "0", plain)


def _beginning(line: str) -> str:
    """The first words of a frame's line, by which a forged one is known; the line itself when it has few."""
    words = re.findall(r"\w+", line)
    return " ".join(words[:4]) if len(words) > 2 else line.strip()


def quoted(text: str, frame: Frame) -> str:
    """The text with "> " before each line that could pass for a line of its frame, of a role or of a transcript."""
    filled = frame(text="\0", first="0", last="0", count="0", level="0", recall="").replace("\0", "\n")
    marks = {_beginning(_folded(line)) for line in filled.split("\n")} - {""}

    def forged(line: str) -> bool:
        folded = _folded(line)
        words = " ".join(re.findall(r"\w+", folded))
        role = _ROLE_LINE.match(folded)
        as_role = role is not None and (role[1] is None or "#" in role[1])
        return as_role or _TEMPLATE.search(folded) is not None or any(m in folded or m in words for m in marks)

    lines = _LINE_ENDS.split(text)
    found = [forged(line) for line in lines]
    if not any(found):
        return text
    return "\n".join(f"> {line}" if bad else line for line, bad in zip(lines, found, strict=True))


def show_node(history: History, node: Node, summary: Summary, frame: Frame, role: str, count: Count) -> ShownNode:
    """The row that stands for a node, and its size."""
    first, last = history.message_range(node.first_group, node.end_group)
    content = frame(
        text=quoted(node_text(summary), frame),
        first=str(first),
        last=str(last),
        count=str(last - first + 1),
        level=str(node.level),
        recall=frame_hint(node.key) if history.recall else "",
    )
    return _shown(node, summary, content, (first, last), role, count)


def one_line_size(history: History, node: Node, role: str, count: Count) -> int:
    """Tokens of a node's row as a single line."""
    return measure({"role": role, "content": one_line(history, node)}, count)


def show_one_line(history: History, shown: ShownNode, count: Count) -> ShownNode:
    """The same node as a single line: range and count."""
    span = history.message_range(shown.node.first_group, shown.node.end_group)
    line = _shown(shown.node, shown.summary, one_line(history, shown.node), span, shown.row["role"], count)
    return replace(line, line=True)


def _shown(node: Node, summary: Summary, content: str, span: tuple[int, int], role: str, count: Count) -> ShownNode:
    metadata = {
        "source": SOURCE,
        "ephemeral": True,
        "key": node.key,
        "level": node.level,
        "messages": [span[0], span[1]],
    }
    row: JsonRow = {"role": role, "content": content, "metadata": metadata}
    return ShownNode(node, summary, row, measure(row, count))


def pinned_groups(
    history: History, frontier_row: int, frontier: int, newest_user: int | None, *, factory: bool
) -> list[Group]:
    """Groups before the frontier that stand verbatim as well, in order; equal system rows once."""
    found: dict[int, Group] = {}
    seen: set[str] = set()
    for index in history.pins:
        if index >= frontier_row:
            break
        row = history.rows[index]
        if hidden(history, index, factory):
            continue
        if row.role in ("system", "developer"):
            text = compact_json([row.role, row.raw.get("content")])
            if text in seen:
                continue
            seen.add(text)
        group = history.group_of(index)
        if group is not None:
            found[group.start] = group
    users = [history.users[0] if history.users else None, newest_user]
    for ordinal in users:
        if ordinal is not None and ordinal < frontier:
            group = history.rendered_group(ordinal)
            found[group.start] = group
    return [found[start] for start in sorted(found)]


def first_user_row(history: History) -> int | None:
    """History row of the first user message."""
    return history.rendered_group(history.users[0]).start if history.users else None


def opening_row() -> JsonRow:
    """What a view opens with where it would open with an assistant row, which some providers refuse."""
    return {"role": "user", "content": CONTINUES, "metadata": {"source": SOURCE, "ephemeral": True}}


# --- the view -------------------------------------------------------------------------------------------------------


class View:
    """The rows of one view state, kept up to date as the history grows: closed groups are converted once.

    `rows()` copies what it hands out down to its content blocks.
    """

    def __init__(self, history: History, state: ViewState, count: Count, *, factory: bool) -> None:
        self.state = state
        self.factory = factory
        self._history = history
        self._count = count
        self._rows: list[JsonRow] = []
        self._shapes: list[Shape] = []
        self._sizes: list[int] = []
        self._open: tuple[int, list[tuple[JsonRow, int]]] = (-1, [])
        """Version of the history, and the rows of its open call then."""
        self.tokens = 0
        self._next_group = history.group_position(state.frontier_row)
        self._settled = not state.boundaries
        for row, size in self._head():
            self._append(row, size)

    def _head(self) -> Iterator[tuple[JsonRow, int]]:
        """Nodes in order, each with the pins of its range before it."""
        state, history = self.state, self._history
        pins = pinned_groups(history, state.frontier_row, state.frontier, state.newest_user, factory=self.factory)
        for shown in state.nodes:
            end = history.rendered_group(shown.node.end_group - 1).end
            while pins and pins[0].start < end:
                yield from self._group(pins.pop(0))
            yield shown.row, shown.tokens
        for group in pins:
            yield from self._group(group)

    def _group(self, group: Group) -> list[tuple[JsonRow, int]]:
        entries = group_entries(self._history, group, self.state, self._count, factory=self.factory)
        return [(row, size) for _, row, size in entries]

    def _append(self, row: JsonRow, size: int) -> None:
        if not self._settled and row["role"] not in ("system", "developer"):
            self._settled = True
            if not _opens(row):
                self._append(*self._opening())
        self._rows.append(row)
        self._shapes.append(shape_of(row))
        self._sizes.append(size)
        self.tokens += size

    def _opening(self) -> tuple[JsonRow, int]:
        row = opening_row()
        return row, measure(row, self._count)

    def refresh(self) -> None:
        """Take in the groups that have closed since the last time."""
        groups = self._history.groups
        while self._next_group < len(groups):
            for row, size in self._group(groups[self._next_group]):
                self._append(row, size)
            self._next_group += 1

    def _open_rows(self) -> list[tuple[JsonRow, int]]:
        version = self._history.version
        if self._open[0] != version:
            self._open = (version, self._make_open_rows())
        return self._open[1]

    def _make_open_rows(self) -> list[tuple[JsonRow, int]]:
        rows = [entry for group in self._history.open_groups() for entry in self._group(group)]
        if rows and not self._settled and not _opens(rows[0][0]):
            return [self._opening(), *rows]
        return rows

    def size(self) -> int:
        """Tokens of the view, system prompt aside."""
        self.refresh()
        return self.tokens + sum(size for _, size in self._open_rows())

    def rows(self, system_prompt: str | None) -> list[JsonRow]:
        """A copy of the rows, system prompt first."""
        self.refresh()
        head = [{"role": "system", "content": system_prompt}] if system_prompt else []
        closed = map(copy_shaped, self._rows, self._shapes)
        return [*head, *closed, *(copy_json(row) for row, _ in self._open_rows())]

    def __len__(self) -> int:
        self.refresh()
        return len(self._rows) + len(self._open_rows())

    def largest(self, system_tokens: int = 0, most: int = 3) -> list[dict[str, Any]]:
        """The largest rows, as events name them: position in the view, role, tokens."""
        self.refresh()
        head = [{"row": 0, "role": "system", "tokens": system_tokens}] if system_tokens else []
        rows = [*zip(self._rows, self._sizes, strict=True), *self._open_rows()]
        found = [
            {"row": at, "role": row["role"], "tokens": size} for at, (row, size) in enumerate(rows, start=len(head))
        ]
        return sorted([*head, *found], key=lambda item: -item["tokens"])[:most]


def _opens(row: JsonRow) -> bool:
    """True for a user message: role user, no hook row, no tool result in it."""
    return row["role"] == "user" and not is_hook(row) and not _results_of(row)


def opens_with_user(rows: Iterable[JsonRow]) -> bool | None:
    """Whether the first row that is neither system nor developer is a user message; None when there is none."""
    for row in rows:
        if row["role"] not in ("system", "developer"):
            return _opens(row)
    return None


def pairs_intact(rows: Sequence[JsonRow]) -> list[str]:
    """What breaks rule 2 in a view: results without their call before them, calls without their results right after.

    Calls at the very end may be open. Used by the command line's checks and by tests of users' own modules.
    """
    problems: list[str] = []
    waiting: list[str] = []
    for at, row in enumerate(rows):
        results = _results_of(row)
        for call_id in results:
            if call_id in waiting:
                waiting.remove(call_id)
            else:
                problems.append(f"row {at}: result {call_id!r} without its call")
        if not results:
            problems += [f"row {at}: call {call_id!r} has no result" for call_id in waiting]
            waiting = _calls_of(row)
    return problems


def _results_of(row: JsonRow) -> list[str]:
    if row["role"] == "tool":
        return [row["tool_call_id"]]
    content = row.get("content")
    blocks = content if isinstance(content, list) and row["role"] == "user" else []
    return [b["tool_call_id"] for b in blocks if isinstance(b, dict) and b.get("type") == "tool_result"]


def _calls_of(row: JsonRow) -> list[str]:
    return [call.id for call in analyse(row).calls]
