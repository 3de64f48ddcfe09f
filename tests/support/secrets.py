"""Made-up secrets of every known format, drawn at run time from parts, so that no scanner finds one in the source."""

from __future__ import annotations

import random
import re
import string
from dataclasses import dataclass

from context_summarize.redaction import build_redactor
from tests.support.paths import ROOT

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


@dataclass(frozen=True)
class Template:
    """One format: literal pieces between bars, and `{A36}` for 36 drawn characters of an alphabet."""

    kind: str
    form: str


@dataclass(frozen=True)
class Made:
    """A made-up secret."""

    kind: str
    value: str


def _run(alphabet: str, length: int, drawn: random.Random) -> str:
    """Drawn characters with at least one digit and, where the alphabet has letters, one letter; letters at the ends."""
    chars = [drawn.choice(_ALPHABETS[alphabet]) for _ in range(length)]
    letters = [char for char in _ALPHABETS[alphabet] if char.isalpha()]
    if letters:
        chars[0] = chars[-1] = drawn.choice(letters)
    if length > 2:
        chars[1] = drawn.choice("234567")
    return "".join(chars)


def make(template: Template, drawn: random.Random) -> Made:
    """A secret of this format."""
    value = _DRAWN.sub(lambda m: _run(m[1], int(m[2]), drawn), template.form).replace("|", "")
    return Made(template.kind, value)


_FORMS = ROOT / "tests" / "corpora" / "secret_forms.txt"
TEMPLATES = tuple(Template(*line.split(": ", 1)) for line in _FORMS.read_text("ascii").splitlines())


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
