"""Addresses of stores: recognised, checked, and shown without their secrets."""

from __future__ import annotations

import re

import pytest

from context_summarize.errors import ConfigError
from context_summarize.stores.address import is_shared_address, public_address
from context_summarize.stores.servers import SCHEMES
from context_summarize.stores.shared import SharedStore
from tests.unit.stores.servers.support import PASSWORD


def test_an_address_is_told_from_a_path():
    """By its `://`; whether its beginning is known is another question."""
    assert [is_shared_address(f"{scheme}://h") for scheme in SCHEMES] == [True] * len(SCHEMES)
    assert is_shared_address("nonsense://h")
    assert [is_shared_address(text) for text in ("memory", "/a/b.sqlite3", "C:\\a\\b", "a:b", "")] == [False] * 5


@pytest.mark.parametrize("scheme", ["reddis", "mongodb", "mongodb+srv", "memcached"])
def test_an_unknown_scheme_is_refused_with_the_known_ones(scheme: str) -> None:
    """And without the password."""
    known = "redis://, rediss://, valkey://, valkeys://, postgresql://, postgres://;"
    with pytest.raises(ConfigError, match=rf"'{re.escape(scheme)}://h:1/0'.* begins with one of {known}") as raised:
        SharedStore(f"{scheme}://user:{PASSWORD}@h:1/0")
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize("mark", "/?#")
def test_a_password_that_is_not_encoded_is_refused(mark: str) -> None:
    """A client would take a part of it for a port, and say so in its error."""
    with pytest.raises(ConfigError, match="percent-encoded") as raised:
        SharedStore(f"redis://user:one{mark}two@h:1/0")
    assert "one" not in str(raised.value)
    assert "two" not in str(raised.value)


def test_an_address_that_is_none_is_refused():
    """When it is made, not at the first call."""
    with pytest.raises(ConfigError, match="cannot be read"):
        SharedStore("redis://[::1")


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("redis://user:word@h:1/0", "redis://h:1/0"),
        ("redis://:w@rd@h:1/0", "redis://h:1/0"),
        ("redis://h:1/0?password=word&ssl=1", "redis://h:1/0"),
        ("redis://h:1/0?password=w@rd", "redis://…"),
        ("redis://user:w?rd@h:1/0", "redis://…"),
        ("postgresql://u:w@a:1,b:2/d", "postgresql://a:1,b:2/d"),
    ],
)
def test_an_address_is_shown_without_secrets(address: str, public: str) -> None:
    """Where the end of a password is not clear, nothing is shown."""
    assert public_address(address) == public
