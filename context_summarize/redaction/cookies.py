"""Cookies of HTTP headers, tools and logs: the values by which a server knows a session."""

from __future__ import annotations

import re
from collections.abc import Iterator

from context_summarize.redaction.spans import Span
from context_summarize.redaction.values import is_drawn, is_real

KIND = "cookie"
_HEADER = re.compile(r"(?i:cookies?|(?<=\s)-b)[\"']{0,2}\s{0,3}[:=]?\s{0,3}[\"']?(?=[\w.-]{1,60}=)")
_PAIR = re.compile(r"(?P<name>[\w.-]{1,60})=\"?(?P<value>[^\s;,\"'\\]{0,4096}+)\"?(?:;\s{0,3})?")
_SESSION = re.compile(
    r"(?<![A-Za-z0-9])(?:connect\.sid|phpsessid|jsessionid|asp\.net_sessionid|[a-z]{1,20}_session|laravel_session"
    r"|sessionid)=(?P<secret>[\w%.+/~-]{16,}+={0,2})",
    re.IGNORECASE,
)
"""Names of cookies that mean a session wherever they stand."""
SESSIONS = ("session=", "sessionid=", "sessid=", "connect.sid=")
"""A text without these, in lower case, holds no such cookie."""
_LEAST = 16
"""Characters of a value that may let somebody in."""


def cookies(text: str) -> Iterator[Span]:
    """Places of the values of cookies that look drawn, in order."""
    at = 0
    for header in _HEADER.finditer(text):
        at = max(at, header.end())
        while (pair := _PAIR.match(text, at)) is not None:
            if _is_secret(pair["value"]):
                yield Span(*pair.span("value"), KIND)
            at = pair.end()


def sessions(text: str) -> Iterator[Span]:
    """Places of the values of cookies whose names say that they hold a session."""
    for found in _SESSION.finditer(text):
        if _is_secret(found["secret"]):
            yield Span(*found.span("secret"), KIND)


def _is_secret(value: str) -> bool:
    return len(value) >= _LEAST and is_drawn(value) and is_real(value)
