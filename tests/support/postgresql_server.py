"""A real PostgreSQL server for tests: a temporary cluster on a free loopback port, with a database for each test."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.redis_server import free_port

PASSWORD = "p@ss/w:rd"
ACCOUNT = "postgres"
"""Who runs the server when root runs the tests: PostgreSQL refuses root."""


def _programs() -> Path | None:
    """The folder of `initdb` and `postgres`; Debian keeps it out of the PATH."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    return max((path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")), default=None)


def _has_account() -> bool:
    try:
        pwd.getpwnam(ACCOUNT)
    except KeyError:
        return False
    return True


class PostgresqlServer:
    """One `postgres` process at a time, on one port and one cluster.

    Args:
        folder: an empty one that the account of the server may enter; cluster and log go there.
        programs: the folder of `initdb` and `postgres`.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self.port = free_port()
        self._programs = programs
        self._log = folder / "postgresql.log"
        self._data = folder / "data"
        self._as: dict[str, Any] = {"cwd": folder}
        if os.geteuid() == 0:
            self._as |= {"user": ACCOUNT, "group": ACCOUNT, "extra_groups": []}
            shutil.chown(folder, ACCOUNT, ACCOUNT)
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0

    def address(self, database: str = "postgres") -> str:
        """Where a client finds one of its databases."""
        return f"postgresql://tester:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/{database}"

    def make_cluster(self) -> None:
        """The files of a new, empty cluster."""
        secret = self._data.with_name("password")
        secret.write_text(PASSWORD)
        secret.chmod(0o644)  # read by the account of the server
        command = [str(self._programs / "initdb"), "--pgdata", str(self._data), "--username", "tester"]
        command += [
            "--auth",
            "scram-sha-256",
            "--pwfile",
            str(secret),
            "--encoding",
            "UTF8",
            "--no-locale",
            "--no-sync",
        ]
        made = subprocess.run(command, capture_output=True, text=True, check=False, **self._as)
        if made.returncode:
            raise RuntimeError(f"initdb fails: {made.stdout}{made.stderr}")

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [str(self._programs / "postgres"), "-D", str(self._data), "-h", "127.0.0.1", "-p", str(self.port)]
        command += ["-k", "", "-F"]  # no socket file, no waiting for the disk
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **self._as)
        deadline = time.monotonic() + 30
        while self._asked("pg_isready", "--quiet").returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"postgres does not start: {self._log.read_text('utf-8')}")
            time.sleep(0.05)

    def new_database(self) -> str:
        """The address of a database that holds nothing."""
        self._databases += 1
        name = f"test_{self._databases}"
        made = self._asked("createdb", "--template", "template0", name)
        if made.returncode:
            raise RuntimeError(f"createdb fails: {made.stderr}")
        return self.address(name)

    def stop(self) -> None:
        """End it and every connection; what it holds stays in its cluster."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # a fast shutdown
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _asked(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._programs / program), "-h", "127.0.0.1", "-p", str(self.port), "-U", "tester", *arguments]
        environment = {**os.environ, "PGPASSWORD": PASSWORD}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=30)


@contextmanager
def postgresql_server() -> Iterator[PostgresqlServer]:
    """A running server that is ended, and its cluster removed, at the end."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (Debian, Ubuntu: apt-get install postgresql)")
    if os.geteuid() == 0 and not _has_account():
        pytest.skip(f"PostgreSQL does not run as root, and there is no account '{ACCOUNT}'")
    # Not pytest's tmp_path: nobody but its owner may enter that.
    with tempfile.TemporaryDirectory(prefix="postgresql-") as folder:
        server = PostgresqlServer(Path(folder), programs)
        server.make_cluster()
        try:
            server.start()
            yield server
        finally:
            server.stop()
