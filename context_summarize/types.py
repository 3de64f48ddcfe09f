"""The nouns of the design as small frozen values: calls, rows, groups, segments, nodes, summaries, records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

JsonRow: TypeAlias = dict[str, Any]
"""A message as the host stores it: role, content and whatever else the host put there."""

FactKind: TypeAlias = Literal["user", "path", "url", "id", "amount", "command", "error"]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of an assistant row, whatever shape it came in."""

    id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one history row without reading its text again."""

    raw: JsonRow
    role: str
    rendered: bool
    """False for system, developer, hook and ephemeral rows: hosts do not save them."""
    user: bool
    """A user message: role user, no hook row, no tool result in it."""
    pinned: bool
    """Host system and developer rows, and rows marked critical."""
    ephemeral: bool
    calls: tuple[Call, ...]
    result_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The smallest run of history rows that may not be cut: [start, end)."""

    start: int
    end: int
    rendered: bool
    """True when at least one of its rows is rendered; a group of several rows always is."""
    user: bool
    """True for the single row of a user message."""
    answers: tuple[tuple[int, str], ...] = ()
    """(row, call id) of each result that answers a call of the group, in order; results not named here are orphans."""
    open: bool = False
    """True while calls of it may still be answered."""
    missing: tuple[Call, ...] = ()
    """Abandoned calls: passed over by a later user or assistant row before a result came."""


@dataclass(frozen=True, slots=True)
class RenderedRow:
    """One history row as the summariser is shown it."""

    number: int
    """Counted from 1 within its segment."""
    role: str
    name: str | None
    """Tool name of a result, when it is known."""
    text: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A closed run of rendered groups."""

    index: int
    first_group: int
    end_group: int
    """Groups [first_group, end_group), counted over rendered groups."""
    segment_tokens: int
    summary_tokens: int
    """The sizes in force when the segment was cut."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something exact that prose tends to lose."""

    kind: FactKind
    value: str
    count: int = 1
    """How often it occurs in the rows that it was taken from."""
    said: bool = False
    """True once the prose of a summary has held it: a model has found it worth writing down."""


@dataclass(frozen=True, slots=True)
class Node:
    """The address of one summary: what it stands for, not its text."""

    key: str
    level: int
    index: int
    """Position among the regular nodes of its level; -1 for a rest node."""
    first_group: int
    end_group: int
    summary_tokens: int
    segment_tokens: int = 0
    """At level 0 the segment length in force, which decides how long tool results were cut; else 0."""
    children: tuple[Node, ...] = ()
    """Empty at level 0."""
    focus: str | None = None

    @property
    def place(self) -> tuple[str, int, int]:
        """Key and range: segments of equal text share a key, and so a summary, but not a place in the view."""
        return self.key, self.first_group, self.end_group

    @property
    def is_rest(self) -> bool:
        """True when the node stands for a run that is not (yet) a regular one."""
        return self.index < 0


@dataclass(frozen=True, slots=True)
class Summary:
    """The text of a node, with what is known of how it was made."""

    key: str
    level: int
    text: str
    """The model's words (or the digest's)."""
    ledger: tuple[Fact, ...]
    """Exact values that the text does not hold."""
    tokens: int
    """Size of text, rules and ledger as shown, in tokens."""
    source_tokens: int
    digest: bool = False
    """Made by code because no model summary could be had; never stored."""
    provider: str | None = None
    model: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: str | None = None
    created: float = 0.0
    """Seconds since the epoch."""
    coverage: float = 1.0
    """Share of the source's identifiers that text and ledger hold, 0…1."""
    rules: tuple[str, ...] = ()
    """Standing rules of the user in the user's own words, oldest first; they stand between text and ledger."""


@dataclass(frozen=True, slots=True)
class BoundaryRecord:
    """A committed boundary, found again by the running hash of the rendered rows before its frontier."""

    digest: str
    """Running hash of the rendered groups [0, frontier_group)."""
    frontier_group: int
    rendered_groups: int
    """Rendered groups in the history when the boundary was committed."""
    segment_tokens: int
    summary_tokens: int
    nodes: tuple[Node, ...]
    elided: tuple[tuple[int, int, int, str], ...] = ()
    """(rendered group, row within the group, tokens kept, hash of the group) of each shortened row."""
    newest_user: int | None = None
    """Rendered group of the newest user message when the boundary was made."""
    created: float = 0.0
