"""A server of OpenAI's Responses API that plays a recorded agent and is as strict as the real one.

It refuses a request above its window, a result without its call, a call without its result, a call id that comes twice
and an unknown `previous_response_id`. It follows https://platform.openai.com/docs/api-reference/responses. Requests in
the shape of Chat Completions are answered too; a result there that names no call answers the oldest open one.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

Item = Mapping[str, Any]
"""One part of an input or an output."""
TOO_LONG = "Your input exceeds the context window of this model. Please adjust your input and try again."
_SENT = "type", "role", "content", "call_id", "name", "arguments", "output"
"""The keys of an item that a model reads."""


class RefusedError(Exception):
    """A request that the API refuses, with its status."""

    def __init__(self, message: str, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.body = {"error": {"message": message, "type": "invalid_request_error", "param": "input", "code": code}}
        self.status = status


@dataclass(slots=True)
class Model:
    """The agent, and a summariser for whoever asks without tools.

    Attributes:
        answers: outputs of the agent's requests, in order.
        window: tokens that a request may hold.
        count: counts the tokens of a text.
    """

    answers: Sequence[Sequence[Item]]
    window: int
    count: Callable[[str], int]
    requests: list[str] = field(default_factory=list)
    """The texts of the agent's answered requests, in order, with all that the model reads."""
    largest: int = 0
    """Tokens of the largest of them."""
    too_long: list[int] = field(default_factory=list)
    """For each of the agent's requests that was too long: how many were answered before it."""
    faults: list[str] = field(default_factory=list)
    """The other refusals."""
    _stored: dict[str, list[Item]] = field(default_factory=dict)
    """The items that a later request may build on, by the id of a response."""

    def __post_init__(self) -> None:
        self.count = lru_cache(maxsize=None)(self.count)

    def respond(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the response to a request.

        Raises:
            RefusedError: the request is too long, or its calls and results do not match.
        """
        given = body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        is_agent = bool(body.get("tools"))
        if fault := _fault(items):
            self.faults.append(fault)
            raise RefusedError(fault)
        context = [*self._earlier(body, items), *items]
        head = body.get("instructions") or ""
        texts = [head, json.dumps(body.get("tools") or ""), *map(_text, context)]
        tokens = sum(map(self.count, texts))
        if tokens > self.window:
            if is_agent:
                self.too_long.append(len(self.requests))
            raise RefusedError(TOO_LONG, "context_length_exceeded")
        if not is_agent:
            return _response("helper", body, [message(self._summary(items))], tokens)
        number = len(self.requests)
        self.requests.append("\0".join([head, *map(_text, items)]))
        self.largest = max(self.largest, tokens)
        output = self.output(number)
        self._stored[f"resp_{number}"] = [*context, *output]
        return _response(f"resp_{number}", body, output, tokens)

    def output(self, number: int) -> Sequence[Item]:
        """Returns the agent's answer to the request of this number."""
        return self.answers[number] if number < len(self.answers) else [message("All is done.")]

    def equal(self) -> list[int]:
        """Counts, for each answered request, the characters that it begins with as the one before did."""
        pairs = itertools.pairwise(self.requests)
        return [0, *(len(os.path.commonprefix(pair)) for pair in pairs)]  # noqa: RUF071 (no paths)

    def _earlier(self, body: Mapping[str, Any], items: Sequence[Item]) -> list[Item]:
        """Returns the items of the response that the request builds on, without those that the request itself holds."""
        before = body.get("previous_response_id")
        if before is None:
            return []
        if before not in self._stored:
            self.faults.append(f"unknown {before}")
            raise RefusedError(f"Previous response with id '{before}' not found.", "previous_response_not_found", 404)
        held = set(map(_text, items))
        return [item for item in self._stored[before] if _text(item) not in held]

    def _summary(self, items: Sequence[Item]) -> str:
        """Returns some lines of the input, evenly spread, as a short answer."""
        lines = [line for item in items for line in _text(item).split("\\n") if len(line) > 40]
        return "The agent went on. " + " ".join(line[:160] for line in lines[:: max(1, len(lines) // 8)][:8])


def _fault(items: Sequence[Item]) -> str | None:
    """Returns what is wrong with calls and results, in the words of the API."""
    calls: set[str] = set()
    results: set[str] = set()
    for item in items:
        name = item.get("call_id", "")
        if item.get("type") == "function_call":
            if name in calls:
                return f"Duplicate function call with call_id {name}."
            calls.add(name)
        elif item.get("type") == "function_call_output":
            if name not in calls:
                return f"No tool call found for function call output with call_id {name}."
            results.add(name)
        elif item.get("type", "message") == "message" and not item.get("content"):
            return "A message has no content."
    return f"No tool output found for function call {min(calls - results)}." if calls - results else None


def _text(item: Item) -> str:
    return json.dumps({key: item[key] for key in _SENT if key in item}, ensure_ascii=False)


def message(text: str) -> Item:
    """Returns an assistant's message as an output."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg", "status": "completed", "role": "assistant", "content": content}


def _response(name: str, body: Mapping[str, Any], output: Sequence[Item], tokens: int) -> dict[str, Any]:
    usage = {"input_tokens": tokens, "output_tokens": 100, "total_tokens": tokens + 100}
    told = {"id": name, "object": "response", "status": "completed", "model": body["model"]}
    return {**told, "output": list(output), "usage": usage}


def _from_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a request of Chat Completions to one of Responses."""
    items: list[Item] = []
    waiting: list[str] = []
    for row in body["messages"]:
        if row["role"] == "tool":
            name = row.get("tool_call_id") or waiting[0]
            waiting.remove(name)
            items.append({"type": "function_call_output", "call_id": name, "output": row["content"]})
        elif row.get("content"):
            items.append({"role": row["role"], "content": row["content"]})
        for call in row.get("tool_calls") or ():
            waiting.append(call["id"])
            items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return {"model": body["model"], "tools": body.get("tools"), "input": items}


def _to_chat(response: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a response of Responses to one of Chat Completions."""
    texts = [item["content"][0]["text"] for item in response["output"] if item["type"] == "message"]
    calls = [
        {"id": i["call_id"], "type": "function", "function": {"name": i["name"], "arguments": i["arguments"]}}
        for i in response["output"]
        if i["type"] == "function_call"
    ]
    said = {"role": "assistant", "content": "\n".join(texts) or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if calls else "stop"}
    used = response["usage"]
    usage = {"prompt_tokens": used["input_tokens"], "completion_tokens": used["output_tokens"]}
    usage["total_tokens"] = used["total_tokens"]
    told = {"id": response["id"], "object": "chat.completion", "created": 0, "model": response["model"]}
    return {**told, "choices": [choice], "usage": usage}


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Logs nothing."""


class _Threading(ThreadingMixIn, WSGIServer):
    daemon_threads = True


Respond = Callable[[Mapping[str, Any]], dict[str, Any]]
_MODELS = {"object": "list", "data": [{"id": "gpt-5", "object": "model", "created": 0, "owned_by": "local"}]}


def _answered(respond: Respond, asked: Mapping[str, Any]) -> dict[str, Any]:
    if asked["REQUEST_METHOD"] == "GET":
        return _MODELS
    body = json.loads(asked["wsgi.input"].read(int(asked["CONTENT_LENGTH"])))
    if asked["PATH_INFO"].endswith("/chat/completions"):
        return _to_chat(respond(_from_chat(body)))
    return respond(body)


@contextmanager
def serving(respond: Respond) -> Iterator[str]:
    """Runs a server on this machine that answers so, and yields its address."""

    def application(asked: Mapping[str, Any], start: Callable[..., object]) -> list[bytes]:
        try:
            status, told = 200, _answered(respond, asked)
        except RefusedError as error:
            status, told = error.status, error.body
        start(f"{status} {HTTPStatus(status).phrase}", [("content-type", "application/json")])
        return [json.dumps(told).encode()]

    with make_server("127.0.0.1", 0, application, _Threading, _Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
