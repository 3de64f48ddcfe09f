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
from context_summarize.messages.pairs import broken_pairs
from context_summarize.stores.layered import LayeredStore
from context_summarize.stores.memory import MemoryStore
from context_summarize.stores.open import cache_path, open_store
from context_summarize.stores.sqlite import SqliteStore
from context_summarize.testing import ScriptedProvider, tool_session
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure
from tests.contracts.factories import summary
from tests.support.gated import answer

SMALL: dict[str, Any] = {"segment_tokens": 64, "summary_tokens": 32, "keep_recent": 4, "prefetch_threshold": None}
COUNT = TokenCounter().count
FOLDER, FILE = "context-summarize", "summaries.sqlite3"


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home folder: no variable names one, and the system knows none."""

    def nobody(_: object) -> Any:
        raise KeyError("no such user")

    monkeypatch.delenv("HOME")
    monkeypatch.delenv("AMPLIFIER_HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)


def files(folder) -> list[str]:
    """Every file below the folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def mounted(config: dict[str, Any]) -> tuple[SummarizingContextManager, Any]:
    coordinator = MockCoordinator()
    cleanup = await mount(coordinator, {**SMALL, **config})
    made = coordinator.get("context")
    assert isinstance(made, SummarizingContextManager)
    return made, cleanup


async def served(made: SummarizingContextManager, turns: int = 12, *, start: int = 0) -> ScriptedProvider:
    """The provider of a session's next request, whose view is in order and within its budget."""
    provider = ScriptedProvider(then=answer)
    for row in tool_session(turns, start=start):
        await made.add_message(row)
    view = await made.get_messages_for_request(900, provider)
    assert broken_pairs(view) == []
    assert sum(measure(row, COUNT) for row in view) <= 900
    assert any("messages" in (row.get("metadata") or {}) for row in view)
    return provider


async def session(config: dict[str, Any]) -> int:
    """Provider calls of a session with one compaction."""
    made, cleanup = await mounted(config)
    provider = await served(made)
    await cleanup()
    return provider.calls


class TestOpenStore:
    def test_memory_is_memory(self) -> None:
        """Only the exact word."""
        assert type(open_store("memory")) is MemoryStore

    @pytest.mark.parametrize("cache", ["sums.db", "{folder}/sums", "redis", "memory.db", "./memory"])
    async def test_any_other_word_is_a_file(self, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Behind memory."""
        monkeypatch.chdir(tmp_path)
        store = open_store(cache.format(folder=tmp_path))
        assert isinstance(store, LayeredStore)
        await store.put(summary("a"))
        await store.close()
        again = SqliteStore(tmp_path / Path(cache).name)
        assert await again.get(["a"]) == {"a": summary("a")}
        await again.close()

    def test_without_a_word_it_is_the_file_in_the_amplifier_folder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`AMPLIFIER_HOME`, else `.amplifier` in the user's home; empty counts as not set."""
        monkeypatch.setenv("HOME", "/home/somebody")
        monkeypatch.setenv("AMPLIFIER_HOME", "/srv/amplifier")
        assert cache_path(None) == Path("/srv/amplifier") / FOLDER / FILE
        monkeypatch.setenv("AMPLIFIER_HOME", "~/amp")
        assert cache_path(None) == Path("/home/somebody/amp") / FOLDER / FILE
        monkeypatch.setenv("AMPLIFIER_HOME", "")
        assert cache_path(None) == Path("/home/somebody/.amplifier") / FOLDER / FILE

    def test_a_tilde_is_the_home_folder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As users write it in their settings."""
        monkeypatch.setenv("HOME", "/home/somebody")
        assert cache_path("~/sums.db") == Path("/home/somebody/sums.db")

    async def test_an_address_is_a_shared_store(self, warnings: Callable[[], list[str]]) -> None:
        """Nobody is asked for it before its first use; what is said about it holds no password."""
        store = open_store("redis://user:secret@127.0.0.1:1/0")
        assert warnings() == []
        assert await store.get(["a"]) == {}
        await store.close()
        [warning] = warnings()
        assert "redis://127.0.0.1:1/0" in warning
        assert "secret" not in warning

    @pytest.mark.parametrize("cache", [None, "~/sums.db", "~nobody-of-this-name/sums.db"])
    def test_without_a_home_folder_it_is_memory(
        self, cache: str | None, homeless: None, warnings: Callable[[], list[str]]
    ) -> None:
        """One warning, with what to do."""
        assert type(open_store(cache)) is MemoryStore
        [warning] = warnings()
        assert "in memory" in warning
        assert "name" in warning

    def test_without_a_home_folder_a_file_may_still_be_named(
        self, homeless: None, tmp_path: Path, warnings: Callable[[], list[str]]
    ) -> None:
        """In full."""
        assert isinstance(open_store(str(tmp_path / "sums.db")), LayeredStore)
        assert warnings() == []


class TestMounted:
    @pytest.mark.parametrize("cache", ["ftp://host/sums", "http://host/sums", "REDDIS://host", "://"])
    async def test_an_unknown_address_is_an_error_at_mount(self, cache: str) -> None:
        """It names those that are known; nothing is mounted."""
        coordinator = MockCoordinator()
        with pytest.raises(ConfigError, match=r"(?s)cache.*redis://.*postgresql://"):
            await mount(coordinator, {"cache": cache})
        assert coordinator.mount_history == []

    async def test_the_file_is_made_at_first_need(self, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
        """Not at mount, not by reading; for its owner alone."""
        monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "amplifier"))
        before = os.umask(0)
        try:
            made, cleanup = await mounted({})
            assert files(tmp_path) == []
            for row in tool_session(2):
                await made.add_message(row)
            await made.get_messages_for_request(10**6, ScriptedProvider(then=answer))
            assert files(tmp_path) == []
            assert (await served(made)).calls > 0
            file = tmp_path / "amplifier" / FOLDER / FILE
            assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {0o600}
            assert stat.S_IMODE(file.parent.stat().st_mode) & 0o077 == 0
            await cleanup()
        finally:
            os.umask(before)
        assert files(tmp_path) == [f"amplifier/{FOLDER}/{FILE}"]

    async def test_the_next_session_pays_nothing(self) -> None:
        """By default, and with a file of one's own."""
        assert await session({}) > 0
        assert await session({}) == 0

    async def test_memory_writes_nothing_anywhere(self, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
        """And ends with its session."""
        for name in ("HOME", "AMPLIFIER_HOME", "TMPDIR"):
            monkeypatch.setenv(name, str(tmp_path))
        monkeypatch.chdir(tmp_path)
        assert await session({"cache": "memory"}) > 0
        assert await session({"cache": "memory"}) > 0
        assert list(tmp_path.iterdir()) == []

    async def test_without_a_home_folder_the_session_goes_on(
        self, homeless: None, warnings: Callable[[], list[str]]
    ) -> None:
        """One warning for it all."""
        assert await session({}) > 0
        assert len(warnings()) == 1

    async def test_two_sessions_share_a_file(self, tmp_path: Path, warnings: Callable[[], list[str]]) -> None:
        """At once: what one has made the other finds, and both write."""
        config = {"cache": str(tmp_path / "sums.db")}
        first, end_first = await mounted(config)
        second, end_second = await mounted(config)
        assert (await served(first)).calls > 0
        assert (await served(second)).calls == 0
        assert (await served(second, start=12)).calls > 0
        assert (await served(first, start=12)).calls == 0
        await end_first()
        assert (await served(second, start=24)).calls > 0
        await end_second()
        assert warnings() == []


def _folder(file: Path) -> None:
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()
    file.mkdir()


def _garbage(file: Path) -> None:
    for path in {file, *file.parent.glob(f"{file.name}*")}:
        path.write_bytes(b"garbage " * 4_000)


def _gone(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.write_text("a file where the folder was")


SPOILT = {
    "a folder": (_folder, "before", {1}),
    "garbage": (_garbage, "before", {1}),
    "no folder for it": (_gone, "before", {1}),
    "garbage in mid-session": (_garbage, "between", {1}),
    # An open file that is only taken away may be used to the session's end without anybody noticing.
    "taken away in mid-session": (_folder, "between", {0, 1}),
    "taken away with its folder": (_gone, "between", {0, 1}),
}


@pytest.mark.parametrize(("spoil", "when", "warned"), SPOILT.values(), ids=SPOILT)
async def test_a_store_that_is_spoilt_costs_one_warning(
    tmp_path: Path, warnings: Callable[[], list[str]], spoil: Callable[[Path], None], when: str, warned: set[int]
) -> None:
    """Before the session or in the middle of it: every request is served, with model summaries, none asked twice."""
    file = tmp_path / "cache" / "sums.db"
    file.parent.mkdir()
    if when == "before":
        spoil(file)
    made, cleanup = await mounted({"cache": str(file)})
    providers = [await served(made)]
    if when == "between":
        spoil(file)
    providers += [await served(made, start=start) for start in (12, 24, 36)]
    asked = [str(request.messages[1].content) for provider in providers for request in provider.requests]
    assert all(provider.calls for provider in providers)
    assert len(set(asked)) == len(asked)
    assert (await made.statistics()).digests == 0
    await cleanup()
    assert len(warnings()) in warned
