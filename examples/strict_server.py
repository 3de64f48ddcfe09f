"""Servers for the examples, on this machine and without a model: they refuse what OpenAI's and Anthropic's APIs refuse.

A message with an unknown key, a broken pair of call and result, an empty text: the answer is an error 400. Else a
server calls the tool `lookup` for each new message of the user, says that the order is on its way once it has the
result, and summarises when there are no tools.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Message = dict[str, Any]
_OPENAI_KEYS = {"model", "messages", "tools", "max_completion_tokens"}
_ANTHROPIC_KEYS = {"model", "messages", "tools", "max_tokens", "system", "cache_control"}
_OPENAI = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
_ANTHROPIC = {
    "text": {"type", "text"},
    "image": {"type", "source"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input"},
    "tool_result": {"type", "tool_use_id", "content", "is_error"},
}


def openai_refusal(messages: Sequence[Message]) -> str | None:
    """Why the Chat Completions API would refuse messages; None if it takes them."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        if unknown := set(message) - _OPENAI.get(message["role"], set()):
            return f"messages[{at}]: unknown {sorted(unknown)}"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting or not isinstance(message["content"], str):
                return f"messages[{at}]: no call has this id, or the content is no text"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"messages[{at}]: the calls {waiting} have no result"
        if not message["content"] and not message.get("tool_calls"):
            return f"messages[{at}]: nothing is said"
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        for call in message.get("tool_calls", ()):
            if set(call) != {"id", "type", "function"} or set(call["function"]) != {"name", "arguments"}:
                return f"messages[{at}]: a call has other keys"
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                return f"messages[{at}]: arguments are no object"
    return f"the calls {waiting} have no result" if waiting else None


def anthropic_refusal(request: Mapping[str, Any]) -> str | None:
    """Why the Messages API would refuse `system` and `messages`; None if it takes them."""
    waiting: list[str] = []
    if not request.get("system", "x").strip():
        return "system: empty"
    for at, message in enumerate(request["messages"]):
        if set(message) != {"role", "content"} or message["role"] != ("user", "assistant")[at % 2]:
            return f"messages.{at}: unknown keys, or a role out of turn"
        blocks = [{"type": "text", "text": said}] if isinstance(said := message["content"], str) else said
        inner = [part for block in blocks if isinstance(block.get("content"), list) for part in block["content"]]
        for block in [*blocks, *inner]:
            if unknown := set(block) - _ANTHROPIC.get(block["type"], set()):
                return f"messages.{at}: unknown {sorted(unknown)}"
            if block["type"] == "text" and not block["text"].strip():
                return f"messages.{at}: an empty text"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(waiting) or any(b["type"] == "tool_result" for b in blocks[len(results) :]):
            return f"messages.{at}: the results {results} of the calls {waiting}, which come first"
        if not blocks or blocks[-1]["type"].endswith("thinking"):
            return f"messages.{at}: nothing is said"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return f"the calls {waiting} have no result" if waiting else None


def _next_step(request: Message, messages: Sequence[Message], has_result: bool) -> tuple[str, str | None]:
    """What the model says, and the order that it looks up."""
    if not request.get("tools"):
        return "Goal: the user asks for orders, one after the other. All were on their way.", None
    if has_result:
        return "The order is on its way.", None
    return "", json.dumps(messages[-1]["content"]).split("ORD-")[-1][:2]


def _openai(request: Message) -> tuple[str | None, Message]:
    messages = request["messages"]
    refusal = openai_refusal(messages)
    text, order = _next_step(request, messages, messages[-1]["role"] == "tool")
    said: Message = {"role": "assistant", "content": text or None, "refusal": None}
    if order:
        function = {"name": "lookup", "arguments": json.dumps({"order": f"ORD-{order}"})}
        said["tool_calls"] = [{"id": f"call_{len(messages)}", "type": "function", "function": function}]
    usage = {"prompt_tokens": len(json.dumps(request)) // 4, "completion_tokens": 9, "total_tokens": 9}
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if order else "stop"}
    head = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"]}
    return refusal, {**head, "choices": [choice], "usage": usage}


def _anthropic(request: Message) -> tuple[str | None, Message]:
    messages = request["messages"]
    refusal = anthropic_refusal(request)
    last = messages[-1]["content"]
    text, order = _next_step(request, messages, not isinstance(last, str) and last[0]["type"] == "tool_result")
    said: list[Message] = [{"type": "text", "text": text}] if text else []
    if order:
        call = {"type": "tool_use", "id": f"toolu_{len(json.dumps(messages))}", "name": "lookup"}
        said.append({**call, "input": {"order": f"ORD-{order}"}})
    usage = {"input_tokens": len(json.dumps(request)) // 4, "output_tokens": 9}
    head = {"id": "1", "type": "message", "role": "assistant", "model": request["model"], "usage": usage}
    return refusal, {**head, "content": said, "stop_reason": "tool_use" if order else "end_turn"}


@contextmanager
def _serving(answer: Callable[[Message], tuple[str | None, Message]], known: set[str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            refusal, said = answer(request)
            refusal = refusal or ", ".join(f"unknown key {key}" for key in set(request) - known)
            body = json.dumps({"error": {"message": refusal}} if refusal else said).encode()
            self.send_response(400 if refusal else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Writes no line for each request."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def openai_server() -> Any:
    """A context manager: the address of a server with the Chat Completions API."""
    return _serving(_openai, _OPENAI_KEYS)


def anthropic_server() -> Any:
    """A context manager: the address of a server with the Messages API."""
    return _serving(_anthropic, _ANTHROPIC_KEYS)
