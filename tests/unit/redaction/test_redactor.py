"""Secrets of known formats and of own patterns: out of all that is sent, kept, shown, logged or said by events."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import asdict
from typing import Any, NamedTuple

import pytest
from amplifier_core.llm_errors import AuthenticationError

from context_summarize.config import Config
from context_summarize.errors import ConfigError
from context_summarize.messages.rows import JsonRow
from context_summarize.redaction import build_redactor
from context_summarize.session.manager import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.support.effort import full
from tests.support.kept import KeptStore
from tests.support.paths import ROOT
from tests.support.recorder import Clock, Recorder
from tests.support.rows import assistant, call, result, user
from tests.support.secrets import known
from tests.support.views import untimed

HERE = ROOT / "tests"
RECORDINGS = [HERE.parent / "examples" / "airline-desk.jsonl", *sorted((HERE / "data").glob("*.jsonl"))]


class Secret(NamedTuple):
    """A made-up secret, with its text around it; the file holds it in parts, so that no scanner finds it."""

    kind: str
    value: str
    text: str


def _secret(line: str) -> Secret:
    given = json.loads(line)
    value = "".join(given["parts"])
    return Secret(given["kind"], value, given["context"].format(value))


SECRETS = [_secret(line) for line in (HERE / "corpora" / "secrets.jsonl").read_text("ascii").splitlines()]


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


@pytest.mark.parametrize(
    "form",
    [
        "os.environ['{w}'] = '{}'", "config['{w}']='{}'", 'config["{w}"]="{}"', "config[:{w}] = '{}'", "**{w}**: `{}`",
        "__{w}__: {}", "**`{w}`** = {}", "| {w} | {} |", "|{w}|{}|", "| **{w}** | `{}` |", "| a | {w} (x) | {} | b |",
        "\u2502 {w} \u2502 {} \u2502", "{w} (prod): {}", "{w} (prod, eu-1) = {}", "{w} -> {}", "{w} \u2192 {}",
        "{w}\uff1a{}", "{w}: str = '{}'", 'let {w}: &str = "{}";', 'char {w}[] = "{}";', 'char {w}[32] = "{}";',
    ],
)  # fmt: skip
def test_an_assigned_secret_is_found_whatever_stands_before_the_sign_of_assignment(form):
    words = [(word, "hunter2" * 2) for word in ("password", "DB_PASSWORD")]
    words += [(word, "Zx81kQp0vT3m" + "N7aLr92w") for word in ("API_TOKEN", "api_key", "openai_key", "Secret key")]
    for word, value in words:
        text = form.format(value, w=word)
        for given in (text, json.dumps(text, ensure_ascii=False)):
            clean = known(given)
            assert value not in clean, given
            assert "[redacted: " in clean
            assert known(clean) == clean


def test_at_most_one_row_in_a_hundred_of_a_recording_is_touched():
    """Real conversations without a secret: every touched row is a false hit."""
    rows = [row for path in RECORDINGS for row in path.read_text("utf-8").splitlines()[:: full(1, 3)]]
    touched = [row for row in rows if known(row) != row]

    assert len(rows) > 800
    assert len(touched) <= len(rows) / 100


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
        build_redactor([pattern])
    with pytest.raises(ConfigError, match=told):
        SummarizingContextManager(config=Config.from_mapping({"redact": ["fine", pattern]}))


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


async def played(
    caplog: pytest.LogCaptureFixture,
    provider: ScriptedProvider,
    rows: list[JsonRow] | None = None,
    focus: str | None = None,
    **settings: Any,
) -> Seen:
    """A session of these rows, compacted twice, with summaries of this provider."""
    caplog.set_level(logging.DEBUG, logger="context_summarize")
    recorder, store = Recorder({"main": provider}), KeptStore()
    config = Config.from_mapping({"keep_recent": 1, "segment_tokens": 256, "prefetch": False, **settings})
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


async def test_no_secret_is_sent_kept_shown_said_or_logged(caplog: pytest.LogCaptureFixture):
    """By a model that answers with harmless words: notes and fallbacks come from redacted rows too."""
    seen = await played(caplog, ScriptedProvider(), focus=f"the prices, and {SECRETS[0].text}")

    assert leaks(seen.everywhere()) == []
    assert "What follows should keep above all: the prices, and " in seen.sent
    assert all(f"[redacted: {secret.kind}]" in seen.sent for secret in SECRETS)
    assert "[redacted: " in seen.shown
    assert "[redacted: " in seen.stored
    assert seen.history == rows_with(SECRETS)


async def test_a_fallback_summary_holds_no_secret(caplog: pytest.LogCaptureFixture):
    seen = await played(caplog, ScriptedProvider(then=AuthenticationError("no key")))

    assert "Fallback summary by code" in seen.shown
    assert leaks(seen.everywhere()) == []


async def test_a_summary_that_holds_secrets_is_redacted_before_it_is_kept(caplog: pytest.LogCaptureFixture):
    """A model may know a secret from elsewhere, or put together what was split."""
    threes = ["\n".join(secret.text for secret in SECRETS[at : at + 3]) for at in range(0, len(SECRETS), 3)]
    provider = ScriptedProvider([f"Goal: the user has settings read.\nArtifacts: {three}" for three in threes])
    seen = await played(caplog, provider, summary_share=1.0)

    assert leaks(seen.everywhere()) == []
    assert seen.shown.count("Goal: the user has settings read.") == len(threes)


async def test_own_patterns_hold_everywhere(caplog: pytest.LogCaptureFixture):
    rows = [user("start"), *(row for at in range(60) for row in (user(f"CASE-{at:04d} is open " * 9), assistant("ok")))]
    provider = ScriptedProvider(then="Goal: CASE-9999 and CASE-8888 were opened.")
    seen = await played(caplog, provider, rows, "CASE-7777", redact=[r"CASE-\d{4}"])

    assert re.search(r"CASE-\d{4}", seen.everywhere()) is None
    assert "[redacted: own pattern]" in seen.shown
    assert seen.history == rows


async def test_without_redaction_secrets_are_sent(caplog: pytest.LogCaptureFixture):
    """What the tests above would see if nothing were done."""
    seen = await played(caplog, ScriptedProvider(), redact=False)

    assert len(set(leaks(seen.sent))) > len(SECRETS) * 3 / 4
    assert leaks(seen.shown) != []
