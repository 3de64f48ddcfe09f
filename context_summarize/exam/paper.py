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
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(data, file, indent=2)
        new.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}") from None


class Paper:
    """An exam as JSON: `about`, `parts` and `questions`, `answers` and `grades` by number of the question, `used`."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        found = read_json(path)
        if found is not None and not (isinstance(found, dict) and isinstance(found.get("about"), dict)):
            raise CommandError(f"{path} is not replaced: it is no exam; name another file")
        for name, was in found["about"].items() if found else ():
            if was != about.get(name):
                other = f"{name}: {was!r}, now {about.get(name)!r}"
                raise CommandError(f"{path} is of another exam ({other}); name another file")
        empty: dict[str, Any] = {"parts": {}, "questions": [], "answers": {}, "grades": {}, "used": {}}
        self.path, self.data = path, {"about": about, **empty, **(found or {})}

    def save(self) -> None:
        """Writes the file."""
        write_json(self.path, self.data)

    def errors(self) -> list[str]:
        """Returns the errors that stand in place of questions, answers and grades."""
        found = [part for part in self.data["parts"].values() if isinstance(part, str)]
        asked = [one for given in self.data["answers"].values() for one in given.values()]
        return found + [one["error"] for one in (*asked, *self.data["grades"].values()) if "error" in one]
