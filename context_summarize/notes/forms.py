"""Finds names in a text by their form alone: paths, addresses, names of code and ids."""

from __future__ import annotations

import re

_LONGEST = 200
"""Characters of the longest name. Longer runs without a blank are base64 or minified code."""
_LEAST = 4
"""Characters of the shortest id; a number with as many digits is an id."""

_IN_RUN = r"(?:[^\s\"'`<>|^{}\[\]()*,;“”‘’«»]|(?<=\d),(?=\d\d\d))"  # noqa: RUF001 - quotes
_RUN = re.compile(rf"(?<!{_IN_RUN}){_IN_RUN}*?(?:[\d_./\\@-]|[a-z][A-Z]){_IN_RUN}*+")
"""Signs without a blank between them that are no plain word. A match can only begin at a run's start: linear time."""
_MARKS, _GONE = re.compile(r"(?<!\\)(?:\\[nrt]|\\++(?=\"))|(\[redacted:[^\]\n]{0,60}\])"), "\0"
"""Line ends, tabs and quotation marks as JSON writes them; and the mark of a removed secret, which is no name."""
_PLAIN = re.compile(r"[\w.@:/+~#%&?=-]+|[A-Za-z]:\\.*|[A-Za-z][\w+.-]{1,15}://.*")
"""A name has no other signs, except for a path of Windows and an address."""
_JOINT = re.compile(r"(?<![^\W_])\.[a-z]|[^\W_](?:[.@:-]|_+)[^\W_]|[a-z][A-Z]|\\")
"""Parts of a name meet here: `a.py`, `a_b`, `a-b`, `aB`; a file may begin with a dot."""
_SITE = re.compile(r"(.*\.[A-Za-z]\w{0,5}):\d{1,7}(?::.*)?")
"""A place in a file: `core/plan.py:138`."""
_WORDS = re.compile(r"[^\W\dA-Z_]+(?:-[^\W\dA-Z_]+)+|(?:\.[^\W\d_]+)+")
"""Words of prose, and fields, which are no names: `non-refundable`, `.body`."""
_FIGURE = re.compile(r"[-+~≈]?[$€£¥]?\d[\d.,:/-]*(?:T[\d:.]+Z?)?(?:[+-]\d\d:?\d\d)?[^\W\d_]{0,3}[%°]?")
_SHORT = re.compile(r"[a-zA-Z]\.[a-zA-Z]|\d")
"""An abbreviation or a single digit, which is no value."""
_AFTER, _BEFORE = ".,:;!?\\*#…", ",:;!?\\*…"
"""Signs after a value, and before it, that do not belong to it."""


def names_in(text: str) -> list[str]:
    """Returns the paths, addresses, names of code and ids of a text, each once, in their order."""
    if "\\" in text or "[redacted:" in text:
        text = _MARKS.sub(lambda found: _GONE if found[1] else " ", text)
    runs = (run for run in dict.fromkeys(_RUN.findall(text)) if len(run) <= _LONGEST and _GONE not in run)
    parts = (part for run in runs for part in ([run] if "://" in run else run.split("=")))
    values = dict.fromkeys(part.rstrip(_AFTER).lstrip(_BEFORE) for part in parts)
    return [value for value in values if value and not _SHORT.fullmatch(value) and _is_name(value)]


def spelled(name: str) -> str:
    """Returns the one spelling of a name: `./pkg/x.go` and `pkg/x.go:12` are `pkg/x.go`."""
    site = _SITE.fullmatch(name) if ":" in name else None
    return (site[1] if site else name).removeprefix("./")


def _is_name(value: str) -> bool:
    if value.isdigit():
        return len(value) >= _LEAST
    if value[0] == "-" or _FIGURE.fullmatch(value) or _WORDS.fullmatch(value) or not _PLAIN.fullmatch(value):
        return False
    if "/" in value:
        return _is_path(value)
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return (is_mixed and len(value) >= _LEAST) or value[0] == "#" or _JOINT.search(value) is not None


def _is_path(value: str) -> bool:
    """Returns False for a comment's sign, a command of a chat, or words of prose: "//", "/help", "and/or"."""
    parts = [part for part in value.split("/") if part not in ("", ".", "..", "~")]
    most = 1 if value[0] == "/" else 2
    is_plain = all(map(str.isalpha, parts)) and len(parts) <= most
    return any(map(str.isalpha, value)) and not value.startswith("//") and (not is_plain or value[0] in ".~")
