"""Made-up secrets of every known format, drawn at run time from parts, so that no scanner finds one in the source."""

from __future__ import annotations

import random
import re
import string

from context_summarize.redaction import build_redactor
from tests.support.paths import corpus

_ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "a": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "B": string.ascii_uppercase + "234567",
    "x": "0123456789abcdef",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
}
_DRAWN = re.compile(r"\{([AaUBxdwb])(\d+)\}")


def _run(alphabet: str, length: int, drawn: random.Random) -> str:
    """Drawn characters with at least one digit and, where the alphabet has letters, one letter; letters at the ends."""
    chars = [drawn.choice(_ALPHABETS[alphabet]) for _ in range(length)]
    letters = [char for char in _ALPHABETS[alphabet] if char.isalpha()]
    if letters:
        chars[0] = chars[-1] = drawn.choice(letters)
    if length > 2:
        chars[1] = drawn.choice("234567")
    return "".join(chars)


def make(form: str, drawn: random.Random) -> str:
    """A secret of this form: literal pieces between bars, and `{A36}` for 36 drawn characters of an alphabet."""
    return _DRAWN.sub(lambda m: _run(m[1], int(m[2]), drawn), form).replace("|", "")


TEMPLATES = [line.split(": ", 1) for line in corpus("secret_forms.txt")]
"""Kind and form of each."""


def key_block(drawn: random.Random, lines: int = 6, name: str = "RSA ") -> list[str]:
    """The lines of a private key; the last line of its body is short."""
    body = [_run("b", 64, drawn) for _ in range(lines)]
    edge = f"{name}PRIV" + "ATE KEY-----"
    return [f"-----BEGIN {edge}", *body, _run("b", 22, drawn) + "==", f"-----END {edge}"]


def known(text: str) -> str:
    """The text without secrets of known formats."""
    redact = build_redactor(True)
    assert redact is not None
    return redact(text)
