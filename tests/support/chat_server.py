"""A Chat Completions server in a process of its own: `python chat_server.py` prints its port and serves until killed.

It names a window of 12,000 tokens in its list of models, knows `max_tokens` alone as older servers do, is busy the
first time it is asked for an answer, and gives what it was sent back at `GET /log`.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "local-1"
WINDOW = 12_000
SUMMARY = "Goal: the user asked for the state of several orders. State: every one of them was found and shipped."


class Handler(BaseHTTPRequestHandler):
    """Answers as such servers do, one connection for many requests."""

    protocol_version = "HTTP/1.1"
    log: list[dict[str, Any]] = []  # noqa: RUF012 - one server a process
    busy = True

    def do_GET(self) -> None:
        if self.path == "/log":
            self._send(200, Handler.log)
        elif self.path == "/v1/models":
            self._note(None)
            self._send(200, {"object": "list", "data": [{"id": MODEL, "object": "model", "max_model_len": WINDOW}]})
        else:
            self._send(404, {"error": {"message": f"no {self.path}"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._note(body)
        if "max_completion_tokens" in body:
            self._send(400, {"error": {"message": "unknown field max_completion_tokens", "code": None}})
        elif Handler.busy:
            Handler.busy = False
            self._send(429, {"error": {"message": "one at a time"}}, {"Retry-After": "0"})
        else:
            message = {"role": "assistant", "content": SUMMARY}
            usage = {"prompt_tokens": 900, "completion_tokens": 40, "prompt_tokens_details": {"cached_tokens": 800}}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._send(200, {"model": f"{MODEL}-q4", "choices": [choice], "usage": usage})

    def _note(self, body: Any) -> None:
        Handler.log.append({"path": self.path, "key": self.headers.get("Authorization"), "body": body})

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)  # noqa: T201 - this is how the test learns of it
    server.serve_forever()
