"""A Responses API server that is strict about its input and has a prompt cache; it counts characters."""

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
CHARACTERS = 4  # that the server counts as one token
_CACHED = 8
"""Prompts that the cache remembers."""


@dataclass(slots=True)
class State:
    """What the server remembers of one session."""

    window: int
    """Tokens that the input of one request may hold."""
    prompts: list[list[str]] = field(default_factory=list)
    """The items of each request of the agent's loop, as JSON."""
    faults: list[str] = field(default_factory=list)
    tokens: int = 0
    """Of all these requests."""
    cached: int = 0
    """Those of them that the prompt cache held."""
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def answer(self, body: Item) -> tuple[int, Item]:
        """Status and body of the answer to a request."""
        head = {"instructions": body.get("instructions"), "tools": body.get("tools")}
        # Without the ids of items, which some providers invent anew.
        items = [{key: value for key, value in item.items() if key != "id"} for item in body["input"]]
        prompt = [json.dumps(item) for item in [head, *items]]
        tokens = sum(map(len, prompt)) // CHARACTERS
        problem = _problem(items)
        if tokens > self.window:
            problem = f"Your input exceeds the context window of this model ({tokens})"
        if problem:
            self.faults.append(problem)
            return 400, {"error": {"message": problem, "type": "invalid_request_error", "code": None}}
        cached = max((_common(prompt, known) for known in self.prompts[-_CACHED:]), default=0) // CHARACTERS
        if body.get("tools"):  # summaries are asked for without
            self.prompts.append(prompt)
            self.tokens, self.cached = self.tokens + tokens, self.cached + cached
        return 200, _response(next(self.ids), body, tokens, cached)


def _problem(items: list[Item]) -> str | None:
    """What the API would refuse."""
    answered: dict[str, bool] = {}
    for at, item in enumerate(items):
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


def _output(number: int, body: Item) -> Item:
    """A summary, a call of the tool, or what the agent says after its result; no two are alike."""
    spoken = (one for one in reversed(body["input"]) if "<system-reminder" not in json.dumps(one))
    after_result = next(spoken, {}).get("type") == "function_call_output"
    if body.get("tools") and not after_result:
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "lookup"}
        return {**call, "arguments": json.dumps({"order": f"ORD{number:05d}"}), "status": "completed"}
    text = f"Goal: each order is found. State: the orders up to call {number} were found and arrive on time."
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}


def _response(number: int, body: Item, tokens: int, cached: int) -> Item:
    output = _output(number, body)
    made = len(json.dumps(output)) // CHARACTERS
    usage = {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + made,
    }
    head = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": body["model"],
    }
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools") or []}
    return {**head, **rest, "output": [output], "usage": usage}


@contextmanager
def serving(window: int) -> Iterator[tuple[str, State]]:
    """The server in a thread: its address and its state."""
    state = State(window)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status, told = state.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            data = json.dumps(told).encode()
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
