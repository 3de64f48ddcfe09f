"""Checks a prompt set, and copies one."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from context_summarize.errors import TemplateError
from context_summarize.summaries.prompts import find_problems, find_set, load_prompts

_LENGTH = "at most $words words"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that makes a set unusable."""

    file: str
    """`segment.md`, `merge.md` or `frame.md`; empty for a problem of the folder itself."""
    text: str
    """Problem and remedy, with the full path."""


def check_set(name_or_folder: str, *, root: Path | None = None) -> list[Problem]:
    """Every problem of a set, file by file; empty if `load_prompts` accepts the set.

    If a file's header or text cannot be read, its other problems show only when that is corrected.
    """
    try:
        folder = find_set(name_or_folder, root=root)
    except TemplateError as error:
        return [Problem("", str(error))]
    return [Problem(name, text) for name, text in find_problems(folder)]


def find_warnings(name_or_folder: str, *, root: Path | None = None) -> list[str]:
    """What a set without problems lacks; it can be used all the same.

    Without a heading for quoted instructions these are found by signs alone. A summariser that is code, such as
    `offline`, reads its length in the words of the text.

    Raises:
        TemplateError: the set has a problem.
    """
    prompts = load_prompts(name_or_folder, root=root)
    path, heading = prompts.segment.path, prompts.rules_heading
    found = []
    if not heading:
        found.append(f"{path}: the header has no rules_heading; name the heading under which instructions are quoted")
    elif f"{heading}:" not in prompts.segment.body:
        found.append(f"{path}: the text asks for no heading {heading!r}, which rules_heading names; ask for it")
    for template in (prompts.segment, prompts.merge):
        if _LENGTH not in template.body:
            why = "a summariser that is code, such as offline, reads its length there"
            found.append(f"{template.path}: the text does not say {_LENGTH!r}; {why}")
    return found


def copy_set(name_or_folder: str, target: str | Path, *, root: Path | None = None) -> Path:
    """Copy the three files of a set into a new folder, where the user can change them; returns the folder.

    Raises:
        TemplateError: there is no such set, it is damaged, or the target exists or cannot be created.
    """
    prompts = load_prompts(name_or_folder, root=root)
    try:
        folder = Path(target).expanduser()
        folder.mkdir(parents=True)
        for template in (prompts.segment, prompts.merge, prompts.frame):
            shutil.copyfile(template.path, folder / template.path.name)
    except FileExistsError:
        raise TemplateError(f"{folder} exists and is left unchanged; name a folder that does not exist yet") from None
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TemplateError(f"{target}: the set cannot be written there ({reason}); name another folder") from error
    return folder
