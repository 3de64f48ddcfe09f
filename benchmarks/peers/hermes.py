"""hermes-agent's `ContextCompressor` as a contestant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from .base import Peer, Row, Terms, calls_of, result, spoken, text_of


class Hermes(Peer):
    """`ContextCompressor`, called as the agent's loop calls it: before each model request, and with the usage after it.

    The loop compresses at most three times for one request, also when the provider refuses it as too long, and stops
    when that no longer makes it smaller. If it is refused then, the turn fails, here by an exception. After `FAILURES`
    such turns in a row every further turn fails at once, so that a run ends: with a summary as long as its input each
    would take seconds, and the request would only grow.

    The transcript holds no system prompt. The class has floors for the trigger (85 % of windows up to 64,000 tokens,
    75 % up to 512,000), so the trigger is set on the object; the tail follows from it as in the constructor.

    `compress` is synchronous, and so is the client that it calls.
    """

    ATTEMPTS = 3
    FAILURES = 10
    PAUSE = 2.0
    """Seconds that the loop sleeps before it sends a refused request again."""

    packages = ("hermes-agent",)

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._module = import_module("agent.context_compressor")
        self._failed = 0
        made = self._module.ContextCompressor(
            "stand-in", config_context_length=terms.budget, quiet_mode=True, **self._options()
        )
        made.threshold_tokens = terms.trigger_tokens
        made.tail_token_budget = int(terms.trigger_tokens * made.summary_target_ratio)
        self._compressor = made

    def _options(self) -> dict[str, Any]:
        return {}

    async def view(self) -> list[Row]:
        if self._failed >= self.FAILURES:
            raise self._exceeded()
        compressor, tokens = self._compressor, self._terms.size(self._shown())
        clock = SimpleNamespace(monotonic=self._terms.clock.now, time=self._terms.clock.now)
        with patch.object(self._module, "call_llm", self._call), patch.object(self._module, "time", clock):
            for _ in range(self.ATTEMPTS):
                refused, before = tokens > self._terms.budget, (len(self._messages), tokens)
                if not refused and not self._due(tokens):
                    break
                self._messages = compressor.compress(self._messages, current_tokens=tokens)
                tokens = self._terms.size(self._shown())
                if compressor._last_compression_made_progress:
                    compressor.last_compression_rough_tokens = tokens
                    compressor.last_prompt_tokens = -1
                    compressor.awaiting_real_usage_after_compression = True
                    compressor.record_completed_compaction(used_fallback=compressor._last_summary_fallback_used)
                if len(self._messages) >= before[0] and tokens >= before[1] * 0.95:
                    break  # "cannot compress further"
                if refused:
                    await self._terms.clock.sleep(self.PAUSE)
        if tokens > self._terms.budget:
            self._failed += 1
            raise self._exceeded()
        self._failed = 0
        compressor.update_from_response({"prompt_tokens": tokens})
        return self._shown()

    def _exceeded(self) -> Exception:
        return RuntimeError("Context length exceeded: cannot compress further")

    def _due(self, tokens: int) -> bool:
        """Returns True if the loop would compress, after a response or before a request."""
        compressor = self._compressor
        if compressor.should_compress(compressor.last_prompt_tokens):
            return True
        deferred = compressor.should_defer_preflight_to_real_usage(tokens)
        return bool(not deferred and compressor.should_compress(tokens))

    def _shown(self) -> list[Row]:
        return [*self._terms.system_rows, *self._rows(self._messages)]

    def _call(self, messages: Sequence[Row], max_tokens: int | None = None, **_: Any) -> Any:
        shown = "\n\n".join(message["content"] for message in messages)
        text = self._terms.summariser.ask_blocking(shown, "", max_tokens)
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=text))])

    def _there(self, messages: list[Any], row: Row) -> None:
        message = {key: row[key] for key in ("role", "tool_call_id", "name") if key in row} | {"content": text_of(row)}
        made = [(call["id"], call["tool"], json.dumps(call["arguments"], ensure_ascii=False)) for call in calls_of(row)]
        if made:
            message["tool_calls"] = [
                {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for call_id, name, arguments in made
            ]
        messages.append(message)

    def _back(self, message: Any) -> Sequence[Row]:
        if message["role"] == "tool":
            return [result(message["tool_call_id"], message["name"], message["content"])]
        made = [(call["id"], call["function"]) for call in message.get("tool_calls", [])]
        calls = [(call_id, call["name"], json.loads(call["arguments"])) for call_id, call in made]
        return [spoken(message["role"], message["content"], calls)]


class HermesTail(Hermes):
    """`ContextCompressor` with the newest rows of the others, at least a tenth of the trigger, and no first rows."""

    def _options(self) -> dict[str, Any]:
        ratio = self._terms.keep * self._terms.mean_row / self._terms.trigger_tokens
        return {"summary_target_ratio": ratio, "protect_last_n": self._terms.keep, "protect_first_n": 0}
