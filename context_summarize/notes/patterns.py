"""Exact values in a text, told by their form alone, and those of JSON with their keys: what a paraphrase would lose."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from context_summarize.notes.sentences import sentences_of

Kind = Literal["url", "path", "id", "figure", "name", "term"]
"""`figure`: a number, a date, a time, an amount; `name`: a file, a name of code, an option; `term`: a few words."""

LONGEST = 200
"""Characters of a value; longer runs without a blank (base64, minified code) are not worth their tokens."""

_IN_RUN = r"(?:[^\s\"'`<>|^{}\[\]()*,;“”‘’«»]|(?<=\d),(?=\d{1,3}(?!\d)))"  # noqa: RUF001 - quotes
_RUN = re.compile(rf"(?<!{_IN_RUN}){_IN_RUN}*[\d_./\\@A-Z-]{_IN_RUN}*")
"""A run that may be a value: no plain lower-case word is one. It is looked for at its start alone, in linear time."""
_ESCAPE = re.compile(r"(?<!\\)\\[nrt]|(?<!\\)\\+(?=\")")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,15}://\S+")
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_PATH = re.compile(r"(?:[A-Za-z]:)?[\w.@+~:-]*(?:[/\\]{1,2}[\w.@+~:-]+)+[/\\]?")
_FILE = re.compile(r"(?!\w\.\w$)(?=[\w@+-]*[a-z_])[\w@+-]+\.[a-z][a-z0-9]{0,4}|\.[a-z][\w.-]+")
_SITE = re.compile(r"(.+\.[A-Za-z]\w{0,5}):\d{1,7}(?::.*)?")
"""A place in a file: `core/plan.py:138`."""
_CODE = re.compile(
    r"_*[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_*"  # snake_case
    r"|[A-Za-z_]\w+(?:\.[A-Za-z_]\w*)+"  # dotted.name
    r"|_*(?=[A-Za-z]*[a-z][A-Z]|[A-Z]+[a-z]+[A-Z])[A-Za-z][A-Za-z0-9]{3,}"  # camelCase
)
_NUMBERED = re.compile(r"_\d{3,}\Z")
"""Ends an identifier that reads like a name of code: `ann_lee_4711`."""
_OPTION = re.compile(r"--?[A-Za-z][\w-]+")
_FIGURE = re.compile(
    r"[-+~≈]?[$€£¥]?\d[\d.,:/-]*(?:T[\d:.]+Z?)?(?:[+-]\d\d:?\d\d)?[A-Za-z%°]{0,3}"  # 2024-05-01, 10:30, $1.5k, 250ms
)
_LEAST_ID = 4
"""Characters of an identifier that mixes letters and digits."""
_MANY_DIGITS = 5
"""Digits from which a bare number is an identifier."""
_SIGN, _JOINTS = re.compile(r"[-.:,/%$€£¥]"), re.compile(r"[-_#.:/]")
"""Signs that stand in figures but in no bare number; signs that stand between the parts of an identifier."""
_TRIM, _LEAD = ".,:;!?\\*#…", ",:;!?\\*…"
"""Signs after and before a value that are no part of it."""


_IN_PAIR = r"(?:[^,;:()\[\]{}\"'`*\n]|,(?=\S)|(?<=\w)['’](?=\w)|,(?= \d{4}(?!\w)))"
"""A sign of a value that follows a label: a comma only within a number, a list or a date."""
_PAIR = re.compile(
    r"(?<![\w/\"'.\[-])([^\W\d_][\w -]{1,30}?)\*{0,2}:\*{0,2}[ \t]++"
    rf"(?=(?!-\s)(?!\.)({_IN_PAIR}{{1,200}}+)(?P<cut>[\"':]|(?<=\S)[(\[{{]|\*\s?\w|{_IN_PAIR})?)"
)
"""`label: a few words`; `cut` where these words go on, or where they are the label of something else."""
_ASSIGNED = re.compile(r"(?<![\w=-])([\w.-]{2,40})=([\w./:+-]{4,80})")
"""`label=identifier`."""
_SECRET = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase|code)|pwd|secret|credentials?|token|(?:api|access|secret|private)[ _-]?key)"
    r"(?:\W{1,4}(?:is|was))?\W*\Z"
)
"""Ends with a word whose value is a secret."""
_MOST_WORDS = 4
"""Words of a term."""


def names_secret(words: str) -> bool:
    """True where the words end with one such as "password": what follows is in no notes, whatever it looks like."""
    return _SECRET.search(words) is not None


def unescaped(text: str) -> str:
    """The text with blanks in place of the line ends and tabs that JSON writes as two signs."""
    return _ESCAPE.sub(" ", text) if "\\" in text else text


def pairs_in(text: str) -> Iterator[tuple[str, str]]:
    """(label, value) where a text says what something is: `account: A-17`, `colour: pale green`.

    The value is "" where too much follows the label; it is whole or absent.
    """
    for line in (line for line in text.split("\n") if ": " in line):
        read = 0
        for found in _PAIR.finditer(line):
            first, end = next(sentences_of(found[2]))
            is_whole = not found["cut"] or end < len(found[2])
            label = " ".join(found[1].split()[-3:]).lower()
            if found.start() < read:
                continue
            read = found.start(2) + end
            value = " ".join(found[2][first:end].rstrip(" .!?-").split())
            yield label, value if is_whole and len(value.split()) <= _MOST_WORDS else ""
    for label, value in _ASSIGNED.findall(text) if "=" in text else ():
        value = value.rstrip(_TRIM)
        if classify(value) == ((value, "id"),):
            yield label, value


def values_in(text: str) -> dict[str, Kind]:
    """The exact values of a text with their kinds, each once, in the order in which they appear."""
    found: dict[str, Kind] = {}
    for word in dict.fromkeys(unescaped(text).split()):
        if not (word.isalpha() and word.islower()):
            for value, kind in _in_word(word):
                found.setdefault(value, kind)
    return found


def _in_word(word: str) -> tuple[tuple[str, Kind], ...]:
    return tuple(value for run in _RUN.findall(word) for value in classify(run))


def classify(run: str) -> tuple[tuple[str, Kind], ...]:
    """The values of a run without blanks: most often one, or none."""
    if len(run) > LONGEST:
        return ()
    if _URL.fullmatch(run):
        return ((run.rstrip(_TRIM), "url"),)
    name, sign, value = run.partition("=")
    if sign and name and not _PATH.fullmatch(run):
        return classify(name) + classify(value.lstrip("=>"))
    value = run.rstrip(_TRIM).lstrip(_LEAD)
    if site := _SITE.fullmatch(value):
        return ((value, "path"), (site[1], "path"))
    kind = _kind(value)
    return ((value, kind),) if kind else ()


def _kind(value: str) -> Kind | None:
    digits = sum(map(str.isdigit, value))
    if _OPTION.fullmatch(value):
        return "name"
    if _EMAIL.fullmatch(value):
        return "id"
    if digits and _FIGURE.fullmatch(value):
        return "id" if digits >= _MANY_DIGITS and not _SIGN.search(value) else "figure"
    if _PATH.fullmatch(value):
        return "path" if _is_path(value) else None
    if (_FILE.fullmatch(value) and 2 * digits < len(value)) or (
        _CODE.fullmatch(value) and 4 * digits <= len(value) and not _NUMBERED.search(value)
    ):
        return "name"
    is_mixed = digits > 0 and _JOINTS.sub("", value).isalnum()
    return "id" if is_mixed and (len(value) >= _LEAST_ID or value[0] == "#") else None


def _is_path(value: str) -> bool:
    """True unless it is a comment's sign, a command of a chat, or words of prose: "//", "/help", "and/or"."""
    parts = [part for part in re.split(r"[/\\]+", value) if part not in ("", ".", "..", "~")]
    plain = all(part.isalpha() for part in parts) and len(parts) < (2 if value[0] in "/.~" else 3)
    return any(map(str.isalpha, value)) and not value.startswith("//") and (not plain or value[0] in ".~")


# --- JSON ----------------------------------------------------------------------------------------------------------

_LONGEST_JSON = 60_000
"""Characters of JSON that is read; what is longer has no keys."""
_MOST = 3_000
"""Values of one row."""
_LONGEST_LEAF = 80
"""Characters; a longer text is prose, and no value of its key."""
_DEEPEST = 12
_REPR = re.compile(r"[\s\[({]*'")
"""How Python's way to write data begins."""
_NO_REPR = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"abfnrtvxuUN0-7\n]")
"""An escape that Python does not know and never writes: its parser would warn of it on the user's screen."""
_KEY = re.compile(r"[\"']([A-Za-z][A-Za-z_]+\d?)[\"']\s*:")
"""A key that is a label, and no value: `last_four`, `address1`; others may be identifiers or files."""
_NAMES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_IDENTITY = re.compile(r"(?:.*[a-z_-])?(?:_id|Id|ID|-id)|id|ID|uuid|key|name|path")
_EMPTY_NAMES = frozenset({"id", "ids", "uuid", "value", "data", "result", "results", "item", "items", "key"})


class Leaf(NamedTuple):
    """One value."""

    value: str
    about: str
    """Identity of its object, with the name of the key that holds it; "" without one."""
    label: str
    """Its key in plain words; "" for the identity itself."""


def leaves(text: str) -> list[Leaf]:
    """The short values of a text in their order; none of a text that is no data."""
    found: list[Leaf] = []
    if text.lstrip()[:1] in ("{", "[") and len(text) <= _LONGEST_JSON:
        _collect(_parsed(text), "", "", _DEEPEST, found)
    return found


def labels_in(text: str) -> set[str]:
    """The keys of JSON that say what their values are, and are none themselves."""
    return set(_KEY.findall(text))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if not _REPR.match(text) or _NO_REPR.search(text):
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None  # a TypeError: "{{" opens a set that holds what no set can hold


def _collect(data: Any, about: str, label: str, depth: int, found: list[Leaf]) -> None:
    """Add the values of an object; the first key that names it gives its identity."""
    if len(found) >= _MOST or isinstance(data, bool) or not depth:
        return
    if isinstance(data, dict):
        named = (key for key in data if _IDENTITY.fullmatch(str(key)) and isinstance(data[key], str | int))
        identity = next(named, None)
        if identity is not None:
            own = " ".join(f"{_label(str(identity)) or label} {data[identity]}".split())
            about = own if len(own) <= _LONGEST_LEAF else about
        for key, value in data.items():
            if any(map(str.isdigit, str(key))) and not _KEY.fullmatch(f'"{key}":'):
                found.append(Leaf(str(key), about, label))
            _collect(value, about, "" if key == identity else _label(str(key)) or label, depth - 1, found)
    elif isinstance(data, list | tuple):
        for item in data:
            _collect(item, about, label, depth - 1, found)
    elif isinstance(data, str | int | float):
        value = " ".join(str(data).split())
        if 0 < len(value) <= _LONGEST_LEAF:
            found.append(Leaf(value, about, label))


def _label(key: str) -> str:
    """The last two names of a key in plain words, `reservation` for `reservation_id`; "" for an identifier."""
    names = [name.lower() for name in _NAMES.findall(key[:_LONGEST_LEAF])]
    is_id = any(name.isdigit() and len(name) > 2 for name in names)
    return "" if is_id else " ".join([name for name in names if name not in _EMPTY_NAMES][-2:])
