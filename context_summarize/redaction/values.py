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
    return _PLACEHOLDER.fullmatch(value) is None and _SAYS_SO.search(value) is None
