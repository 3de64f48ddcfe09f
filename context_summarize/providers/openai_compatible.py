"""A provider for scripts: text and calls from a server with the Chat Completions API, over httpx (an extra)."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from amplifier_core import llm_errors as errors
from amplifier_core.message_models import ChatRequest, ChatResponse, Message, TextBlock, ToolCall, Usage
from amplifier_core.models import ProviderInfo

from context_summarize.errors import ConfigError
from context_summarize.formats.openai import to_openai
from context_summarize.messages.text import content_text
from context_summarize.providers.of_function import error_of

if TYPE_CHECKING:
    import httpx

NAME = "openai-compatible"


def make_provider(
    base_url: str, model: str, *, context_window: int = 128_000, max_output_tokens: int = 8_192
) -> OpenAICompatibleProvider:
    """Returns a provider; call its `close()` at the end.

    For https it takes the key of the environment's `OPENAI_API_KEY`; over http a key would go out in clear text.

    Args:
        base_url: address of the API with its version: `https://api.openai.com/v1`, `http://127.0.0.1:8000/v1`.
        context_window, max_output_tokens: tokens.

    Raises:
        ConfigError: httpx is not installed, or `base_url` is not an address.
    """
    try:
        import httpx
    except ImportError:
        raise ConfigError(f"{NAME} needs httpx: {sys.executable} -m pip install 'httpx>=0.27'") from None
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65_535:
        raise ConfigError(f"base_url must be an http or https address such as http://localhost/v1, got {base_url!r}")
    key = os.environ.get("OPENAI_API_KEY", "").strip() if url.scheme == "https" else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # The environment's proxies are for other machines; a server on this machine is not behind them.
    is_local = url.host in ("localhost", "::1") or url.host.startswith("127.")
    timeout = httpx.Timeout(600, connect=30)
    client = httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout, trust_env=not is_local)
    sizes = {"context_window": context_window, "max_output_tokens": max_output_tokens}
    return OpenAICompatibleProvider(client, {"model": model, **sizes})


class OpenAICompatibleProvider:
    """Sends one `POST {base_url}/chat/completions` for each `complete()`. The caller is responsible for retries."""

    name = NAME

    def __init__(self, client: httpx.AsyncClient, defaults: dict[str, Any]) -> None:
        self._client, self._defaults = client, defaults
        # OpenAI's newer models refuse the name that all other servers know.
        self._limit = "max_completion_tokens" if "openai" in client.base_url.host else "max_tokens"

    def get_info(self) -> ProviderInfo:
        """Returns model and window, in the host's format."""
        return ProviderInfo(id=NAME, display_name="OpenAI-compatible", defaults=self._defaults)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def complete(self, request: ChatRequest, **options: Any) -> ChatResponse:
        """Returns one answer.

        Raises:
            LLMError: the host's kind of error for the server's answer, or for a failed connection.
        """
        import httpx

        model = options.get("model") or request.model or self._defaults["model"]
        most = request.max_output_tokens or self._defaults["max_output_tokens"]
        body = {"model": model, "messages": to_openai(map(Message.model_dump, request.messages)), self._limit: most}
        if request.tools:
            body["tools"] = [{"type": "function", "function": tool.model_dump()} for tool in request.tools]
        try:
            response = await self._client.post("chat/completions", json=body)
        except httpx.TransportError as error:
            is_late = isinstance(error, httpx.TimeoutException)
            lost = errors.LLMTimeoutError if is_late else errors.ProviderUnavailableError
            raise lost(
                f"no answer from {self._client.base_url}: {type(error).__name__}: {error}", provider=NAME
            ) from error
        try:
            return _read(response.json())
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise self._error(response) from error

    def _error(self, response: httpx.Response) -> errors.LLMError:
        """Returns the host's error for a response that is no answer, without the key, which some servers repeat."""
        key = self._client.headers.get("Authorization", "\0").removeprefix("Bearer ")
        text = f"HTTP {response.status_code}: {response.text}".replace(key, "[key]")[:500]
        return error_of(response.status_code, text, NAME, response.headers.get("Retry-After", ""))


def _read(body: Any) -> ChatResponse:
    choice, used = body["choices"][0], body.get("usage") or {}
    said, read, wrote = choice["message"], used.get("prompt_tokens") or 0, used.get("completion_tokens") or 0
    made = ((call["id"], call["function"]) for call in said.get("tool_calls") or ())
    calls = [ToolCall(id=known, name=one["name"], arguments=json.loads(one["arguments"])) for known, one in made]
    return ChatResponse(
        content=[TextBlock(text=content_text(said.get("content")) or said.get("refusal") or "")],
        tool_calls=calls or None,
        usage=Usage(input_tokens=read, output_tokens=wrote, total_tokens=read + wrote),
        finish_reason="refusal" if said.get("refusal") else choice.get("finish_reason"),
        metadata={"model": body.get("model")},
    )
