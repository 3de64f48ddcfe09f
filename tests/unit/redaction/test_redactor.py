"""Secrets of known formats and of own patterns: out of all that is sent, kept, shown, logged or said by events."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from amplifier_core.llm_errors import AuthenticationError

from context_summarize import SummarizingContextManager
from context_summarize.errors import ConfigError
from context_summarize.redaction import build_redactor
from context_summarize.testing import JsonRow, ScriptedProvider
from tests.support.effort import full
from tests.support.kept import KeptStore
from tests.support.paths import corpus
from tests.support.recorder import Clock, Recorder
from tests.support.rows import assistant, call, result, tool_session, user
from tests.support.secrets import known
from tests.support.views import untimed


class Secret(NamedTuple):
    """A made-up secret, with its text around it; the file holds it in parts, so that no scanner finds it."""

    kind: str
    value: str
    text: str


def _secret(line: str) -> Secret:
    given = json.loads(line)
    value = "".join(given["parts"])
    return Secret(given["kind"], value, given["context"].format(value))


SECRETS = [_secret(line) for line in corpus("secrets.jsonl")]


def leaks(text: str) -> list[str]:
    """The secrets of the corpus that a text holds, whole or a long line of them, also where it is JSON."""
    found = []
    for secret in SECRETS:
        lines = [line for line in re.split(r"\n|\\n", secret.value) if len(line) >= 16 and " " not in line]
        needles = [secret.value, json.dumps(secret.value, ensure_ascii=False)[1:-1], *lines]
        found += [secret.text for needle in needles if needle in text]
    return found


def test_a_secret_becomes_a_mark_that_names_its_kind_and_what_stands_around_it_stays():
    """In JSON too, as calls are rendered: the mark breaks no quote and no escape."""
    for secret in SECRETS:
        text = f"before ABC123\n{secret.text}\nafter mia_li_3668"
        clean, within = known(text), known(json.dumps({"command": text, "n": [1]}, ensure_ascii=False))

        for found in (clean, within):
            assert f"[redacted: {secret.kind}]" in found, secret
            assert leaks(found) == []
            assert known(found) == found
        assert json.loads(within)["n"] == [1]
        assert clean.startswith("before ABC123\n"), secret
        assert clean.endswith("\nafter mia_li_3668"), secret


class Seen(NamedTuple):
    """What has come out of a session that was compacted, each as text; `told` is events and log lines."""

    sent: str
    stored: str
    shown: str
    told: str
    history: list[JsonRow]

    def everywhere(self) -> str:
        return "\n".join(self[:4])


def rows_with(secrets: list[Secret]) -> list[JsonRow]:
    """Each secret as user words, in a call's arguments, in its result, and in the answer."""
    rows: list[JsonRow] = [user("Please look at the settings of this machine.")]
    for at, secret in enumerate(secrets):
        rows += [
            user(f"Here it is, always keep it safe: {secret.text}"),
            call(f"call_{at}", "bash", text=secret.text, command=f"echo 1\n{secret.text}\nls"),
            result(f"call_{at}", f"exit code 1\nError: denied: {secret.text}"),
            assistant(f"Done with number {at}:\n{secret.text}"),
        ]
    return [*rows, user("What next?"), assistant("Nothing."), user("Fine.")]


def _dumped(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)


@pytest.fixture
def played(caplog: pytest.LogCaptureFixture) -> Any:
    """Plays a session of these rows, compacted twice, with summaries of this provider."""

    async def play(provider: ScriptedProvider, rows: Any = (), focus: str | None = None, **settings: Any) -> Seen:
        caplog.set_level(logging.DEBUG, logger="context_summarize")
        recorder, store = Recorder({"main": provider}), KeptStore()
        config = {"keep_recent": 1, "segment_tokens": 256, "prefetch": False, **settings}
        manager = SummarizingContextManager(recorder, config=config, store=store, sleep=Clock().sleep)
        await manager.set_messages(rows or rows_with(SECRETS))
        await manager.get_messages_for_request(200_000, provider)
        await manager.compact(focus)
        await manager.compact(focus)
        view = await manager.get_messages_for_request(200_000, provider)
        history = untimed(await manager.get_messages())
        await manager.close()
        ours = [row for row in view if (row.get("metadata") or {}).get("source") == "context-summarize"]
        return Seen(
            sent="\n".join(str(message.content) for request in provider.requests for message in request.messages),
            stored=_dumped([*map(asdict, store.summaries), store.records]),
            shown="\n".join(row["content"] for row in ours),
            told=f"{_dumped(recorder.events)}\n{caplog.text}",
            history=history,
        )

    return play


async def test_no_secret_is_sent_kept_shown_said_or_logged(played):
    """By a model that answers with harmless words: notes and fallbacks come from redacted rows too."""
    rows = [*rows_with(SECRETS), user("A little more about it. " * 20), assistant("Done.")]
    seen = await played(ScriptedProvider(), rows, focus=f"the prices, and {SECRETS[0].text}")

    assert leaks(seen.everywhere()) == []
    assert "What follows should keep above all: the prices, and " in seen.sent
    assert all(f"[redacted: {secret.kind}]" in seen.sent for secret in SECRETS)
    assert "[redacted: " in seen.shown
    assert "[redacted: " in seen.stored
    assert seen.history == rows


async def test_a_summary_that_holds_secrets_is_redacted_before_it_is_kept_and_one_by_code_holds_none(played):
    """A model may know a secret from elsewhere, or put together what was split."""
    threes = ["\n".join(secret.text for secret in SECRETS[at : at + 3]) for at in range(0, len(SECRETS), 3)]
    provider = ScriptedProvider([f"Goal: the user has settings read.\nArtifacts: {three}" for three in threes])
    seen = await played(provider, summary_share=1.0)
    code = await played(ScriptedProvider(then=AuthenticationError("no key")))

    assert leaks(seen.everywhere()) == leaks(code.everywhere()) == []
    assert seen.shown.count("Goal: the user has settings read.") == len(threes)
    assert "Fallback summary by code" in code.shown


async def test_without_redaction_secrets_are_sent(played):
    """What the tests above would see if nothing were done."""
    seen = await played(ScriptedProvider(), redact=False)

    assert len(set(leaks(seen.sent))) > len(SECRETS) * 3 / 4
    assert leaks(seen.shown) != []


async def test_own_patterns_hold_everywhere(played):
    rows = [user("start"), *(row for at in range(60) for row in (user(f"CASE-{at:04d} is open " * 9), assistant("ok")))]
    provider = ScriptedProvider(then="Goal: CASE-9999 and CASE-8888 were opened.")
    seen = await played(provider, rows, "CASE-7777", redact=[r"CASE-\d{4}"])

    assert re.search(r"CASE-\d{4}", seen.everywhere()) is None
    assert "[redacted: own pattern]" in seen.shown
    assert seen.history == rows


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("(", r"redact: '\(' is not a regular expression \(missing \), .*\); correct it, or escape"),
        ("a{99999999999999}", "is not a regular expression"),
        (r"\d*", r"redact: '\\\\d\*' matches the empty text; change it to match at least one character"),
        ("", "matches the empty text"),
    ],
)
def test_a_wrong_pattern_is_refused_when_the_manager_is_made(pattern, told):
    with pytest.raises(ConfigError, match=told):
        SummarizingContextManager(redact=["fine", pattern])


def test_once_a_pattern_is_too_slow_texts_are_withheld_unread(warnings, no_hang):
    """Those that it would search quickly too, and all that another session does not withhold. One warning says so."""
    redact, other = (build_redactor([r"(x+x+)+y", "first"]) for _ in range(2))
    assert redact is not None
    assert other is not None
    withheld = "[withheld: a redact pattern took too long]"

    assert redact("xxy and more") == "[redacted: own pattern] and more"
    assert redact("x" * 5_000) == redact("xxy and more") == redact(withheld) == withheld
    assert redact("") == ""
    assert other("a word " * 20_000 + "first").endswith("word [redacted: own pattern]"), "a long text takes longer"
    [line] = warnings()
    assert "redact: '(x+x+)+y' is too slow for a text of 5000 characters" in line
    assert "change the pattern" in line


async def test_what_is_withheld_is_not_sent_and_not_stored(played, warnings, no_hang):
    """Summaries are made by code; no key comes from a text that was withheld, so the store gets none."""
    many = full(500, 40)
    rows = [row for at in range(many) for row in (user(f"{at} is {'x' * 3_000} " * 2), assistant("ok, it is"))]
    provider = ScriptedProvider()
    seen = await played(provider, rows, redact=[r"(x+x+)+y"])

    assert provider.requests == []
    assert json.loads(seen.stored)[:-1] == []
    assert "Fallback summary by code" in seen.shown
    assert sum(warning.startswith("redact:") for warning in warnings()) == 1


KEY = "gh" + "p_" + "FakeNotReal0" * 3


class Broken(ScriptedProvider):
    """Whatever it is asked, it fails and quotes its key; hooks and a system prompt as well."""

    async def complete(self, request: Any, **kwargs: Any) -> Any:
        raise ValueError(f"401 for \x1b[31m\0 https://x.example/?key={KEY}")

    async def get_model_info(self) -> Any:
        raise RuntimeError(f"\x1b[31m{KEY}\x1b[0m") from ValueError(KEY)

    async def emit(self, name: str, data: object) -> None:
        raise RuntimeError(f"Authorization: Bearer {KEY}")

    async def factory(self) -> str:
        raise KeyError(KEY)


async def test_no_key_and_no_control_character_of_a_foreign_error_reaches_a_log(caplog):
    """Of a provider, its window, a hook and a system prompt."""
    caplog.set_level(logging.DEBUG, "context_summarize")
    broken, clock = Broken(), Clock()
    host: Any = SimpleNamespace(hooks=broken, get=lambda _: None)
    made = SummarizingContextManager(host, keep_recent=2, segment_tokens=64, clock=clock, sleep=clock.sleep)
    await made.set_system_prompt_factory(broken.factory)
    await made.set_messages(tool_session(12))
    await made.get_messages_for_request(900, broken)
    await made.get_messages_for_request(None, broken)
    await made.close()

    for said in ("KeyError", "Authorization", "https://x.example", "RuntimeError", "test_redactor.py"):
        assert said in caplog.text, said
    assert KEY not in caplog.text
    assert "401 for \\x1b[31m\\x00 https://" in caplog.text
    assert all(char.isprintable() or char == "\n" for record in caplog.records for char in record.getMessage())
    assert all(record.exc_info is None for record in caplog.records)
