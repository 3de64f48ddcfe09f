"""Calls of the examined model: within a time, again where that may help, with their usage, and the JSON in answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import tenacity
from amplifier_core.message_models import ChatRequest, ChatResponse, Message, ToolCall, ToolSpec

from context_summarize.background import error_text, within
from context_summarize.errors import CommandError
from context_summarize.host_types import Provider
from context_summarize.summaries.answer import read_answer
from context_summarize.summaries.call import LONGEST_WAIT
from context_summarize.summaries.failures import is_permanent, is_temporary, wait_seconds
from context_summarize.transcript.escaping import enclosed, fence_of

T = TypeVar("T")

_CHARACTERS = 4_000
"""Characters of an answer that are read: a model that rambles is cut off."""
_ATTEMPTS = 3
_FAILURES = 3
"""Failed calls in a row that end the exam."""
_OPENING = re.compile(r"[\[{]")
_AGAIN = "\n\nYour last answer was not of this form. Answer with the JSON alone."


class UnansweredError(Exception):
    """The model has not answered this call; the text says why."""


@dataclass(slots=True)
class Model:
    """The examined model, what its calls have used, and which of them failed. `used` is changed in place."""

    name: str
    provider: Provider
    seconds: float
    """Seconds that a call may take."""
    clean: Callable[[str], str]
    """Removes secrets."""
    used: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    """One for each question, answer or grade that is missing."""
    _failures: int = 0
    """Failed calls in a row."""

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Goes on after a call that is not answered, and keeps the error."""
        try:
            yield
        except UnansweredError as error:
            self.errors.append(str(error))

    async def ask(
        self, step: str, messages: Sequence[Message], most: int, tools: Sequence[ToolSpec] | None = None
    ) -> tuple[str, list[ToolCall]]:
        """Returns the text and the calls of an answer of at most this many tokens.

        Raises:
            UnansweredError: the model fails, is too slow, or says nothing.
            CommandError: no call can succeed, or several have failed in a row.
        """
        request = ChatRequest(
            messages=list(messages),
            tools=list(tools) if tools else None,
            max_output_tokens=most,
            metadata={"purpose": "exam", "step": step, "stream": False},
        )
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda error: is_temporary(error) and type(error) is not TimeoutError),
            wait=lambda state: min(LONGEST_WAIT, wait_seconds(state)),
            stop=tenacity.stop_after_attempt(_ATTEMPTS),
            reraise=True,
        )
        try:
            response: ChatResponse = await retrying(within, partial(self.provider.complete, request), self.seconds)
        except Exception as error:
            text = self.clean(f"{type(error).__name__}: {error_text(error)}")[:300]
            self._failures += 1
            if is_permanent(error):
                raise CommandError(f"{self.name} cannot be asked: {text}") from error
            if self._failures >= _FAILURES:
                raise CommandError(f"{self.name} failed {_FAILURES} times in a row: {text}") from error
            raise UnansweredError(text) from error
        answer, calls = read_answer(response), list(getattr(response, "tool_calls", None) or ())
        for name, figure in (("calls", 1), ("input", answer.input_tokens), ("output", answer.output_tokens)):
            self.used[name] = self.used.get(name, 0) + figure
        if not (answer.text or calls):
            raise UnansweredError("it says nothing")
        self._failures = 0
        return answer.text[:_CHARACTERS], calls

    async def ask_json(self, step: str, instructions: str, text: str, read: Callable[[Any], T | None]) -> T:
        """Returns what `read` makes of the JSON in an answer; it returns None for JSON that is not as asked for.

        Raises:
            UnansweredError, CommandError: as `ask`; the first also if two answers are of no use.
        """
        said = ""
        for more in ("", _AGAIN):
            said, _ = await self.ask(step, told(instructions + more, text), 1_500)
            for value in _values(said):
                if (found := read(value)) is not None:
                    return found
        raise UnansweredError(f"its answer is not the JSON that was asked for: {self.clean(said)[:80]!r}")


def told(instructions: str, text: str, question: str = "") -> list[Message]:
    """Returns a request: the instructions, and the text as fenced data with a question behind it."""
    user = enclosed(text, fence_of(text), before="") + (f"\n\n{question}" if question else "")
    return [Message(role="system", content=instructions), Message(role="user", content=user)]


def _values(text: str) -> list[Any]:
    """Returns the JSON objects and arrays in a text; a model may write words around them."""
    decoder, found, at = json.JSONDecoder(), list[Any](), 0
    while start := _OPENING.search(text, at):
        try:
            value, at = decoder.raw_decode(text, start.start())
            found.append(value)
        except (ValueError, RecursionError):
            at = start.end()
    return found
