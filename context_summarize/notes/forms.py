"""The forms of names and figures: what a text may hold that a paraphrase would lose, told by its signs alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 200
"""Characters of a name; longer runs without a blank (base64, minified code) are none."""

_RUN = re.compile(r"(?:[^\s\"'`<>|^{}\[\]()*,;=“”‘’«»]|(?<=\d),(?=\d\d\d))+")  # noqa: RUF001 - quotes
_ESCAPE = re.compile(r"(?<!\\)\\[nrt]|\\+(?=\")")
"""Line ends, tabs and quotation marks as JSON writes them."""
_LISTED = re.compile(r"(?m)^[ \t]*+\d++(?:[\t|→]|:(?!\d))")
"""The number of a line that a tool shows."""
_TELLING = re.compile(r"[\d_./\\@-]|[a-z][A-Z]")
"""One of these stands in every name and figure."""
_SITE = re.compile(r"(.*\.[A-Za-z]\w{0,5}):\d{1,7}(?::.*)?")
"""A place in a file: `core/plan.py:138`."""
_NAME = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{1,15}://\S+"
    r"|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"
    r"|(?P<path>[\w.@+~:-]*(?:/{1,2}[\w.@+~:-]+)+/?)|(?:[A-Za-z]:|\.{1,2})(?:\\{1,2}[\w.@+~-]+)+\\?"
    r"|\.[a-z][\w.-]+|[\w@+-]*[A-Za-z_][\w@+-]*(?:\.[\w@+-]+)*\.[a-z][a-z0-9]{0,4}"  # a file
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|_*[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_*"  # dotted.name, snake_case
    r"|[a-z][a-z0-9]*(?:-[a-z0-9]+)+"  # kebab-case
    r"|_*(?=[A-Za-z]*[a-z][A-Z]|[A-Z]+[a-z]+[A-Z])[A-Za-z][A-Za-z0-9]{3,}"  # camelCase
    r"|(?=\D*\d)(?=[\W\d_]*[^\W\d_])#?[\w.:/-]{4,}|#\d+|\d{4,}"  # an id: letters and digits, or many digits
)
_FIGURE = re.compile(r"[-+~≈]?[$€£¥]?\d[\d.,:/-]*(?:T[\d:.]+Z?)?(?:[+-]\d\d:?\d\d)?[^\W\d_]{0,3}[%°]?")
_SHORT = re.compile(r"[a-zA-Z]\.[a-zA-Z]|\d")
"""An abbreviation, or one digit: it says nothing alone."""
_AFTER, _BEFORE = ".,:;!?\\*#…", ",:;!?\\*…"
"""Signs after and before a value that are no part of it."""


def names_in(text: str) -> list[str]:
    """Returns the paths, addresses, names of code and ids of a text, each once, in their order."""
    return [value for value in _values(text) if _is_name(value)]


def values_in(text: str) -> list[str]:
    """Returns the names and the figures of a text, each once, in their order."""
    return [value for value in _values(text) if _is_name(value) or _is_figure(value)]


def without_line_numbers(text: str) -> str:
    """Returns a result without the numbers that a tool puts before the lines of a file."""
    return _LISTED.sub("", text)


def spelled(name: str) -> str:
    """Returns the one spelling of a name: `./pkg/x.go` and `pkg/x.go:12` are `pkg/x.go`."""
    site = _SITE.fullmatch(name)
    return (site[1] if site else name).removeprefix("./")


def _values(text: str) -> Iterator[str]:
    plain = _ESCAPE.sub(" ", text) if "\\" in text else text
    found = dict.fromkeys(run for run in _RUN.findall(plain) if len(run) <= LONGEST and _TELLING.search(run))
    return iter(dict.fromkeys(value for run in found if (value := run.rstrip(_AFTER).lstrip(_BEFORE))))


def _is_name(value: str) -> bool:
    found = _NAME.fullmatch(value)
    if found is None or _SHORT.fullmatch(value) or (_FIGURE.fullmatch(value) and not value.isdigit()):
        return False
    return found["path"] is None or _is_path(value)


def _is_figure(value: str) -> bool:
    return _FIGURE.fullmatch(value) is not None and not _SHORT.fullmatch(value)


def _is_path(value: str) -> bool:
    """Returns False for a comment's sign, a command of a chat, or words of prose: "//", "/help", "and/or"."""
    parts = [part for part in value.split("/") if part not in ("", ".", "..", "~")]
    is_plain = all(part.isalpha() for part in parts) and len(parts) < (2 if value[0] in "/.~" else 3)
    is_rooted = value[0] in ".~"
    return any(map(str.isalpha, value)) and not value.startswith("//") and (not is_plain or is_rooted)
