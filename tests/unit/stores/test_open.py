"""Which store the `cache` setting names, where a session writes with it, and what happens when it fails."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from amplifier_core.testing import MockCoordinator

from context_summarize import ConfigError, SummarizingContextManager, mount
from context_summarize.stores import SqliteStore, open_file, open_store
from context_summarize.testing import ScriptedProvider
from tests.contracts.factories import summary
from tests.support.gated import answer
from tests.support.rows import feed, tool_session

SMALL: dict[str, Any] = {"segment_tokens": 64, "keep_recent": 4, "prefetch": False}
FILE = "amplifier/context-summarize/summaries.db"


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home folder: no variable names one, and the system knows none."""

    def nobody(_: object) -> Any:
        raise KeyError("no such user")

    monkeypatch.delenv("HOME")
    monkeypatch.delenv("AMPLIFIER_HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)


def files(folder: Path) -> list[str]:
    """Every file below the folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def mounted(config: dict[str, Any]) -> tuple[SummarizingContextManager, Any]:
    coordinator = MockCoordinator()
    cleanup = await mount(coordinator, {**SMALL, **config})
    made = coordinator.get("context")
    assert isinstance(made, SummarizingContextManager)
    return made, cleanup


async def served(made: SummarizingContextManager, turns: int = 12, *, start: int = 0) -> ScriptedProvider:
    """The provider of a session's next request, in whose view summaries stand."""
    provider = ScriptedProvider(then=answer)
    await feed(made, tool_session(turns, start=start))
    view = await made.get_messages_for_request(900, provider)
    assert any("messages" in (row.get("metadata") or {}) for row in view)
    return provider


async def session(config: dict[str, Any]) -> int:
    """Provider calls of a session with one compaction."""
    made, cleanup = await mounted(config)
    provider = await served(made)
    await cleanup()
    return provider.calls


class TestOpenStore:
    @pytest.mark.parametrize("cache", ["sums.db", "sums.sqlite", "memory.sqlite3", "./memory", "{folder}/sums"])
    async def test_a_path_is_a_file(self, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """One with a folder, or with the ending of a database."""
        monkeypatch.chdir(tmp_path)
        store = open_store(cache.format(folder=tmp_path))
        await store.put(summary("a"))
        await store.close()
        again = SqliteStore(tmp_path / Path(cache).name)
        assert await again.get(["a"]) == {"a": summary("a")}
        await again.close()

    @pytest.mark.parametrize("cache", ["off", "Memory", "mem", "none", "redis", "cache"])
    async def test_any_other_word_is_an_error_at_mount(
        self, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It names what may be meant; nothing is mounted, and no file of that name is made."""
        monkeypatch.chdir(tmp_path)
        coordinator = MockCoordinator()
        with pytest.raises(ConfigError, match=rf"cache: '{cache}' is not a file; .*\./name.*\.db.*memory .*redis://"):
            await mount(coordinator, {"cache": cache})
        with pytest.raises(ConfigError, match="got False; use memory"):  # what YAML makes of `off`
            await mount(coordinator, {"cache": False})
        assert coordinator.mount_history == []
        assert files(tmp_path) == []

    @pytest.mark.parametrize("cache", ["ftp://host/sums", "REDDIS://user:word@host", "://", "redis://u:wo/rd@h:1/0"])
    async def test_an_address_that_cannot_be_used_is_an_error_at_mount(self, cache: str) -> None:
        """It names those that are known, and no password."""
        with pytest.raises(ConfigError, match=r"cache: .*redis://.*postgresql://.*%2F") as raised:
            await mount(MockCoordinator(), {"cache": cache})
        assert "wo" not in str(raised.value).partition(" is not the address")[0]
        with pytest.raises(ConfigError, match="is not a file"):
            open_file(cache)

    def test_without_a_word_it_is_the_file_in_the_amplifier_folder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`AMPLIFIER_HOME`, else `.amplifier` in the user's home; empty counts as not set."""
        monkeypatch.setenv("HOME", "/home/somebody")
        found = []
        for home in ("/srv/amplifier", "~/amp", ""):
            monkeypatch.setenv("AMPLIFIER_HOME", home)
            found.append(str(open_file(None).path).removesuffix("/context-summarize/summaries.db"))
        assert found == ["/srv/amplifier", "/home/somebody/amp", "/home/somebody/.amplifier"]
        assert open_file("~/sums.db").path == Path("/home/somebody/sums.db")


class TestMounted:
    async def test_the_file_is_made_at_first_need(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Not at mount, not by reading; for its owner alone."""
        monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "amplifier"))
        before = os.umask(0)
        try:
            made, cleanup = await mounted({})
            assert files(tmp_path) == []
            await feed(made, tool_session(2))
            await made.get_messages_for_request(10**6, ScriptedProvider(then=answer))
            assert files(tmp_path) == []
            assert (await served(made, 10, start=2)).calls > 0
            folder = (tmp_path / FILE).parent
            assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
            assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0
            await cleanup()
        finally:
            os.umask(before)
        assert files(tmp_path) == [FILE]
        assert await session({}) == 0  # the next session finds it

    @pytest.mark.parametrize("cache", [None, "~/sums.db", "~nobody-of-this-name/sums.db"])
    async def test_without_a_home_folder_the_session_goes_on(
        self,
        cache: str | None,
        homeless: None,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        warnings: Callable[[], list[str]],
    ) -> None:
        """In memory, with one warning that says what to set."""
        monkeypatch.chdir(tmp_path)
        assert await session({"cache": cache}) > 0
        [warning] = warnings()
        assert "no home folder is known; set HOME" in warning
        assert files(tmp_path) == []


def _garbage(file: Path) -> None:
    for path in {file, *file.parent.glob(f"{file.name}*")}:
        path.write_bytes(b"garbage " * 4_000)


def _gone(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.write_text("a file where the folder was")


@pytest.mark.parametrize("spoil", [_garbage, _gone])
async def test_a_store_that_is_spoilt_in_mid_session_costs_one_warning(
    tmp_path: Path, warnings: Callable[[], list[str]], spoil: Callable[[Path], None]
) -> None:
    """Every request is served, with model summaries, none asked twice."""
    file = tmp_path / "cache" / "sums.db"
    made, cleanup = await mounted({"cache": str(file)})
    providers = [await served(made)]
    spoil(file)
    providers += [await served(made, start=start) for start in (12, 24, 36)]
    asked = [str(request.messages[1].content) for provider in providers for request in provider.requests]
    assert all(provider.calls for provider in providers)
    assert len(set(asked)) == len(asked)
    assert (await made.statistics()).fallbacks == 0
    await cleanup()
    assert len(warnings()) == 1
