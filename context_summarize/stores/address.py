"""Addresses of stores: recognised, checked, and shown without their secrets."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from context_summarize.errors import ConfigError


def is_shared_address(text: str) -> bool:
    """True for an address (`scheme://…`), False for a path or a word."""
    return "://" in text


def public_address(address: str) -> str:
    """The address as a log may show it: without user, password and options."""
    scheme, _, rest = address.partition("://")
    place, mark, options = rest.partition("?")
    if mark and "@" in options:
        return f"{scheme}://…"  # the question mark may be part of a password
    return f"{scheme}://{place.rpartition('@')[2]}"


def secrets_in(address: str) -> list[str]:
    """The secret parts of an address, as written and decoded, the longest first."""
    rest = address.partition("://")[2]
    user, colon, password = rest.rpartition("@")[0].partition(":")
    options = re.findall(r"[?&][^=&]*(?:pass|secret|token|key|auth)[^=&]*=([^&]+)", rest, re.IGNORECASE)
    secrets = {password if colon else user, *options} - {""}
    return sorted(secrets | {unquote(secret) for secret in secrets}, key=len, reverse=True)


def check_address(address: str, name: str) -> None:
    """Refuse an address that a client would misread: its error would quote a part of the password as a port.

    Raises:
        ConfigError: a character must be percent-encoded, or the address cannot be read.
    """
    if re.search("[/?#]", address.partition("://")[2].rpartition("@")[0]):
        raise ConfigError(
            f"cache: the address {name!r} has a character in user, password or options that must be percent-encoded: "
            "write %2F for /, %3F for ?, %23 for #, %40 for @"
        )
    try:
        urlsplit(address)
    except ValueError as error:
        raise ConfigError(f"cache: the address {name!r} cannot be read: {error}") from None
