"""Writes a history file through errors: rows that cannot be written now wait in memory, and come first later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from context_summarize.messages.rows import JsonRow
from context_summarize.persistence.history_file import HistoryFile, Loaded


@dataclass(frozen=True, slots=True)
class _Change:
    """Rows that are not in the file yet."""

    rows: list[JsonRow]
    whole: bool
    """True if they replace the rows of the file; False if they follow them."""


class HistoryWriter:
    """A history file whose changes are made in order, each one once, whatever errors come between.

    Its methods block and belong to one thread. A method that raises `OSError` has kept its rows: after that, `append`
    only keeps rows, and every other method tries the file again.
    """

    def __init__(self, file: HistoryFile) -> None:
        self._file = file
        self._missing: list[_Change] = []
        self._unread = False
        """True if the file could not be loaded."""
        self._unknown = False
        """True if the file holds rows that this session has not read, because it could not be loaded at first."""
        self._failed = False

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def failed(self) -> bool:
        """True from an error until everything is written."""
        return self._failed

    @property
    def missing(self) -> int:
        """Rows that are not in the file yet."""
        return sum(len(change.rows) for change in self._missing)

    def load(self) -> Loaded:
        """Open, repair and read the file."""
        self._failed = self._unread = True
        loaded = self._load()
        self._failed = False
        return loaded

    def append(self, rows: Sequence[JsonRow]) -> None:
        """Write rows at the end."""
        if self._missing:
            self._missing[-1].rows.extend(rows)
        else:
            self._missing.append(_Change([*rows], whole=False))
        if not self._failed:
            self._catch_up()

    def replace(self, rows: Sequence[JsonRow]) -> None:
        """Archive the file and write these rows. If a replacement is missing already, this one stands in its place."""
        self._missing = [change for change in self._missing if not change.whole]
        self._missing.append(_Change([*rows], whole=True))
        self._catch_up()

    def sync(self) -> None:
        """Write what is missing, and force it onto the disk."""
        self._catch_up(synced=True)

    def close(self) -> None:
        """Write what is missing, and release the file."""
        try:
            self.sync()
        finally:
            self._file.abandon()

    def abandon(self) -> None:
        """Release the file as it is."""
        self._file.abandon()

    def _load(self) -> Loaded:
        try:
            loaded = self._file.load()
        except OSError:
            self._file.abandon()
            raise
        self._unread = False
        return loaded

    def _catch_up(self, synced: bool = False) -> None:
        worked, self._failed = not self._failed, True
        if self._unread:
            self._unknown = bool(self._load().rows)
        while self._missing:
            change = self._missing[0]
            if change.whole or self._unknown:
                self._file.replace(change.rows)
                self._unknown = False
            else:
                self._file.append(change.rows)
            del self._missing[0]
        if synced or not worked:
            self._file.sync()
        self._failed = False
