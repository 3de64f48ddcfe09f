"""Tells a line that is cut off at its end, as that of a file which is still being written, from a damaged one."""

from __future__ import annotations

import json
import re

_BEGUN = re.compile(r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-|\.|[eE][+-]?)?\Z")
"""What stands between the place of the error and a cut: nothing, or the beginning of a word or a number."""
_ESCAPE = re.compile(r"u?[0-9a-fA-F]{0,4}\Z")


def is_cut(line: bytes) -> bool:
    """True if the line is the beginning of a JSON object, in UTF-8, that goes on after it."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return False
        text = line[: error.start].decode("utf-8")  # cut within a character
    if not text.lstrip().startswith("{"):
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _is_at_end(error, text.rstrip())
    except (ValueError, RecursionError):
        return False
    return False


def _is_at_end(error: json.JSONDecodeError, text: str) -> bool:
    """True if the decoder failed because the text ends."""
    if error.msg.startswith("Unterminated string"):
        return True
    rest = _ESCAPE if "escape" in error.msg else _BEGUN
    return rest.match(text, min(error.pos, len(text))) is not None
