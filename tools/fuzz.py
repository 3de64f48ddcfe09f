"""Fuzzes what reads foreign text: `make fuzz` for a minute each, `python tools/fuzz.py rows --seconds 600` for one."""

# ruff: noqa: T201 - what it prints is its output

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["context_summarize"]):
    from context_summarize import SummarizingContextManager
    from context_summarize.errors import MessageError
    from context_summarize.facts.directive_sentences import find_directives
    from context_summarize.facts.directives import MAX_DIRECTIVE
    from context_summarize.messages.pairs import broken_pairs
    from context_summarize.redaction.redactor import build_redactor
    from context_summarize.transcript.escaping import cut_middle, escape_marks
    from context_summarize.transcript.fences import enclosed, enclosed_in, fence_of, numbered, split_numbered
    from context_summarize.transcript.rows import RenderedRow, parse_rendered, render_rows

Data = Any
"""An `atheris.FuzzedDataProvider`."""

SECONDS = 60
SLOW = 2.0
"""Seconds of processor time that no input of a few kilobytes may take."""
WORDS = (
    "never push", "Always send", "from now on", "#1 user", "#2 tool", "=== transcript", "## Summary 1 of 2",
    "\n", "\r\n",
    "\u2028", "\u0300", "\u200b", "\x1b[31m", "%22", "\\n", "&quot;", "```", "~~~", '"""', "<document>", "</document>",
    "<system-reminder>", "> ", "- ", "'", '"', "`", "password=", "token: ", "sk-", "glpat-", "ghp_", "eyJ", "AKIA",
    "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", "A" * 64, "Bearer ", "Cookie: a=", "\ud800", "\x00",
    "call bash({", "[redacted: JWT]", "https://a:b@c",
)  # fmt: skip
KEYS = (
    "role", "content", "type", "text", "tool_calls", "tool_call_id", "id", "name", "tool", "arguments", "input",
    "function",
    "output", "metadata", "source", "is_error", "tool_use_id", "thinking", "data", "image", "url",
)  # fmt: skip
VALUES = (
    "user", "assistant", "system", "developer", "tool", "hook", "text", "tool_call", "tool_use", "tool_result",
    "thinking", "image", "a", "b", "", None, True, 0, -1, 1e999, 2**70, "hook",
)  # fmt: skip


def text_of(data: Data) -> str:
    """Text of fuzzed characters and of words that mean something to some reader."""
    parts = []
    for _ in range(data.ConsumeIntInRange(0, 24)):
        word = data.ConsumeIntInRange(0, len(WORDS) * 2)
        parts.append(WORDS[word] if word < len(WORDS) else data.ConsumeUnicode(data.ConsumeIntInRange(0, 40)))
    return "".join(parts)


def value_of(data: Data, depth: int = 0) -> Any:
    """Any JSON value, most often one that rows are made of."""
    kind = data.ConsumeIntInRange(0, 9)
    if kind <= 3 or depth > 4:
        return VALUES[data.ConsumeIntInRange(0, len(VALUES) - 1)]
    if kind == 4:
        return text_of(data)
    if kind == 5:
        return data.ConsumeFloat()
    if kind <= 7:
        return [value_of(data, depth + 1) for _ in range(data.ConsumeIntInRange(0, 4))]
    return {KEYS[data.ConsumeIntInRange(0, len(KEYS) - 1)]: value_of(data, depth + 1) for _ in range(4)}


def row_of(data: Data) -> Any:
    """A row: now and then any value, else one with a role, whose fields hold anything."""
    if data.ConsumeIntInRange(0, 15) == 0:
        return value_of(data)
    role = ("user", "assistant", "tool", "system")[data.ConsumeIntInRange(0, 3)]
    row: dict[str, Any] = {"role": role, "content": text_of(data)}
    ids = ("a", "b", "c")
    if role == "assistant" and data.ConsumeBool():
        calls = range(data.ConsumeIntInRange(1, 3))
        row["tool_calls"] = [{"id": ids[data.ConsumeIntInRange(0, 2)], "tool": "t", "arguments": {}} for _ in calls]
    if role == "tool":
        row["tool_call_id"] = ids[data.ConsumeIntInRange(0, 2)]
    if data.ConsumeIntInRange(0, 3) == 0:
        row[KEYS[data.ConsumeIntInRange(0, len(KEYS) - 1)]] = value_of(data)
    return row


def rows(data: Data) -> None:
    """Rows into a manager: each is kept as it is or refused by `MessageError`; every view has whole pairs."""
    asyncio.run(_rows(data))


async def _rows(data: Data) -> None:
    manager = SummarizingContextManager(segment_tokens=64, summary_tokens=32, fan_in=2, prefetch_threshold=None)
    kept: list[Any] = []
    for _ in range(data.ConsumeIntInRange(1, 12)):
        row = row_of(data)
        try:
            if data.ConsumeIntInRange(0, 7) == 0:
                await manager.set_messages([*kept, row])
            else:
                await manager.add_message(row)
        except MessageError:
            assert len(manager.messages) == len(kept), "a refused row has changed the history"
            continue
        kept = manager.messages
        assert json.dumps(kept[-1], default=repr, skipkeys=True), row
    view = await manager.get_messages_for_request(data.ConsumeIntInRange(64, 2_000))
    assert broken_pairs(view) == [], view
    assert len(await manager.get_messages()) == len(kept)
    assert await manager.get_messages_for_request(400) is not None
    await manager.close()


def transcript(data: Data) -> None:
    """Rows rendered and read back; no text of a row begins another row, or ends its fence."""
    told = []
    for number in range(1, data.ConsumeIntInRange(1, 5) + 1):
        text = text_of(data)
        if data.ConsumeBool():
            text = cut_middle(text, data.ConsumeIntInRange(0, 200))
        told.append(RenderedRow(number, "user", None, escape_marks(text)))
    read = parse_rendered(render_rows(told))
    assert [(row.number, row.role) for row in read] == [(row.number, row.role) for row in told], (told, read)
    joined = "".join(row.text for row in told)
    message = enclosed(joined, fence_of(joined))
    assert enclosed_in(f"before\n{message}\nafter") is not None, message
    parts = [row.text for row in told if row.text.strip()]
    assert not parts or len(split_numbered(numbered(parts)) or ()) == len(parts), parts


def redaction(data: Data) -> None:
    """Redacting twice is redacting once, and a token on a line of its own is found whatever stands around it."""
    redact = build_redactor(True)
    assert redact is not None
    token = "gh" + "p_" + "F4keN0tR3al9" * 3
    around = (text_of(data), text_of(data))
    text = f"{around[0]}\n {token} \n{around[1]}"
    clean = redact(text)
    assert token not in clean, text
    assert redact(clean) == clean, (text, clean, redact(clean))


def directives(data: Data) -> None:
    """Directives are single bounded lines, and nothing that is quoted line by line, or lies in a document, is one."""
    text, words = text_of(data), ("never", "always", "from now on")

    def found(said: str) -> tuple[str, ...]:
        return find_directives([[RenderedRow(1, "user", None, said)]], words)

    for one in found(text):
        assert len(one) <= MAX_DIRECTIVE, (text, one)
        assert "\n" not in one, (text, one)
    quoted = "\n".join(f"> {line}" for line in text.splitlines())
    assert found(quoted) == (), quoted


TARGETS: dict[str, Callable[[Data], None]] = {
    "rows": rows,
    "transcript": transcript,
    "redaction": redaction,
    "directives": directives,
}


def _fuzzed(target: Callable[[Data], None]) -> Callable[[bytes], None]:
    def once(given: bytes) -> None:
        started = time.process_time()
        target(atheris.FuzzedDataProvider(given))
        assert time.process_time() - started < SLOW, "too slow"

    return once


def _fuzz(name: str, seconds: int, again: str | None) -> None:
    """Fuzz one target in this process, which ends with it."""
    logging.disable(logging.CRITICAL)
    options = [
        f"-max_total_time={seconds}",
        "-max_len=4096",
        "-timeout=20",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
    ]
    if again is None:
        corpus = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
        options += [f"-artifact_prefix={corpus}/", str(corpus)]
    else:
        options = [again]
    atheris.Setup([sys.argv[0], *options], _fuzzed(TARGETS[name]))
    atheris.Fuzz()


def main() -> int:
    """Fuzz the named target, or all of them, one after the other; 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python tools/fuzz.py", description=__doc__)
    parser.add_argument("target", nargs="?", choices=TARGETS, help="all of them without a name")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="for each target")
    parser.add_argument("--again", help="the file of a failed input")
    given = parser.parse_args()
    if given.target is not None:
        _fuzz(given.target, given.seconds, given.again)
        return 0
    failed = []
    for name in TARGETS:
        print(f"--- {name}, {given.seconds} s", flush=True)
        if subprocess.run([sys.executable, __file__, name, "--seconds", str(given.seconds)], check=False).returncode:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "nothing found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
