"""A Responses API server that is strict about its input, keeps chains, and has a prompt cache; it counts characters."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Item = dict[str, Any]
CHARACTERS = 4
"""Characters that the server counts as one token."""
_CACHED = 8
"""Prompts that the cache remembers."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One request of the agent loop, as the server saw it."""

    items: list[str]
    """Instructions and input items in order, as JSON."""
    tokens: int
    """Input tokens of it, chain and tools included."""
    cached: int
    """Those of them that the prompt cache holds."""
    chained: bool


@dataclass(slots=True)
class State:
    """What the server remembers of one session."""

    window: int
    """Tokens that the input of one request may hold; the chain behind it is not counted."""
    sent: list[Sent] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    chains: dict[str, list[str]] = field(default_factory=dict)
    prompts: list[list[str]] = field(default_factory=list)
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def answer(self, body: Item) -> tuple[int, Item]:
        """Status and body of the answer to a request."""
        own = _items(body)
        if problem := _problem(body) or self._too_long(own):
            self.faults.append(problem)
            return 400, {"error": {"message": problem, "type": "invalid_request_error", "code": None}}
        previous = body.get("previous_response_id")
        chain = self.chains.get(previous, []) if previous else []
        prompt = [json.dumps(body.get("tools") or []), own[0], *chain, *own[1:]]
        cached = max((_common(prompt, known) for known in self.prompts), default=0)
        sent = Sent(own, sum(map(len, prompt)) // CHARACTERS, cached // CHARACTERS, bool(chain))
        self.prompts = [*self.prompts[1 - _CACHED :], prompt]
        output, found = self._output(body), f"resp_{next(self.ids)}"
        if body.get("tools"):
            self.sent.append(sent)
            if body.get("store"):
                # "the instructions from a previous response will not be carried over" (API reference)
                self.chains[found] = [*chain, *own[1:], *_items({"input": output})[1:]]
        return 200, _response(found, body, output, sent)

    def _too_long(self, own: list[str]) -> str | None:
        tokens = sum(map(len, own)) // CHARACTERS
        return f"Your input exceeds the context window of this model ({tokens})" if tokens > self.window else None

    def _output(self, body: Item) -> list[Item]:
        number = next(self.ids)
        if not body.get("tools"):  # a summary is asked for; no two are alike
            return [_message(number, f"Goal: each order is found. State: all orders up to call {number} were found.")]
        if _after_result(body["input"]):
            return [_message(number, f"Order found by call {number}; it is on its way and arrives on time.")]
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "lookup"}
        return [{**call, "arguments": json.dumps({"order": f"ORD{number:05d}"}), "status": "completed"}]


def _after_result(items: list[Item]) -> bool:
    """True where nothing but reminders stands behind a result."""
    spoken = (one for one in reversed(items) if one.get("role") != "user" or "<system-reminder" not in json.dumps(one))
    return next(spoken, {}).get("type") == "function_call_output"


def _items(body: Item) -> list[str]:
    """Instructions and input as the model reads them: without the ids of items, which some providers invent anew."""
    items = [{key: value for key, value in item.items() if key != "id"} for item in body["input"]]
    return [json.dumps(item) for item in [{"instructions": body.get("instructions") or ""}, *items]]


def _problem(body: Item) -> str | None:
    """What the API would refuse."""
    answered: dict[str, bool] = {}
    for at, item in enumerate(body["input"]):
        kind = item.get("type", "message")
        if kind == "function_call":
            if item["call_id"] in answered:
                return f"input[{at}]: duplicate call {item['call_id']}"
            answered[item["call_id"]] = False
        elif kind == "function_call_output":
            if item["call_id"] not in answered:
                return f"input[{at}]: no tool call found for function call output {item['call_id']}"
            answered[item["call_id"]] = True
        elif kind == "message" and not item.get("content"):
            return f"input[{at}]: empty content"
    missing = [call for call, done in answered.items() if not done]
    return f"no tool output found for function call {missing[0]}" if missing else None


def _common(one: list[str], other: list[str]) -> int:
    """Characters of the items that both begin with."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(len(item) for item, _ in pairs)


def _message(number: int, text: str) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}


def _response(name: str, body: Item, output: list[Item], sent: Sent) -> Item:
    made = len(json.dumps(output)) // CHARACTERS
    usage = {
        "input_tokens": sent.tokens,
        "input_tokens_details": {"cached_tokens": sent.cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent.tokens + made,
    }
    head = {"id": name, "object": "response", "created_at": 0, "status": "completed", "model": body["model"]}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools") or []}
    return {**head, **rest, "output": output, "usage": usage}


@contextmanager
def serving(window: int) -> Iterator[tuple[str, State]]:
    """The server in a thread: its address and its state."""
    state = State(window)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            card = {"id": "gpt-5.5", "object": "model", "created": 0, "owned_by": "x", "max_model_len": window}
            self._send(200, {"object": "list", "data": [card]})

        def do_POST(self) -> None:
            self._send(*state.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

        def _send(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", state
    finally:
        server.shutdown()
        server.server_close()
