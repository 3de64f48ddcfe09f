"""The Chat Completions protocol: converts requests, answers and errors from and to the host's types. Pure."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from amplifier_core.llm_errors import (
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    InvalidToolCallError,
    LLMError,
    LLMTimeoutError,
    NotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitError,
)
from amplifier_core.message_models import (
    ChatRequest,
    ChatResponse,
    Message,
    TextBlock,
    ToolCall,
    ToolCallBlock,
    ToolSpec,
    Usage,
)

from context_summarize.messages.images import is_image, read_image
from context_summarize.messages.json_text import compact_json
from context_summarize.messages.reading import analyse, block_type, is_result, result_block_id
from context_summarize.messages.text import content_text, result_value

if TYPE_CHECKING:
    import httpx

_OPTIONS = ("temperature", "top_p", "stop", "tool_choice", "reasoning_effort")
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_FILTERED = frozenset({"content_filter", "content_policy_violation"})
_DAY = 86_400.0
_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


def payload_of(request: ChatRequest, model: str) -> dict[str, Any]:
    """The body of a request, without the limit of output tokens."""
    payload: dict[str, Any] = {"model": model, "messages": [row for m in request.messages for row in _wire_rows(m)]}
    given = {name: getattr(request, name) for name in _OPTIONS}
    payload |= {name: value for name, value in given.items() if value is not None}
    if request.tools:
        payload["tools"] = [{"type": "function", "function": _function(tool)} for tool in request.tools]
    return payload


def _function(tool: ToolSpec) -> dict[str, Any]:
    """A tool's name and parameters, and its description if it has one: some servers refuse null."""
    told: dict[str, Any] = tool.model_dump(include={"name", "description", "parameters"})
    return {key: value for key, value in told.items() if value is not None}


def _wire_rows(message: Message) -> list[dict[str, Any]]:
    """A message in the protocol's format: calls in their own field, each result as a row. Thinking is left out."""
    raw = message.model_dump()
    content = raw["content"]
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    results = [block for block in blocks if is_result(block)]
    rows = [
        {"role": "tool", "tool_call_id": result_block_id(block), "content": content_text(result_value(block))}
        for block in results
    ]
    said = [block for block in blocks if block_type(block) == "text" or is_image(block)]
    row: dict[str, Any] = {"role": message.role, "content": _wire_content(said)}
    if message.role == "assistant":
        calls = analyse({"role": "assistant", "content": content, "tool_calls": raw.get("tool_calls")}).calls
    else:
        calls = ()
    if calls:
        row["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": compact_json(call.arguments)},
            }
            for call in calls
        ]
    if message.tool_call_id is not None:
        row["tool_call_id"] = message.tool_call_id
    return rows if results and not said else [*rows, row]


def _wire_content(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Text as one string, which every server accepts; a list only if there are images."""
    if not any(map(is_image, blocks)):
        return content_text(blocks)
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if is_image(block):
            parts.append({"type": "image_url", "image_url": {"url": read_image(block).as_url()}})
        else:
            parts.append({"type": "text", "text": block["text"]})
    return parts


def read_answer(body: dict[str, Any], where: dict[str, Any]) -> ChatResponse:
    """The host's response for a server's answer.

    Raises:
        LLMError: the answer cannot be read; `InvalidToolCallError` if only a call's arguments cannot be read.
    """
    try:
        choice = body["choices"][0]
        said = choice["message"]
        calls = [_call(call, where) for call in said.get("tool_calls") or ()]
        text = content_text(said.get("content")) or said.get("refusal") or ""
        content: list[Any] = [TextBlock(text=text)] if text else []
        content += [ToolCallBlock(id=call.id, name=call.name, input=call.arguments) for call in calls]
        return ChatResponse(
            content=content,
            tool_calls=calls or None,
            usage=_usage(body.get("usage")),
            finish_reason="refusal" if said.get("refusal") else choice.get("finish_reason"),
            metadata={"model": body["model"]} if body.get("model") else None,
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise LLMError(f"an answer that cannot be read: {error!r}"[:500], **where) from error


def _call(call: dict[str, Any], where: dict[str, Any]) -> ToolCall:
    function = call["function"]
    given = function.get("arguments") or "{}"
    try:
        arguments = json.loads(given) if isinstance(given, str) else given
        return ToolCall(id=call["id"], name=function["name"], arguments=arguments)
    except ValueError as error:
        message = f"the model called {function.get('name')!r} with arguments that are not a JSON object"
        raise InvalidToolCallError(
            message, tool_name=function.get("name"), raw_arguments=str(given), **where
        ) from error


def _usage(told: Any) -> Usage | None:
    """The server's token counts; None if it gives none. Its input count includes cached tokens."""
    if not isinstance(told, dict):
        return None
    read, wrote = told.get("prompt_tokens") or 0, told.get("completion_tokens") or 0
    return Usage(
        input_tokens=read,
        output_tokens=wrote,
        total_tokens=told.get("total_tokens") or read + wrote,
        cache_read_tokens=(told.get("prompt_tokens_details") or {}).get("cached_tokens"),
        reasoning_tokens=(told.get("completion_tokens_details") or {}).get("reasoning_tokens"),
    )


def read_json(response: httpx.Response) -> Any:
    """The body as JSON data; None if it is not JSON."""
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def read_error(response: httpx.Response, told: Any, where: dict[str, Any], api_key: str | None) -> LLMError:
    """The host's error for an error response; `told` is the body's `error`, if any, which gives code and text."""
    entry = told if isinstance(told, dict) else {}
    codes = {entry[key] for key in ("code", "type") if isinstance(entry.get(key), str)}
    status = response.status_code
    if response.is_success:
        # Gateways report errors of the servers behind them with a success status of their own.
        code = entry.get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 502
    text = str(entry.get("message") or told or response.text or response.reason_phrase)
    if api_key:
        text = text.replace(api_key, "[key]")
    elif status == 401:
        text = f"{text} (no key was sent)"
    if 300 <= status < 400:
        text = f"the server redirects to {response.headers.get('Location')!r}; correct base_url"
    kind, extra = _kind(status, codes, response)
    return kind(f"HTTP {status}: {text}"[:500], status_code=status, **where, **extra)


def _kind(status: int, codes: set[str], response: httpx.Response) -> tuple[type[LLMError], dict[str, Any]]:
    """(error class, its further arguments) for an HTTP status and the codes in its body."""
    if status == 402 or (status == 429 and codes & _QUOTA):
        return QuotaExceededError, {}
    if status == 429:
        return RateLimitError, {"retry_after": _retry_after(response)}
    if status >= 500:
        return ProviderUnavailableError, {"retry_after": _retry_after(response)}
    if status == 413 or codes & _TOO_LONG:
        return ContextLengthError, {}
    if codes & _FILTERED:
        return ContentFilterError, {}
    by_status: dict[int, type[LLMError]] = {
        401: AuthenticationError,
        403: AccessDeniedError,
        404: NotFoundError,
        408: LLMTimeoutError,
    }
    return by_status.get(status, ConfigurationError if status < 400 else InvalidRequestError), {}


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds that the server asks to wait; it may give a number or a date."""
    given = response.headers.get("Retry-After", "")
    try:
        seconds = float(given) if given[:1].isdecimal() else parsedate_to_datetime(given).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, seconds), _DAY)
