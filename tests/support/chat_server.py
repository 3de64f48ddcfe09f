"""A server on the loopback with the Chat Completions API: a function answers, and every request is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Said = str | dict[str, Any] | int | None
"""A text; the message of an answer, such as one with calls; the status of an error; None for a connection that ends."""


class ChatServer:
    """Its address, and what it was asked."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.bodies: list[dict[str, Any]] = []


@contextmanager
def serving(reply: Callable[[dict[str, Any]], Said]) -> Iterator[ChatServer]:
    """Runs a server whose answers `reply` gives; each takes the body of the request."""

    class Handler(BaseHTTPRequestHandler):
        wbufsize = 65_536  # one packet for each answer: two would wait for each other
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.bodies.append(body)
            said = reply(body)
            if said is None:
                self.close_connection = True
                return
            message = said if isinstance(said, dict) else {"content": said if isinstance(said, str) else None}
            usage = {"prompt_tokens": 900, "completion_tokens": 50}
            choice = {"message": {"role": "assistant", **message}, "finish_reason": "stop"}
            data = {"model": body["model"], "choices": [choice], "usage": usage}
            if isinstance(said, int):
                data = {"error": {"message": f"status {said}"}}
            self.send_response(said if isinstance(said, int) else 200)
            text = json.dumps(data).encode()
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told = ChatServer(f"http://127.0.0.1:{server.server_port}/v1")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
