"""Prompt sets as files to look at: which there are, everything that is wrong with one, a copy to start from."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import TemplateError
from .prompts import (
    _FILES,
    PromptTemplate,
    _check_variables,
    _folder,
    _items,
    _read,
    _root,
    _Slots,
    _split,
    available_sets,
    load_prompts,
)

_ABOUT: Mapping[str, str] = {
    "brief": "Few headings, few words: the least that instructions and frames cost.",
    "coding": "Programming sessions: branch, files, commands, tests, errors.",
    "conversation": "Talk with people: who they are, wishes, promises, open questions.",
    "default": "Any agent with tools: goal, rules, decisions, artifacts, errors, state.",
}


@dataclass(frozen=True, slots=True)
class SetInfo:
    """A prompt set that comes with the package."""

    name: str
    folder: Path
    about: str
    """One sentence; empty for a set that this version does not know."""
    version: str
    """As the header of `segment.md` says; empty where it says nothing."""
    words: int
    """Words of instruction that a request for a summary carries: the text of `segment.md`."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps a set from being used."""

    file: str
    """`segment.md`, `merge.md` or `frame.md`; empty where the folder itself is meant."""
    text: str
    """What is wrong and what to do, with the full path."""


def list_sets(*, root: Path | None = None) -> tuple[SetInfo, ...]:
    """The sets that come with the package, sorted by name; `root` as in `load_prompts`.

    Raises:
        TemplateError: one of them is damaged.
    """
    found = []
    for name in available_sets(root=root):
        segment = load_prompts(name, root=root).segment
        info = SetInfo(name, segment.path.parent, _ABOUT.get(name, ""), segment.version, len(segment.body.split()))
        found.append(info)
    return tuple(found)


def check_set(name_or_folder: str, *, root: Path | None = None) -> list[Problem]:
    """Everything that is wrong with a set, file by file; nothing when `load_prompts` takes it.

    Of a file whose header or text cannot be read only that is told: what else is wrong with it shows afterwards.
    """
    try:
        folder = find_set(name_or_folder, root=root)
    except TemplateError as error:
        return [Problem("", str(error))]
    return [Problem(name, text) for name, slots in _FILES.items() for text in _problems(folder / name, slots)]


def find_set(name_or_folder: str, *, root: Path | None = None) -> Path:
    """The folder of a set, by its name or as a path; what is in it is not looked at.

    Raises:
        TemplateError: there is no such set or folder.
    """
    return _folder(name_or_folder, _root(Path(__file__).parent) if root is None else root)


def copy_set(name_or_folder: str, target: str | Path, *, root: Path | None = None) -> Path:
    """Copy the three files of a set into a new folder, to be changed there; returns the folder.

    Raises:
        TemplateError: there is no such set, it is damaged, the target exists or cannot be made.
    """
    prompts = load_prompts(name_or_folder, root=root)
    try:
        folder = Path(target).expanduser()
        folder.mkdir(parents=True)
        for template in (prompts.segment, prompts.merge, prompts.frame):
            shutil.copyfile(template.path, folder / template.path.name)
    except FileExistsError:
        raise TemplateError(f"{folder} exists and is left as it is; name a folder that does not exist yet") from None
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TemplateError(f"{target}: the set cannot be written there ({reason}); name another folder") from error
    return folder


def _problems(path: Path, slots: _Slots) -> Iterator[str]:
    """What is wrong with one file, each told as `load_prompts` would tell it if it were the only one."""
    try:
        header, body = _split(path, _read(path), slots.header)
        template = PromptTemplate(path, "", "", body)
        # With every variable allowed and none asked for, only the form of the text is left to be wrong.
        used = template.variables
        _check_variables(template, _Slots(frozenset(), used), None)
    except TemplateError as error:
        yield str(error)
        return
    missing = slots.required - used
    for name in sorted(used - slots.known):
        yield from _told(PromptTemplate(path, "", "", f"${{{name}}}"), _Slots(frozenset(), slots.known), None)
    for name in sorted(missing):
        yield from _told(PromptTemplate(path, "", "", ""), _Slots(frozenset({name})), None)
    if "variables" in header:
        named = set(_items(header["variables"]))
        for name in sorted(used ^ named):
            body = f"${{{name}}}" if name in used else ""
            declared = name if name not in used else ""
            yield from _told(PromptTemplate(path, "", "", body), _Slots(frozenset(), frozenset({name})), declared)


def _told(template: PromptTemplate, slots: _Slots, declared: str | None) -> Iterator[str]:
    try:
        _check_variables(template, slots, declared)
    except TemplateError as error:
        yield str(error)
