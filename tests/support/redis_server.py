"""A real Redis server for a test, on a free loopback port, that can be frozen, killed and started again."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError
from redis.retry import Retry


def free_port() -> int:
    """A port of the loopback interface that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class RedisServer:
    """One `redis-server` process at a time, on one port."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.port = folder, free_port()
        self.address = f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", ""]
        self._process = subprocess.Popen(command, cwd=self._folder)
        patient = Retry(ConstantBackoff(0.02), 1_500, supported_errors=(OSError, ConnectionError))
        with Redis.from_url(self.address, retry=patient) as client:
            client.ping()

    def kill(self) -> None:
        """End it at once, frozen or not; what it held is gone."""
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """It takes connections and answers nothing any more."""
        self._process.send_signal(signal.SIGSTOP)


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """A server that is killed at the end."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed (Debian, Ubuntu: apt-get install redis-server)")
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
