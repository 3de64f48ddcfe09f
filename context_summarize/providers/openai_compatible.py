"""An Amplifier provider for servers with the Chat Completions API: OpenAI, vLLM, llama.cpp, Ollama and others.

It needs httpx, which the extra `openai-compatible` installs. httpx is imported when a provider is created, and nothing
is opened before the first request. Errors are those of the host's taxonomy. The caller is responsible for retries.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from amplifier_core.llm_errors import InvalidRequestError, LLMError, LLMTimeoutError, NetworkError
from amplifier_core.message_models import ChatRequest, ChatResponse, ToolCall
from amplifier_core.models import ModelInfo, ProviderInfo

from context_summarize.errors import ConfigError
from context_summarize.providers.chat_completions import payload_of, read_answer, read_error, read_json

if TYPE_CHECKING:
    import httpx

NAME = "openai-compatible"
KEY_ENV = "OPENAI_API_KEY"
CONTEXT_WINDOW = 128_000
"""Tokens, if neither the caller nor the server gives a window."""
_MOST_OUTPUT = 8_192
_REQUEST_SECONDS = 600.0
_CONNECT_SECONDS = 15.0
_WINDOW_KEYS = ("max_model_len", "context_window", "context_length")
"""Names of the window in servers' lists of models: vLLM, Groq, OpenRouter."""


def make_provider(
    base_url: str,
    model: str,
    *,
    context_window: int | None = None,
    max_output_tokens: int | None = None,
    key_env: str | None = None,
) -> OpenAICompatibleProvider:
    """A provider with a key from the environment.

    Args:
        base_url: address of the API with its version: `https://api.openai.com/v1`, `http://127.0.0.1:8000/v1`.
        context_window, max_output_tokens: tokens. The default window is the server's, or 128,000. The default output
            is a quarter of the window, at most 8,192.
        key_env: name of the environment variable that holds the key. The default is `OPENAI_API_KEY` for https, and no
            key for http, so that a key goes out in clear text only if its variable is named.

    Raises:
        ConfigError: httpx is not installed, `base_url` is not an address, or the named variable is not set.
    """
    key = os.environ.get(key_env or KEY_ENV, "").strip()
    if key_env is not None and not key:
        raise ConfigError(
            f"the environment variable {key_env} is not set; set it to the key of {base_url}, or do not name it"
        )
    if key_env is None and urlsplit(base_url).scheme != "https":
        key = ""
    return OpenAICompatibleProvider(
        base_url, model, api_key=key or None, context_window=context_window, max_output_tokens=max_output_tokens
    )


class OpenAICompatibleProvider:
    """Sends one `POST {base_url}/chat/completions` for each `complete()`. Call `close()` at the end.

    Raises:
        ConfigError: httpx is not installed, or `base_url` is not an address.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        context_window: int | None = None,
        max_output_tokens: int | None = None,
        name: str = NAME,
    ) -> None:
        _require_httpx()
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"base_url must be an http or https address such as http://127.0.0.1:8000/v1, got {base_url!r}"
            )
        self.name = name
        self.model = model
        self._base_url = base_url
        self._local = parts.hostname in ("localhost", "::1") or parts.hostname.startswith("127.")
        self._api_key = api_key
        self._window = context_window
        self._max_output = max_output_tokens
        self._limit_field = "max_completion_tokens"
        self._client: httpx.AsyncClient | None = None

    # --- the interface for hosts ------------------------------------------------------------------------------------

    def get_info(self) -> ProviderInfo:
        """The window as far as it is known, in the host's format."""
        window, output = self._sizes(self._window)
        defaults = {"model": self.model, "context_window": window, "max_output_tokens": output}
        return ProviderInfo(
            id=self.name, display_name="OpenAI-compatible", credential_env_vars=[KEY_ENV], defaults=defaults
        )

    async def get_model_info(self) -> ModelInfo:
        """The model with its window. If no window is given, the server is asked once."""
        if self._window is None:
            try:
                found = [model.context_window for model in await self.list_models() if model.id == self.model]
            except LLMError:
                found = []  # many servers have no such list; the first request shows any other error
            self._window = found[0] if found else CONTEXT_WINDOW
        return self._info(self.model, self._window)

    async def list_models(self) -> list[ModelInfo]:
        """The models that the server offers. If the server gives no window, the given one is used.

        Raises:
            LLMError: the call failed; the class says how.
        """
        body = await self._ask("GET", "models", self.model, seconds=_CONNECT_SECONDS)
        entries = body.get("data") if isinstance(body, dict) else None
        models = []
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("id"), str):
                windows = [entry[key] for key in _WINDOW_KEYS if type(entry.get(key)) is int and entry[key] > 0]
                models.append(self._info(entry["id"], windows[0] if windows else self._window))
        return models

    def parse_tool_calls(self, response: ChatResponse) -> list[ToolCall]:
        """The tool calls of the response."""
        return response.tool_calls or []

    async def complete(self, request: ChatRequest, **kwargs: Any) -> ChatResponse:
        """One answer.

        Raises:
            LLMError: the host's kind for what went wrong.
        """
        model = kwargs.get("model") or request.model or self.model
        payload = payload_of(request, model)
        field = self._limit_field  # another request may change it meanwhile
        try:
            body = await self._ask("POST", "chat/completions", model, self._limited(payload, request), request.timeout)
        except InvalidRequestError as error:
            if field == "max_tokens" or field not in str(error):
                raise
            # Older servers know the field by its first name; one refusal is enough to find out.
            self._limit_field = "max_tokens"
            body = await self._ask("POST", "chat/completions", model, self._limited(payload, request), request.timeout)
        return read_answer(body, {"provider": self.name, "model": model})

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    # --- over the wire ----------------------------------------------------------------------------------------------

    def _sizes(self, window: int | None) -> tuple[int, int]:
        window = window or CONTEXT_WINDOW
        return window, self._max_output or min(_MOST_OUTPUT, max(1, window // 4))

    def _info(self, model: str, window: int | None) -> ModelInfo:
        context, output = self._sizes(window)
        return ModelInfo(id=model, display_name=model, context_window=context, max_output_tokens=output)

    def _limited(self, payload: dict[str, Any], request: ChatRequest) -> dict[str, Any]:
        room = request.max_output_tokens
        return payload if room is None else {**payload, self._limit_field: room}

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            # The environment's proxies are for other machines; a server on this machine is not behind them.
            self._client = httpx.AsyncClient(
                base_url=self._base_url,
                headers={"Authorization": f"Bearer {self._api_key}"} if self._api_key else {},
                trust_env=not self._local,
            )
        return self._client

    async def _ask(
        self, method: str, path: str, model: str, payload: Any = None, seconds: float | None = None
    ) -> dict[str, Any]:
        """The JSON object of the server's answer."""
        import httpx

        where: dict[str, Any] = {"provider": self.name, "model": model}
        timeout = httpx.Timeout(seconds or _REQUEST_SECONDS, connect=min(seconds or _CONNECT_SECONDS, _CONNECT_SECONDS))
        try:
            response = await self._http().request(method, path, json=payload, timeout=timeout)
        except httpx.TimeoutException as error:
            raise LLMTimeoutError(f"no answer in time from {self._base_url}: {error}", **where) from error
        except httpx.TransportError as error:
            raise NetworkError(f"no connection to {self._base_url}: {error}", **where) from error
        except httpx.RequestError as error:
            raise LLMError(f"an answer that cannot be read: {error}", **where) from error
        body = read_json(response)
        told = body.get("error") if isinstance(body, dict) else None
        if not response.is_success or (told and not body.get("choices")):
            raise read_error(response, told, where, self._api_key)
        if not isinstance(body, dict):
            raise LLMError(f"an answer that is not a JSON object: {response.text[:200]!r}", **where)
        return body


def _require_httpx() -> None:
    try:
        import httpx  # noqa: F401
    except ImportError:
        raise ConfigError(
            "the openai-compatible provider needs httpx, which is not installed; in a checkout: "
            ".venv/bin/python -m pip install '.[openai-compatible]'; elsewhere: python -m pip install \"httpx>=0.27\""
        ) from None
