"""Feeds a recorded session to the manager as an agent loop would, and tells as data what happened: `ReplayResult`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from amplifier_core.message_models import Message

from .config import Config
from .errors import ContextSummarizeError, MessageError
from .events import POST_COMPACT, PRE_COMPACT
from .history import measure
from .host import provider_window, request_budget
from .manager import SummarizingContextManager
from .messages import copy_json, normalise
from .snapshot import Snapshot
from .store import MemoryStore
from .tokens import TokenCounter
from .types import JsonRow
from .view import pairs_intact

PROVIDER_GROUP = "amplifier.modules"
_PRIVATE = ("cache", "persistence")
_KERNEL_SECONDS = 0.2
"""A process that ends sooner after the loop may crash in a thread of amplifier-core's kernel."""


class SessionFileError(ContextSummarizeError):
    """A file holds no session that can be replayed; the text names file and line."""


class ProviderUnavailable(ContextSummarizeError):
    """The named provider is not installed or does not mount; the text says which are installed."""


# --- what is told ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BoundaryLine:
    """One boundary, as its events told it."""

    row: int
    """The assistant row, counted from 1, whose request made it."""
    before_tokens: int
    after_tokens: int
    segments: int
    """Stretches of history that were folded."""
    merged: int
    from_cache: int
    """Summaries that cost no provider call."""
    digests: int
    """Summaries shown that no model could be had for."""
    wait_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class RequestLine:
    """One request, as it would have gone out."""

    row: int
    """The assistant row, counted from 1, that answered it."""
    tokens: int
    rows: int


@dataclass(slots=True)
class Check:
    """One promise, and how often it was looked at and broken."""

    name: str
    unit: str
    """What `checked` and `broken` count."""
    meaning: str = ""
    """The promise in words."""
    checked: int = 0
    broken: int = 0
    first: str | None = None
    """The first problem."""

    @property
    def ok(self) -> bool:
        """True while nothing has broken it."""
        return not self.broken

    def note(self, problems: Sequence[str], checked: int = 1, broken: int | None = None) -> None:
        """Count what was looked at; the first problem is kept."""
        self.checked += checked
        if problems:
            self.broken += len(problems) if broken is None else broken
            self.first = self.first or problems[0]


@dataclass(slots=True)
class ReplayResult:
    """What a replay saw. Plain data: nothing in it is bound to the manager or to how it is printed."""

    provider: str
    budget: int
    """Tokens that one request may hold."""
    source: str = ""
    """What was replayed, such as the name of a file."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings that are not the default's; what may hold an address or a password is named without its value."""
    redact: bool | tuple[str, ...] = True
    """The setting of that name: what is taken out of the texts where they are shown to others."""
    threshold_tokens: int | None = None
    """Size of a request that makes a boundary; None where only a full budget does."""
    target_tokens: int = 0
    """Size that a boundary aims at."""
    window: int | None = None
    """Tokens of the context window that the budget comes from, where it comes from one."""
    messages: int = 0
    history_tokens: int = 0
    requests: int = 0
    largest_view: int = 0
    """Tokens of the largest view."""
    stable_rows: int = 0
    """Rows of each view that stood unchanged at the start of the next one, summed."""
    compared_rows: int = 0
    """Rows of each view that had a next one, summed."""
    provider_calls: int = 0
    failed_calls: int = 0
    provider_input_tokens: int = 0
    provider_output_tokens: int = 0
    seconds: float = 0.0
    boundaries: list[BoundaryLine] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    request_lines: list[RequestLine] = field(default_factory=list)
    last_view: list[JsonRow] = field(default_factory=list)
    last_sizes: list[int] = field(default_factory=list)
    """Tokens of each row of `last_view`."""
    snapshot: Snapshot | None = None
    """What the manager held at the end; None before it."""

    @property
    def stable_share(self) -> float:
        """Share of rows that a provider's prompt cache can take from the request before, 0…1."""
        return self.stable_rows / self.compared_rows if self.compared_rows else 1.0

    @property
    def failed(self) -> Check | None:
        """The first check that failed."""
        return next((check for check in self.checks if not check.ok), None)


# --- the file -------------------------------------------------------------------------------------------------------


def read_session(path: Path) -> list[JsonRow]:
    """The messages of a JSONL file, one a line; blank lines are skipped.

    Raises:
        SessionFileError: the file cannot be read, is empty, or a line is not UTF-8, not JSON or no message.
    """
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise SessionFileError(f"{path} is a directory; expected a file with one JSON message a line") from None
    except OSError as error:
        raise SessionFileError(f"{path} cannot be read: {error.strerror or error}") from None
    rows = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            rows.append(_read_line(line, f"{path}, line {number}"))
    if not rows:
        raise SessionFileError(f"{path} holds no messages; expected one JSON message a line")
    return rows


def _read_line(line: bytes, where: str) -> JsonRow:
    try:
        return normalise(json.loads(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise SessionFileError(f"{where} is not UTF-8 (byte {error.start + 1}); save the file as UTF-8") from None
    except MessageError as error:
        raise SessionFileError(f"{where} is no message: {error}") from None
    except json.JSONDecodeError as error:
        raise SessionFileError(f"{where} is not JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise SessionFileError(f"{where} is not JSON that can be read: {error}") from None


# --- the provider ---------------------------------------------------------------------------------------------------


class CountedProvider:
    """A provider that counts the calls that go through it; in all else it is the one it wraps."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self.calls = 0
        self.failed = 0
        self.input_tokens = 0
        self.output_tokens = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    async def complete(self, request: Any, **kwargs: Any) -> Any:
        """The provider's own answer."""
        self.calls += 1
        try:
            response = await self._provider.complete(request, **kwargs)
        except BaseException:  # a call that ran out of time is cancelled
            self.failed += 1
            raise
        usage = getattr(response, "usage", None)
        self.input_tokens += getattr(usage, "input_tokens", None) or 0
        self.output_tokens += getattr(usage, "output_tokens", None) or 0
        return response


@asynccontextmanager
async def mounted_provider(name: str) -> AsyncIterator[tuple[str, Any]]:
    """(name, provider) of an installed Amplifier provider module, mounted outside any session; cleaned up at the end.

    Args:
        name: the module's entry point in the group `amplifier.modules`, such as `provider-openai`.

    Raises:
        ProviderUnavailable: it is not installed, cannot be loaded, or mounts no provider.
    """
    found = {entry.name: entry for entry in entry_points(group=PROVIDER_GROUP)}
    if name not in found:
        installed = ", ".join(sorted(entry for entry in found if entry.startswith("provider-")))
        known = f"installed: offline (built in), {installed}" if installed else "only offline (built in) is installed"
        raise ProviderUnavailable(f"no provider module {name!r}; {known}")

    from amplifier_core.testing import MockCoordinator

    coordinator = MockCoordinator()  # type: ignore[no-untyped-call]
    try:
        try:
            mount = found[name].load()
            cleanup = await mount(coordinator, {})
        except Exception as error:
            raise ProviderUnavailable(f"{name} does not mount: {type(error).__name__}: {error}") from error
        if callable(cleanup):
            coordinator.register_cleanup(cleanup)
        mounted = coordinator.get("providers") or {}
        if not mounted:
            raise ProviderUnavailable(f"{name} mounted no provider; is its key set in the environment?")
        yield next(iter(mounted.items()))
    finally:
        await coordinator.cleanup()
        await asyncio.sleep(_KERNEL_SECONDS)


# --- the replay -----------------------------------------------------------------------------------------------------


async def replay(
    rows: Sequence[JsonRow],
    *,
    provider: Any,
    name: str,
    source: str = "",
    config: Config | None = None,
    token_budget: int | None = None,
    progress: Callable[[int, int], None] = lambda rows, boundaries: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> ReplayResult:
    """Feed the rows to a new manager, ask for a view before every assistant row, and check every view.

    Summaries are kept in memory, so that a replay finds none of an earlier one, unless `cache` says where else.

    Args:
        rows: messages as `read_session` gives them.
        provider: writes the summaries; its window gives the budget.
        name: the name under which `summary_provider` finds it.
        source: what is replayed, as a report names it.
        token_budget: tokens that a request may hold; None = what the provider's window gives.
        progress: called after every row with the rows fed and the boundaries made so far.
        clock, sleep: seconds, as the manager takes them.

    Raises:
        TemplateError: the prompt set of `config` is incomplete.
    """
    config = replace(config or Config(), persistence=None)  # what is replayed is no session's history
    counter = TokenCounter()
    await counter.load()
    counted = CountedProvider(provider)
    window = await provider_window(counted) if token_budget is None else None
    budget = await request_budget(config, token_budget, counted)
    result = ReplayResult(
        provider=name,
        budget=budget,
        source=source,
        settings=changed_settings(config),
        redact=config.redact,
        threshold_tokens=int(config.compact_threshold * budget) if config.auto_compact else None,
        target_tokens=int(config.target_usage * budget),
        window=window.context if window else None,
    )
    session = _Session({name: counted})
    audit = Audit(copy_json(list(rows)), result, counter.count)
    manager = SummarizingContextManager(
        session,
        config=config,
        store=MemoryStore() if config.cache in (None, "memory") else None,
        clock=clock,
        sleep=sleep,
    )
    manager.check_providers()
    started = clock()
    try:
        for number, row in enumerate(rows, 1):
            if row["role"] == "assistant":
                session.row = number
                view = await manager.get_messages_for_request(token_budget, provider=counted)
                audit.view(number, view, made_boundary=bool(session.boundaries))
            await manager.add_message(row)
            await asyncio.sleep(0)  # else Ctrl-C waits for the next provider call
            progress(number, len(session.boundaries))
        result.seconds = clock() - started
        audit.history(await manager.get_messages())
        result.snapshot = await manager.snapshot(result.last_view)
    finally:
        await manager.close()
    result.boundaries = session.boundaries
    result.provider_calls, result.failed_calls = counted.calls, counted.failed
    result.provider_input_tokens, result.provider_output_tokens = counted.input_tokens, counted.output_tokens
    return result


def changed_settings(config: Config) -> dict[str, Any]:
    """The settings that are not the default's, for readers: an address may hold a password, a path a name."""
    default = Config()
    given = {item.name: getattr(config, item.name) for item in fields(config)}
    changed = {key: value for key, value in given.items() if value != getattr(default, key)}
    return {key: "…" if key in _PRIVATE and value != "memory" else value for key, value in changed.items()}


class _Session:
    """As much of a coordinator as the manager asks for: the providers by name, and hooks that hear its events."""

    def __init__(self, providers: dict[str, Any]) -> None:
        self._providers = providers
        self._reason = ""
        self.row = 0
        self.boundaries: list[BoundaryLine] = []

    @property
    def hooks(self) -> _Session:
        return self

    def get(self, mount_point: str) -> Any:
        return self._providers if mount_point == "providers" else None

    async def emit(self, event: str, data: dict[str, Any]) -> None:
        if event == PRE_COMPACT:
            self._reason = data["reason"]
        elif event == POST_COMPACT:
            self.boundaries.append(
                BoundaryLine(
                    row=self.row,
                    before_tokens=data["tokens"] + data["tokens_saved"],
                    after_tokens=data["tokens"],
                    segments=data["segments"],
                    merged=data["merged"],
                    from_cache=data["from_cache"],
                    digests=data["digests"],
                    wait_ms=data["wait_ms"],
                    reason=self._reason,
                )
            )


class Audit:
    """Measures and checks what the manager hands out, by nothing but the rows themselves."""

    def __init__(self, fed: Sequence[JsonRow], result: ReplayResult, count: Callable[[str], int]) -> None:
        self._fed = fed
        self._opens = _opens(fed)
        self._result = result
        self._count = count
        self._previous: list[JsonRow] = []
        self._sizes: list[int] = []
        self._kept = Check("History intact", "messages", "every message is kept as it was added")
        self._paired = Check("Pairs intact", "views", "each call is followed by its results")
        self._opened = Check("User first", "views", "the conversation opens with a user")
        self._valid = Check("Valid rows", "rows", "Amplifier accepts each row")
        self._within = Check("Within budget", "views", "no request is too large")
        result.checks = [self._kept, self._paired, self._opened, self._valid, self._within]

    def view(self, number: int, rows: list[JsonRow], *, made_boundary: bool) -> None:
        """Take in the view that was asked for before row `number`."""
        result, where = self._result, f"the request before row {number}"
        same = _equal_prefix(self._previous, rows)
        if result.requests:
            result.stable_rows += same
            result.compared_rows += len(self._previous)
        result.requests += 1
        # Rows that are equal to those of the view before were looked at and measured with it.
        invalid = [
            f"{where}, view row {at}: {problem}"
            for at, row in enumerate(rows[same:], same)
            if (problem := _refused(row)) is not None
        ]
        self._valid.note(invalid, len(rows))
        problems = [] if invalid else pairs_intact(rows)
        self._paired.note([f"{where}, view {problem}" for problem in problems], broken=1)
        opens = _opens(rows) or not (made_boundary or self._opens)
        self._opened.note([] if opens else [f"{where} does not open with a user message"])
        self._sizes[same:] = [measure(row, self._count) for row in rows[same:]]
        tokens = sum(self._sizes)
        result.largest_view = max(result.largest_view, tokens)
        over = tokens > result.budget
        self._within.note([f"{where} holds {tokens:,} tokens, the budget is {result.budget:,}"] if over else [])
        result.request_lines.append(RequestLine(number, tokens, len(rows)))
        self._previous = result.last_view = rows
        result.last_sizes = list(self._sizes)

    def history(self, kept: Sequence[JsonRow]) -> None:
        """Compare what was fed with what the manager says it holds."""
        fed, result = self._fed, self._result
        result.messages = len(fed)
        result.history_tokens = sum(measure(row, self._count) for row in fed)
        pairs = enumerate(zip(fed, kept, strict=False), 1)
        changed = [f"message {at} is not what was added" for at, (added, held) in pairs if added != held]
        if len(kept) != len(fed):
            changed.append(f"{len(fed):,} messages were added, {len(kept):,} are kept")
        self._kept.note(changed, len(fed))


def _equal_prefix(earlier: Sequence[JsonRow], later: Sequence[JsonRow]) -> int:
    same = 0
    for a, b in zip(earlier, later, strict=False):
        if a != b:
            break
        same += 1
    return same


def _opens(rows: Sequence[JsonRow]) -> bool:
    """True when the first row beside the system's is a user row that is no tool result, or there is none."""
    first = next((row for row in rows if row["role"] not in ("system", "developer")), None)
    if first is None:
        return True
    content = first.get("content")
    kinds = [block.get("type") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return first["role"] == "user" and "tool_result" not in kinds


def _refused(row: JsonRow) -> str | None:
    """What the host's own message model says against a row."""
    try:
        Message(**row)
    except (ValueError, TypeError) as error:
        return " ".join(str(error).split())
    return None
