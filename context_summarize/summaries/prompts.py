"""Finds, checks and fills the templates of a prompt set: `segment.md` and `merge.md`."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
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
    templates, problems = _read_set(_folder(name_or_folder))
    if len(problems) > 1:
        raise TemplateError("\n- ".join([f"the prompt set has {len(problems)} problems:", *problems]))
    if problems:
        raise TemplateError(problems[0])
    return PromptSet(*templates)


def _read_set(folder: Path) -> tuple[list[PromptTemplate], list[str]]:
    """Returns the files that can be read, and every problem."""
    templates, problems = list[PromptTemplate](), list[str]()
    for name in _FILES:
        path = folder / name
        try:
            text = _text(path)
        except TemplateError as error:
            problems.append(str(error))
            continue
        header, body, wrong = _parts(text.split("\n"))
        found = (
            [*wrong, *_wrong_variables(body)]
            if body.strip()
            else [*wrong, ": no text in it; write the template, or copy it from the default set"]
        )
        problems += [f"{path}{problem}" for problem in found]
        templates.append(PromptTemplate(path, hashlib.sha256(text.encode("utf-8")).hexdigest(), header, body))
    return templates, problems


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


def _parts(lines: list[str]) -> tuple[dict[str, str], str, list[str]]:
    """Returns the header's values, the body without the blank lines around it, and the problems of the header."""
    if lines[0].rstrip() != "---":
        return {}, "\n".join(lines).strip("\n"), []
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), None)
    if end is None:
        return {}, "\n".join(lines[1:]), [": the header has no end; close it with a line ---"]
    header, wrong = dict[str, str](), list[str]()
    for number, line in enumerate(lines[1:end], 2):
        key, colon, value = (part.strip() for part in line.partition(":"))
        if key and not (colon and key in _HEADER):
            takes = f"write key: value; this header takes {_listed(sorted(_HEADER))}"
            wrong.append(f", line {number}: unknown key {key!r}{_nearest(key, _HEADER)}; {takes}")
        elif key:
            header[key] = value
    return header, "\n".join(lines[end + 1 :]).strip("\n"), wrong


def _wrong_variables(body: str) -> Iterator[str]:
    """Yields the problems of the variables of a text, the most serious first."""
    for found in Template.pattern.finditer(body):
        if found.group("invalid") is not None:
            seen, number = body[found.start() : found.start() + 12], body.count("\n", 0, found.start()) + 1
            place = f"a single $ at {seen!r}, line {number} of the text"
            yield f": {place}; write $$ for a dollar sign, $name for a variable"
    used, known = set(Template(body).get_identifiers()), _REQUIRED | _OPTIONAL
    for name in sorted(used - known):
        taken = _dollars(known)
        yield f": unknown variable ${name}{_nearest(name, known)}; this file takes {taken}, and $$ for a dollar sign"
    for name in sorted(_REQUIRED - used):
        yield f": the variable ${name} is missing; this file needs {_dollars(_REQUIRED)}"


def _nearest(name: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name.lower(), sorted(known), 1)
    return f" (did you mean {matches[0]!r}?)" if matches else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _dollars(names: Iterable[str]) -> str:
    return _listed(f"${name}" for name in sorted(names))
