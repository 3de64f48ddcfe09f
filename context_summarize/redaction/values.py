"""Decides whether a value looks like a secret or like a placeholder."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

Check = Callable[[str], bool]


def is_mixed(value: str) -> bool:
    """True if the value has both letters and digits, which prose and names seldom have."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


_TURN = re.compile(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])")


def is_drawn(value: str) -> bool:
    """True if letters and digits take turns at least twice, as drawn characters do and no name does."""
    return sum(1 for _ in zip(range(2), _TURN.finditer(value), strict=False)) == 2


def is_password(value: str) -> bool:
    """True if the value is mixed and no placeholder."""
    return is_mixed(value) and is_real(value)


def is_login(value: str) -> bool:
    """True for base64 of a name and a password."""
    try:
        told = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in told[1:] and told.isascii() and told.decode("ascii").isprintable()


def is_discord(value: str) -> bool:
    """True if the first part is a number in base64, as the bot's number in a Discord token."""
    head = value.partition(".")[0]
    try:
        return base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)).isdigit()
    except (binascii.Error, ValueError):
        return False


_PLACEHOLDER = re.compile(
    r"(?i:[*x.•#_-]+|<.*|\$[a-z_{(].*|[%{\[].*"
    r"|none|null|nil|true|false|undefined|password|passwd|pass|pwd|secret|token)",
    re.S,
)
_SAYS_SO = re.compile(
    r"(?i:\$\{|\{\{|example|placeholder|change[_-]?me|(?<![a-z])your(?![a-z])|your[_-]|xxxx|dummy|redacted)"
)


def is_real(value: str) -> bool:
    """True if the value is no placeholder, and does not say that it is an example."""
    return _PLACEHOLDER.fullmatch(value) is None and _SAYS_SO.search(value) is None
