"""What a summary request asks of a provider besides a summary: to store nothing, and to reason little."""

from __future__ import annotations

import inspect
from typing import Any

from amplifier_core.llm_errors import InvalidRequestError
from amplifier_core.message_models import ChatRequest

from context_summarize.summaries.calls import error_text

LITTLE_REASONING = "low"
"""`ChatRequest.reasoning_effort` of a summary request."""
_WORDS = {"reasoning": ("reasoning", "effort", "thinking"), "options": ("store",)}
"""What a hint is called in the errors of providers that refuse it."""


class HintRefusedError(Exception):
    """The provider refused a hint, which is left out from now on: the call may be made again at once."""


class Hints:
    """The hints to one provider and model: a hint that is refused is left out from then on.

    `reasoning_effort` is a field of the request. The others are options of `complete()`, which providers look up by
    name and ignore if they do not know them: `store` and `enable_response_chaining` (openai, vllm) keep an answer on
    the server; `extended_thinking` (anthropic) would be turned on by any `reasoning_effort`.
    """

    def __init__(self) -> None:
        self._refused: frozenset[str] = frozenset()

    async def complete(self, provider: Any, request: ChatRequest, options: dict[str, Any]) -> Any:
        """The provider's answer.

        Raises:
            HintRefusedError: a hint was refused. Calls side by side may each be refused the same one.
            Exception: what the provider raises.
        """
        refused = self._refused
        try:
            return await _ask(provider, request, options, refused)
        except (InvalidRequestError, TypeError) as error:
            named = _named_in(error) - refused
            if not named:
                raise
            self._refused |= named
            raise HintRefusedError(error_text(error)) from error


async def _ask(provider: Any, request: ChatRequest, options: dict[str, Any], refused: frozenset[str]) -> Any:
    hints: dict[str, Any] = {}
    if "reasoning" in refused:
        request = request.model_copy(update={"reasoning_effort": None})
    else:
        hints["extended_thinking"] = False
    hints["store"] = False
    if getattr(provider, "enable_response_chaining", False):
        hints["enable_response_chaining"] = False  # chained answers are stored whatever `store` says
    if "options" not in refused and _takes_options(provider):
        options = {**hints, **options}
    return await provider.complete(request, **options)


def _named_in(error: Exception) -> frozenset[str]:
    """The hints that an error names."""
    text = error_text(error).casefold()
    if isinstance(error, TypeError):
        return frozenset({"options"} if "keyword argument" in text else ())
    return frozenset(hint for hint, words in _WORDS.items() if any(word in text for word in words))


def _takes_options(provider: Any) -> bool:
    """True if `complete()` takes options by any name."""
    try:
        parameters = inspect.signature(provider.complete).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
