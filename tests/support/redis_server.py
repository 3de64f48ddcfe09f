"""A real Redis server for a test, on a free loopback port, that can be frozen, killed and started again."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def free_port() -> int:
    """A port of the loopback interface that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class RedisServer:
    """One `redis-server` process at a time, on one port; it runs and logs in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where a client finds it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)]
        command += ["--save", "", "--appendonly", "no", "--logfile", "redis.log"]
        self._process = subprocess.Popen(command)
        deadline = time.monotonic() + 30
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"redis-server does not start: {(self.folder / 'redis.log').read_text('utf-8')}")
            time.sleep(0.01)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as client:
                client.sendall(b"PING\r\n")
                return client.recv(1) == b"+"
        except OSError:
            return False

    def kill(self) -> None:
        """End it at once; what it held is gone."""
        if self._process is not None:
            self._process.kill()  # ends a frozen process too
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """It takes connections and answers nothing any more."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """A server that is killed at the end."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed (Debian, Ubuntu: apt-get install redis-server)")
    server = RedisServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
