"""Finds, checks and fills the templates of a prompt set: `segment.md`, `merge.md` and `frame.md`."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from context_summarize.errors import TemplateError


@dataclass(frozen=True, slots=True)
class _Slots:
    required: frozenset[str]
    optional: frozenset[str] = frozenset()
    header: frozenset[str] = frozenset({"version", "variables"})

    @property
    def known(self) -> frozenset[str]:
        return self.required | self.optional


_FILES: Mapping[str, _Slots] = {
    "segment.md": _Slots(
        frozenset({"words", "fence"}), header=frozenset({"version", "variables", "rules", "rules_heading"})
    ),
    "merge.md": _Slots(frozenset({"words", "fence"}), frozenset({"count"})),
    "frame.md": _Slots(frozenset({"text", "first", "last"}), frozenset({"count", "level", "recall"})),
}


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """One checked template file."""

    path: Path
    version: str
    """From the header; empty if the header gives none."""
    hash: str
    """sha256, in hex, of the whole file with line ends as LF and without trailing newlines. Part of a summary's key."""
    body: str
    """The text below the header, with `string.Template` variables."""

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables in the body."""
        return frozenset(Template(self.body).get_identifiers())

    def fill(self, **values: str) -> str:
        """The body with its variables replaced, in one pass, so that a `$` inside a value does not change.

        A value that the body does not use is ignored.

        Raises:
            TemplateError: the body uses a variable without a value.
        """
        try:
            return Template(self.body).substitute(values)
        except KeyError as error:
            raise TemplateError(
                f"{self.path}: no value for ${error.args[0]}; pass it to fill(), which got {_listed(values)}"
            ) from None


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The three templates of a set, and how the user's instructions are found."""

    name: str
    """The requested name: the name of a set, or the path of a folder."""
    segment: PromptTemplate
    """System row of the request that summarises a segment. Variables: `words`, `fence`."""
    merge: PromptTemplate
    """System row of the request that merges summaries. Variables: `words`, `fence`; optional: `count`."""
    frame: PromptTemplate
    """The text around a summary in a view. Variables: `text`, `first`, `last`; optional: `count`, `level`, `recall`.

    `recall` says how to ask for the originals, with a space before it, or is empty.
    """
    rule_signs: tuple[str, ...]
    """Words from the header of `segment.md` that make a user's sentence an instruction; may be empty."""
    rules_heading: str
    """Heading, from the same header, under which a summary quotes the user's instructions; may be empty."""


def load_prompts(name_or_folder: str, *, root: Path | None = None) -> PromptSet:
    """Reads and checks a prompt set. Each call reads the disk.

    A value with a path separator, or with `~` at its start, is a folder. Any other value is the name of a set of the
    package or, if there is no such set, a folder in the working directory. `root` is the folder of the named sets, by
    default the package's own.

    Raises:
        TemplateError: no such set or folder; a file is missing, unreadable or empty; a variable is missing or unknown.
    """
    folder = find_set(name_or_folder, root=root)
    templates: dict[str, PromptTemplate] = {}
    words: tuple[str, ...] = ()
    heading = ""
    for file_name, slots in _FILES.items():
        templates[file_name], header = _load(folder / file_name, slots)
        if "rules" in header:
            words = tuple(dict.fromkeys(_items(header["rules"].replace("’", "'").lower())))
        heading = header.get("rules_heading", heading)
    return PromptSet(
        name_or_folder, templates["segment.md"], templates["merge.md"], templates["frame.md"], words, heading
    )


def find_problems(folder: Path) -> list[tuple[str, str]]:
    """(file, problem and remedy) for every problem of a folder as a set; the files in order.

    `load_prompts` raises the first problem. If a file's header or text cannot be read, its other problems show only
    when that is corrected.
    """
    return [(name, text) for name, slots in _FILES.items() for text in _problems(folder / name, slots)]


def find_set(name_or_folder: str, *, root: Path | None = None) -> Path:
    """The folder of a set, found as in `load_prompts`; its files are not checked.

    Raises:
        TemplateError: there is no such set or folder.
    """
    return _folder(name_or_folder, _root(Path(__file__).parents[1]) if root is None else root)


def available_sets(*, root: Path | None = None) -> tuple[str, ...]:
    """Names of the sets that come with the package, sorted; `root` as in `load_prompts`."""
    root = _root(Path(__file__).parents[1]) if root is None else root
    if not root.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in root.iterdir() if entry.is_dir() and entry.name[0] not in "._"))


def _root(package: Path) -> Path:
    """The folder of the sets: inside the package in a wheel, beside the package in a checkout."""
    packed = package / "_prompts"
    return packed if packed.is_dir() else package.parent / "prompts"


def _folder(name_or_folder: str, root: Path) -> Path:
    separators = {os.sep, os.altsep or os.sep}
    is_path = name_or_folder.startswith("~") or any(separator in name_or_folder for separator in separators)
    names = available_sets(root=root)
    if not is_path and name_or_folder in names:
        return root / name_or_folder
    try:
        folder = Path(name_or_folder).expanduser()
    except RuntimeError as error:
        raise TemplateError(f"prompts {name_or_folder!r}: {error}; give the full path of the folder") from None
    if name_or_folder and folder.is_dir():
        return folder
    if is_path:
        raise TemplateError(
            f"prompts {name_or_folder!r}: {folder} is not a folder; give a folder that holds {_listed(_FILES)}"
        )
    raise TemplateError(
        f"prompts {name_or_folder!r}: no set of this name{_nearest(name_or_folder, names)}; "
        f"available: {_listed(names)}; or give the path of a folder that holds {_listed(_FILES)}"
    )


def _load(path: Path, slots: _Slots) -> tuple[PromptTemplate, dict[str, str]]:
    template, header = _parse(path, slots)
    for problem in _wrong_variables(template, slots, header.get("variables")):
        raise TemplateError(problem)
    return template, header


def _problems(path: Path, slots: _Slots) -> Iterator[str]:
    """Every problem of one file."""
    try:
        template, header = _parse(path, slots)
    except TemplateError as error:
        yield str(error)
        return
    yield from _wrong_variables(template, slots, header.get("variables"))


def _parse(path: Path, slots: _Slots) -> tuple[PromptTemplate, dict[str, str]]:
    """The template and its header, without a check of its variables."""
    text = _read(path)
    header, body = _split(path, text, slots.header)
    hashed = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return PromptTemplate(path, header.get("version", ""), hashed, body), header


def _read(path: Path) -> str:
    """The file's text with line ends as LF and without trailing newlines."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise TemplateError(f"{path}: missing; a prompt set needs {_listed(_FILES)}") from None
    except OSError as error:
        raise TemplateError(f"{path}: cannot be read ({error.strerror}); make it a readable file") from error
    except UnicodeDecodeError as error:
        raise TemplateError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


def _split(path: Path, text: str, keys: frozenset[str]) -> tuple[dict[str, str], str]:
    """The header's values, and the body without the blank lines around it."""
    lines = text.split("\n")
    header: dict[str, str] = {}
    if lines[0].rstrip() == "---":
        end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
        if end is None:
            raise TemplateError(f"{path}: the header has no end; close it with a line ---")
        header = _header(path, lines[1:end], keys)
        lines = lines[end + 1 :]
    elif _lacks_its_beginning(lines, keys):
        raise TemplateError(f"{path}: the header has no beginning; open the file with a line ---")
    body = "\n".join(lines).strip("\n")
    if not body.strip():
        raise TemplateError(f"{path}: no text in it; write the template, or copy it from the default set")
    return header, body


def _lacks_its_beginning(lines: list[str], keys: frozenset[str]) -> bool:
    """True if only header lines or blank lines precede the first line ---: they would be sent as a prompt."""
    end = next((number for number, line in enumerate(lines) if line.rstrip() == "---"), None)
    return end is not None and all(not line.strip() or line.partition(":")[0].strip() in keys for line in lines[:end])


def _header(path: Path, lines: list[str], keys: frozenset[str]) -> dict[str, str]:
    header: dict[str, str] = {}
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        key, colon, value = (part.strip() for part in line.partition(":"))
        where = f"{path}, line {number}"
        if not colon:
            raise TemplateError(f"{where}: {key!r} is not a header line; write key: value")
        if key not in keys:
            known = _listed(sorted(keys))
            raise TemplateError(f"{where}: unknown key {key!r}{_nearest(key, keys)}; this header takes {known}")
        if key in header:
            raise TemplateError(f"{where}: {key!r} is given twice; keep one")
        header[key] = value
    return header


def _wrong_variables(template: PromptTemplate, slots: _Slots, declared: str | None) -> Iterator[str]:
    """The problems of the variables of a text and of its header, the most serious first."""
    path = template.path
    if not Template(template.body).is_valid():
        yield f"{path}: {_bad_dollar(template.body)}; write $$ for a dollar sign, $name for a variable"
        return
    used = template.variables
    for name in sorted(used - slots.known):
        yield (
            f"{path}: unknown variable ${name}{_nearest(name, slots.known)}; this file takes {_dollars(slots.known)}, "
            "and $$ for a dollar sign"
        )
    for name in sorted(slots.required - used):
        yield f"{path}: the variable ${name} is missing; this file needs {_dollars(slots.required)}"
    if declared is not None:
        for name in sorted(used.symmetric_difference(_items(declared))):
            where = "used but not named" if name in used else "named but not used"
            yield f"{path}: ${name} is {where} in the header's variables; correct one of the two"


def _bad_dollar(body: str) -> str:
    """Names the place of the first `$` that is neither a variable nor `$$`."""
    found = next(match for match in Template.pattern.finditer(body) if match.group("invalid") is not None)
    number = body.count("\n", 0, found.start()) + 1
    return f"a single $ at {body[found.start() : found.start() + 12]!r}, line {number} of the text"


def _items(listed: str) -> list[str]:
    return [item for item in (" ".join(part.split()) for part in listed.split(",")) if item]


def _nearest(name: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name.lower(), sorted(known), 1)
    return f" (did you mean {matches[0]!r}?)" if matches else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _dollars(names: Iterable[str]) -> str:
    return _listed(f"${name}" for name in sorted(names))
