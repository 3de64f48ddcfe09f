"""What every connection to a SQLite file of summaries needs: text that may be damaged, transactions, error codes."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator


def read_damaged_text(connection: sqlite3.Connection) -> None:
    """Invalid UTF-8 is damage of one row, which its reader finds, and no error of the whole database."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")


@contextlib.contextmanager
def write_transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One write transaction: all of it is done, or nothing."""
    # IMMEDIATE waits for another writer here. Later in the transaction SQLite would fail instead of waiting.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def code_of(error: sqlite3.Error) -> int:
    """SQLite's primary result code; -1 for an error that Python's own layer found."""
    code = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF
