"""Asks the provider for one summary: request, retries, the gate, and pieces where the input is too large."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import tenacity
from amplifier_core.llm_errors import (
    AbortError,
    AuthenticationError,
    ConfigurationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    LLMTimeoutError,
    NotFoundError,
    QuotaExceededError,
    RateLimitError,
)
from amplifier_core.message_models import ChatRequest, Message

from .config import Config
from .digest import build_ledger, coverage, format_ledger
from .errors import SummaryUnavailable
from .gate import answer_text, refusal
from .prompts import PromptSet, PromptTemplate
from .segments import cut_middle
from .types import Fact, Summary

logger = logging.getLogger(__name__)

PURPOSE = "context-summarize"
TOTAL_DEADLINE = 240.0
"""Seconds that all attempts for one key may take together."""
MAX_REFUSALS = 3
"""Times that a key may be refused at the gate, two tries each; after that it is not asked for again."""
_THINKING_ROOM = 2_000
_CALL_OVERHEAD = 600
"""Tokens of a summary request beside its transcript: instructions, fence, wrapping."""

own_call: ContextVar[bool] = ContextVar("context_summarize_own_call", default=False)
"""True inside our own provider calls, so that their `llm:response` events are told from the host's."""

_TOO_LARGE = ("context window", "context length", "context_length", "maximum context", "too long", "too many tokens",
              "exceeds the context", "reduce the length", "input length")  # fmt: skip
_CONNECTION_NAMES = frozenset({"TransportError", "TimeoutException", "APIConnectionError", "APITimeoutError"})


@dataclass(frozen=True, slots=True)
class Job:
    """One summary to be made."""

    key: str
    level: int
    parts: tuple[str, ...]
    """What it stands for, in pieces that belong together: groups at level 0, children's texts above."""
    facts: tuple[Fact, ...]
    """Exact values of the source, in the ledger's order."""
    source_tokens: int
    summary_tokens: int
    focus: str | None = None

    @property
    def text(self) -> str:
        """The whole of it."""
        return "\n\n".join(self.parts)


@dataclass(frozen=True, slots=True)
class Target:
    """Who is asked."""

    provider: Any
    name: str
    model: str | None = None
    window: int | None = None
    """Tokens that one request may hold; None = unknown."""


class _TooLarge(Exception):
    """The provider refused the size of the input."""


class _Refused(Exception):
    """The gate refused the answer."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(slots=True)
class _Run:
    """What one key has used up so far."""

    started: float
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Any = None
    model: str | None = None


class Summarizer:
    """Turns jobs into summaries. Raises `SummaryUnavailable` and nothing else, cancellation aside."""

    def __init__(
        self,
        config: Config,
        prompts: PromptSet,
        count: Callable[[str], int],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._prompts = prompts
        self._count = count
        self._clock = clock
        self._sleep = sleep
        self._now = now
        self._slots = asyncio.Semaphore(config.max_concurrency)
        self._refusals: dict[str, int] = {}

    def forget_refusals(self) -> None:
        """Ask again for keys that were refused too often."""
        self._refusals.clear()

    async def make(self, job: Job, target: Target) -> Summary:
        """Ask for one summary.

        Raises:
            SummaryUnavailable: every attempt failed, or the answers were refused.
        """
        if self._refusals.get(job.key, 0) >= MAX_REFUSALS:
            raise SummaryUnavailable("refused too often; a digest stands for it", kind="refused", attempts=0)
        async with self._slots:
            # The deadline is for asking; waiting for a slot is not the provider's fault.
            run = _Run(self._clock())
            try:
                text = await self._text(job, target, run)
            except _Refused as error:
                self._refusals[job.key] = self._refusals.get(job.key, 0) + 1
                raise SummaryUnavailable(
                    f"the answer was refused: {error.kind}", kind=error.kind, attempts=run.attempts
                ) from error
            except _TooLarge as error:
                raise SummaryUnavailable(str(error), kind="too_large", attempts=run.attempts) from error
            except Exception as error:
                raise _unavailable(error, run.attempts) from error
        return self._summary(job, target, run, text)

    def _summary(self, job: Job, target: Target, run: _Run, text: str) -> Summary:
        ledger = build_ledger(job.facts, text, job.summary_tokens // 2, self._count)
        shown = f"{text}\n{format_ledger(ledger)}"
        return Summary(
            key=job.key,
            level=job.level,
            text=text,
            ledger=ledger,
            tokens=self._count(shown),
            source_tokens=job.source_tokens,
            provider=target.name,
            model=run.model or target.model,
            usage={"input_tokens": run.input_tokens, "output_tokens": run.output_tokens, "attempts": run.attempts},
            cost_usd=None if run.cost is None else str(run.cost),
            created=self._now(),
            coverage=coverage(job.facts, shown),
        )

    # --- whole or in pieces -----------------------------------------------------------------------------------------

    async def _text(self, job: Job, target: Target, run: _Run) -> str:
        size = self._count(job.text)
        limit = self._limit(job, target)
        if limit is not None and size > limit:
            return await self._in_pieces(job, target, run, limit)
        try:
            return await self._ask(job, job.text, self._template(job), target, run)
        except _TooLarge:
            # The window is not known, or smaller than its provider says.
            return await self._in_pieces(job, target, run, max(128, size * 5 // 8))

    def _limit(self, job: Job, target: Target) -> int | None:
        """Tokens of transcript that one request may carry; None when the window is unknown."""
        if target.window is None:
            return None
        return max(256, target.window - _CALL_OVERHEAD - self._room(job.summary_tokens, target, 1))

    def _room(self, summary_tokens: int, target: Target, times: int) -> int:
        """max_output_tokens: reasoning models spend output on thinking, so far more than is asked for in words."""
        room = 4 * summary_tokens + _THINKING_ROOM
        if target.window is not None:
            room = min(room, max(summary_tokens * 2, target.window // 4))
        return room * times

    async def _in_pieces(self, job: Job, target: Target, run: _Run, limit: int) -> str:
        """Summarise pieces one after the other, then join their texts by one merge call."""
        texts = [await self._piece(job, piece, target, run) for piece in cut_pieces(job.parts, limit, self._count)]
        if len(texts) == 1:
            return texts[0]
        return await self._ask(job, numbered(texts), self._prompts.merge, target, run, count=len(texts))

    async def _piece(self, job: Job, piece: str, target: Target, run: _Run) -> str:
        """One piece; when it is still too large for the provider, its head and tail, a count in between."""
        try:
            return await self._ask(job, piece, self._template(job), target, run)
        except _TooLarge:
            half = cut_middle(piece, len(piece.encode("utf-8", "surrogatepass")) // 3)
            return await self._ask(job, half, self._template(job), target, run)

    def _template(self, job: Job) -> PromptTemplate:
        return self._prompts.merge if job.level else self._prompts.segment

    # --- one question -----------------------------------------------------------------------------------------------

    async def _ask(
        self, job: Job, text: str, template: PromptTemplate, target: Target, run: _Run, count: int | None = None
    ) -> str:
        """Ask once, and once more with more room when the gate refuses the answer."""
        source = self._count(text)
        refused = ""
        for times in (1, 2):
            request = self._request(job, text, template, target, times, count or len(job.parts))
            response = await self._call(request, target, run)
            answer = answer_text(response)
            kind = refusal(response, answer, self._count(answer), source)
            if kind is None:
                return answer
            refused = kind
            logger.info("summary refused: key %s, %s, attempt %d", job.key[:12], kind, run.attempts)
        raise _Refused(refused)

    def _request(
        self, job: Job, text: str, template: PromptTemplate, target: Target, times: int, count: int
    ) -> ChatRequest:
        fence = fence_of(text)
        words = str(max(20, job.summary_tokens * 3 // 4))
        instructions = template.fill(words=words, fence=fence, count=str(count))
        focus = f"What follows should keep above all: {' '.join(job.focus.split())}\n\n" if job.focus else ""
        return ChatRequest(
            messages=[
                Message(role="system", content=instructions),
                Message(role="user", content=f"{focus}{fence}\n{escape_fence(text, fence)}\n{fence}"),
            ],
            max_output_tokens=self._room(job.summary_tokens, target, times),
            metadata={"purpose": PURPOSE, "stream": False},
            model=target.model,
        )

    async def _call(self, request: ChatRequest, target: Target, run: _Run) -> Any:
        """One answer, with retries of what may be retried."""
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(is_retryable),
            wait=_wait,
            stop=lambda state: self._out_of_time(state, run),
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(self._once, request, target, run)

    def _out_of_time(self, state: tenacity.RetryCallState, run: _Run) -> bool:
        left = TOTAL_DEADLINE - (self._clock() - run.started)
        return state.attempt_number >= self._config.retry_attempts or _wait(state) >= left

    async def _once(self, request: ChatRequest, target: Target, run: _Run) -> Any:
        left = TOTAL_DEADLINE - (self._clock() - run.started)
        if left <= 0:
            raise LLMTimeoutError(f"no time left of {TOTAL_DEADLINE:.0f} s", retryable=False)
        run.attempts += 1
        extra = {"model": target.model} if target.model else {}
        token = own_call.set(True)
        try:
            async with asyncio.timeout(min(left, self._config.request_timeout)):
                response = await target.provider.complete(request, **extra)
        except LLMError as error:
            if is_too_large(error):
                raise _TooLarge(str(error)) from error
            raise
        finally:
            own_call.reset(token)
        _add_usage(run, response)
        return response


# --- text ----------------------------------------------------------------------------------------------------------


def fence_of(text: str) -> str:
    """The delimiter that encloses a text: derived from its hash, so that no text can hold its own."""
    return f"=== transcript {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]} ==="


def escape_fence(text: str, fence: str) -> str:
    """The text with the delimiter inside it broken; lone surrogates, which no provider takes, become '?'."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return clean.replace(fence, fence.replace("===", "= ="))


def numbered(texts: Sequence[str]) -> str:
    """Summaries under a heading each, as the merge template is shown them."""
    return "\n\n".join(f"## Summary {at} of {len(texts)}\n{text}" for at, text in enumerate(texts, 1))


def cut_pieces(parts: Sequence[str], limit: int, count: Callable[[str], int]) -> list[str]:
    """The parts in as few runs of like size as fit `limit` tokens each; a part that alone does not is cut by text."""
    sized = [fragment for part in parts for fragment in _fragments(part, limit, count)]
    total = sum(size for _, size in sized)
    share = total / max(1, -(-total // limit))
    runs: list[list[str]] = [[]]
    done = length = 0
    for fragment, size in sized:
        # A run ends at the boundary nearest to its share of the whole, and before it would pass the limit.
        if runs[-1] and (length + size > limit or done + size / 2 > share * len(runs)):
            runs.append([])
            length = 0
        runs[-1].append(fragment)
        length += size
        done += size
    return ["\n\n".join(run) for run in runs if run]


def _fragments(part: str, limit: int, count: Callable[[str], int]) -> list[tuple[str, int]]:
    """A part with its size, or halves of it, and halves of those, until each is within the limit."""
    size = count(f"{part}\n\n")
    if size <= limit or len(part) < 2:
        return [(part, size)]
    middle = len(part) // 2
    return [*_fragments(part[:middle], limit, count), *_fragments(part[middle:], limit, count)]


# --- errors ---------------------------------------------------------------------------------------------------------


def is_too_large(error: BaseException) -> bool:
    """True when a provider says that the input does not fit; some say so as `InvalidRequestError`."""
    if isinstance(error, ContextLengthError):
        return True
    text = str(error).lower()
    return isinstance(error, InvalidRequestError) and any(words in text for words in _TOO_LARGE)


def is_retryable(error: BaseException) -> bool:
    """True for what may go away by itself: what the host's taxonomy marks so, timeouts, connection loss."""
    if isinstance(error, LLMError):
        return bool(error.retryable)
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    return any(cls.__name__ in _CONNECTION_NAMES for cls in type(error).__mro__)


def is_permanent(error: BaseException) -> bool:
    """True for what no retry mends: auth, quota, an unknown model, a wrong setup."""
    return isinstance(error, AuthenticationError | QuotaExceededError | NotFoundError | ConfigurationError)


_BACKOFF = tenacity.wait_exponential_jitter(initial=1, max=30, jitter=1)


def _wait(state: tenacity.RetryCallState) -> float:
    """Seconds to wait: what the provider asks for, else exponential with jitter."""
    error = state.outcome.exception() if state.outcome else None
    after = getattr(error, "retry_after", None)
    return max(0.0, float(after)) if isinstance(after, int | float) else float(_BACKOFF(state))


_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (QuotaExceededError, "quota"),
    (RateLimitError, "rate_limit"),
    (AuthenticationError, "auth"),
    (NotFoundError, "not_found"),
    (ConfigurationError, "configuration"),
    (ContentFilterError, "refusal"),
    (AbortError, "aborted"),
    (LLMTimeoutError, "timeout"),
    (TimeoutError, "timeout"),
    (InvalidRequestError, "invalid_request"),
    (LLMError, "unavailable"),
    (ConnectionError, "unavailable"),
)


def _unavailable(error: Exception, attempts: int) -> SummaryUnavailable:
    kind = next((word for cls, word in _KINDS if isinstance(error, cls)), "error")
    text = f"{type(error).__name__}: {error}"[:500]
    after = getattr(error, "retry_after", None)
    return SummaryUnavailable(
        text,
        kind=kind,
        attempts=attempts,
        retry_in_s=float(after) if isinstance(after, int | float) else None,
        permanent=is_permanent(error),
    )


def _add_usage(run: _Run, response: Any) -> None:
    usage = getattr(response, "usage", None)
    for name in ("input_tokens", "output_tokens"):
        value = getattr(usage, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            setattr(run, name, getattr(run, name) + value)
    cost = getattr(usage, "cost_usd", None)
    if cost is not None:
        run.cost = cost if run.cost is None else run.cost + cost
    marks = getattr(response, "metadata", None)
    model = getattr(response, "model", None) or (marks.get("model") if isinstance(marks, dict) else None)
    run.model = model if isinstance(model, str) else run.model
