"""The file of an exam: everything that was paid for, written after each answer, so that another run goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from context_summarize.errors import CommandError


def read_json(path: Path) -> Any:
    """Returns the JSON of a file; None if there is no such file; raises CommandError if it cannot be read."""
    try:
        return json.loads(path.read_text("utf-8")) if path.exists() else None
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"{path} cannot be read as JSON: {error}; name another file") from None


def write_json(path: Path, data: Any) -> None:
    """Writes a file as a whole: a run that is killed leaves the one before it. Only its user may read it."""
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(data, file, indent=2)
    new.replace(path)


class Paper:
    """An exam as JSON: `about`, `questions` by part of the session, `answers` and `grades` by number, `used`."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        found = read_json(path)
        is_paper = isinstance(found, dict) and all(isinstance(found.get(name), dict) for name in ("about", "questions"))
        if found is not None and not is_paper:
            raise CommandError(f"{path} is not replaced: it is no exam; name another file")
        for name, was in found["about"].items() if found else ():
            if was != about.get(name):
                other = f"{name}: {was!r}, now {about.get(name)!r}"
                raise CommandError(f"{path} is of another exam ({other}); name another file")
        empty: dict[str, Any] = {"questions": {}, "answers": {}, "grades": {}, "used": {}}
        self.path, self.data = path, {"about": about, **empty, **(found or {})}
        self._written = _written(path)
        """The file's time of change after the last writing."""

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The questions in the order in which they came: answers and grades go by their numbers."""
        return [question for part in self.data["questions"].values() for question in part]

    def save(self) -> None:
        """Writes the file; raises CommandError if another exam has done so meanwhile."""
        if _written(self.path) != self._written:
            raise CommandError(f"{self.path} was changed by another exam; name another file for one of them")
        write_json(self.path, self.data)
        self._written = _written(self.path)


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0
