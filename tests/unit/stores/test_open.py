"""Which store the `cache` setting names, where a session writes with it, and what happens when it fails."""

from __future__ import annotations

import pwd
import sys
from pathlib import Path
from typing import Any

import pytest
from amplifier_core.testing import MockCoordinator

from context_summarize import ConfigError, mount
from context_summarize.stores import open_file, open_store
from context_summarize.testing import ScriptedProvider
from tests.support.gated import answer
from tests.support.rows import feed, tool_session
from tests.support.views import nodes

SMALL: dict[str, Any] = {"segment_tokens": 64, "keep_recent": 4, "prefetch": False}
NO_FILE = r" is not a file; .*\./name.*\.db.*memory .*redis://"
NO_ADDRESS = r"cache: .*redis://.*postgresql://.*%2F"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a store whose name has no folder would be made."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("cache", "says"),
    [
        *((word, f"cache: '{word}'{NO_FILE}") for word in ("off", "Memory", "mem", "none", "redis", "cache")),
        (False, "got False. `memory`, a file"),  # what YAML makes of `off`
        *((address, NO_ADDRESS) for address in ("ftp://host/sums", "REDDIS://zoe:word@host", "://")),
        ("redis://u:wo/rd@h:1/0", NO_ADDRESS),
        *((address, "is neither a file nor an address; .* redis://") for address in ("redis:/h", "postgres:h/x.db")),
    ],
)
async def test_any_other_word_and_a_wrong_address_are_errors_at_mount(cache, says, folder):
    """They name what may be meant, and no password; nothing is mounted, and no file of that name is made."""
    coordinator = MockCoordinator()
    with pytest.raises(ConfigError, match=says) as raised:
        await mount(coordinator, {"cache": cache})
    assert "zoe" not in str(raised.value).partition(" is not ")[0]
    assert "wo" not in str(raised.value).partition(" is not ")[0]
    assert coordinator.mount_history == []
    assert files(folder) == []


def test_a_server_without_its_client_is_refused_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "key_value.aio.stores.redis", None)
    says = r"needs the client of the extra \"shared\"; in a clone, install it by `pip install '.\[shared\]'`"
    with pytest.raises(ConfigError, match=says):
        open_store("redis://h:1/0")


def test_without_a_word_it_is_the_file_in_the_amplifier_folder(monkeypatch):
    """`AMPLIFIER_HOME`, else `.amplifier` in the user's home; empty counts as not set."""
    monkeypatch.setenv("HOME", "/home/somebody")
    found = []
    for home in ("/srv/amplifier", "~/amp", ""):
        monkeypatch.setenv("AMPLIFIER_HOME", home)
        found.append(str(open_file(None).path).removesuffix("/context-summarize/summaries.db"))
    assert found == ["/srv/amplifier", "/home/somebody/amp", "/home/somebody/.amplifier"]
    assert open_file("~/sums.db").path == Path("/home/somebody/sums.db")


@pytest.mark.parametrize("cache", [None, "~/sums.db", "~nobody-of-this-name/sums.db"])
async def test_without_a_home_folder_the_session_goes_on_in_memory(cache, folder, monkeypatch, warnings):
    """No variable names one, and the system knows none; one warning says what to set."""

    def nobody(_: object) -> Any:
        raise KeyError("no such user")

    monkeypatch.delenv("HOME")
    monkeypatch.delenv("AMPLIFIER_HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    coordinator = MockCoordinator()
    cleanup = await mount(coordinator, {**SMALL, "cache": cache})
    made: Any = coordinator.get("context")
    await feed(made, tool_session(12))
    assert nodes(await made.get_messages_for_request(900, ScriptedProvider(then=answer)))
    await cleanup()
    [warning] = warnings()
    assert "no home folder is known; set HOME" in warning
    assert files(folder) == []
