"""Finds, checks and fills the templates of a prompt set: `segment.md` and `merge.md`."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from context_summarize.errors import TemplateError

_FILES = ("segment.md", "merge.md")
_REQUIRED, _OPTIONAL = frozenset({"words", "fence"}), frozenset({"characters", "count"})
_HEADER = frozenset({"version", "variables", "rules", "rules_heading"})


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """One template file."""

    path: Path
    hash: str
    """sha256, in hex, of the whole file with line ends as LF and without trailing newlines. Part of a summary's key."""
    header: Mapping[str, str]
    body: str
    """The text below the header, with `string.Template` variables."""

    def fill(self, **values: str) -> str:
        """Returns the body with its variables replaced, in one pass, so that a `$` inside a value does not change.

        A value that the body does not use is ignored.

        Raises:
            KeyError: the body uses a variable without a value; this cannot happen after the check of a set.
        """
        return Template(self.body).substitute(values)


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The two templates of a set, with the signs of the user's instructions."""

    segment: PromptTemplate
    """System row of the request that summarises a segment. Variables: `words`, `fence`; optional: `characters`."""
    merge: PromptTemplate
    """System row of the request that merges summaries. Variables: `words`, `fence`; optional: `characters`, `count`."""

    @property
    def rule_signs(self) -> tuple[str, ...]:
        """Words from the header of `segment.md` that make a user's sentence an instruction; may be empty."""
        signs = self.segment.header.get("rules", "").replace("’", "'").lower().split(",")
        return tuple(dict.fromkeys(" ".join(sign.split()) for sign in signs if sign.strip()))

    @property
    def rules_heading(self) -> str:
        """Heading, from the same header, under which a summary quotes the user's instructions; may be empty."""
        return self.segment.header.get("rules_heading", "")


def load_prompts(name_or_folder: str) -> PromptSet:
    """Reads and checks a prompt set. Each call reads the disk.

    A value with a path separator, or with `~` at its start, is a folder. Any other value is the name of a set of the
    package or, if there is no such set, a folder in the working directory.

    Raises:
        TemplateError: no such set or folder; a file is missing, unreadable or empty; a variable is missing or unknown.
    """
    folder = _folder(name_or_folder)
    return PromptSet(*(_template(folder / name) for name in _FILES))


def _template(path: Path) -> PromptTemplate:
    text = _text(path)
    header, body = _parts(path, text.split("\n"))
    if not body.strip():
        raise TemplateError(f"{path}: no text in it; write the template, or copy it from the default set")
    _check_variables(path, body)
    return PromptTemplate(path, hashlib.sha256(text.encode("utf-8")).hexdigest(), header, body)


def _folder(name_or_folder: str) -> Path:
    """Returns the folder of a set; its files are not checked."""
    names = available_sets()
    if name_or_folder in names:
        return sets_folder() / name_or_folder
    try:
        folder = Path(name_or_folder).expanduser()
    except RuntimeError as error:
        raise TemplateError(f"prompts {name_or_folder!r}: {error}; give the full path of the folder") from None
    if name_or_folder and folder.is_dir():
        return folder
    near, known = _nearest(name_or_folder, names), _listed(names)
    raise TemplateError(
        f"prompts {name_or_folder!r}: no set of this name{near}, and no folder; "
        f"available: {known}; or give a folder that holds {_listed(_FILES)}"
    )


def available_sets() -> tuple[str, ...]:
    """Returns the names of the sets that come with the package, sorted."""
    return tuple(
        sorted(entry.name for entry in sets_folder().iterdir() if entry.is_dir() and entry.name[0] not in "._")
    )


def sets_folder() -> Path:
    """Returns the folder of the sets: inside the package in a wheel, beside the package in a checkout."""
    package = Path(__file__).parents[1]
    packed = package / "_prompts"
    return packed if packed.is_dir() else package.parent / "prompts"


def _text(path: Path) -> str:
    """Returns the text of a file, with line ends as LF and without trailing newlines."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise TemplateError(f"{path}: missing; a prompt set needs {_listed(_FILES)}") from None
    except OSError as error:
        raise TemplateError(f"{path}: cannot be read ({error.strerror}); make it a readable file") from error
    except UnicodeDecodeError as error:
        raise TemplateError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


def _parts(path: Path, lines: list[str]) -> tuple[dict[str, str], str]:
    """Returns the header's values, and the body without the blank lines around it."""
    if lines[0].rstrip() != "---":
        return {}, "\n".join(lines).strip("\n")
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), None)
    if end is None:
        raise TemplateError(f"{path}: the header has no end; close it with a line ---")
    header = dict[str, str]()
    for number, line in enumerate(lines[1:end], 2):
        key, colon, value = (part.strip() for part in line.partition(":"))
        if key and not (colon and key in _HEADER):
            takes = f"write key: value; this header takes {_listed(sorted(_HEADER))}"
            raise TemplateError(f"{path}, line {number}: unknown key {key!r}{_nearest(key, _HEADER)}; {takes}")
        if key:
            header[key] = value
    return header, "\n".join(lines[end + 1 :]).strip("\n")


def _check_variables(path: Path, body: str) -> None:
    for found in Template.pattern.finditer(body):
        if found.group("invalid") is not None:
            seen, number = body[found.start() : found.start() + 12], body.count("\n", 0, found.start()) + 1
            place = f"a single $ at {seen!r}, line {number} of the text"
            raise TemplateError(f"{path}: {place}; write $$ for a dollar sign, $name for a variable")
    used, known = set(Template(body).get_identifiers()), _REQUIRED | _OPTIONAL
    if unknown := sorted(used - known):
        name, takes = unknown[0], f"this file takes {_dollars(known)}, and $$ for a dollar sign"
        raise TemplateError(f"{path}: unknown variable ${name}{_nearest(name, known)}; {takes}")
    if missing := sorted(_REQUIRED - used):
        raise TemplateError(f"{path}: the variable ${missing[0]} is missing; this file needs {_dollars(_REQUIRED)}")


def _nearest(name: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name.lower(), sorted(known), 1)
    return f" (did you mean {matches[0]!r}?)" if matches else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _dollars(names: Iterable[str]) -> str:
    return _listed(f"${name}" for name in sorted(names))
