"""Session files of Claude Code that the team of `entireio/cli` publishes, with the summaries a model wrote there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.real import DATA, read
from benchmarks.sessions import Session, assistant
from benchmarks.tokens import Row

SET = "entire"
_REMINDER = re.compile(r"(?s)<system-reminder>.*?</system-reminder>")
_INJECTED = re.compile(r"\s*(?:<(?:command-|local-command-|bash-|task-notification)|\[Request interrupted|Caveat:)")
"""The beginning of a text that the host put into a row of the user."""


class Cut(NamedTuple):
    """A compaction that Claude Code recorded; it keeps no row verbatim."""

    at: int
    """Rows before it."""
    summary: str


class Recorded(NamedTuple):
    """A session, its compactions, and the folder that it was started in."""

    session: Session
    cuts: list[Cut]
    folder: str


def load(path: str, sealed: bool = False, data: Path = DATA) -> Recorded:
    """Reads a session file."""
    lines = read(SET, path, sealed, data).decode().splitlines()
    told = [one for one in map(json.loads, lines) if not one.get("isSidechain") and not one.get("isMeta")]
    results = {block["tool_use_id"]: _text(block) for one in told for block in _blocks(one, "tool_result")}
    rows: list[Row] = []
    cuts: list[Cut] = []
    for entry in _entries(told):
        if entry.get("isCompactSummary"):
            cuts.append(Cut(len(rows), _text(entry["message"])))
        else:
            rows += _rows(entry, results)
    folder = next((one["cwd"] for one in told if one.get("cwd")), "")
    name = f"{SET}/{path.replace('/', '-').removesuffix('-full.jsonl')}"
    return Recorded(Session(name=name, rows=tuple(rows)), cuts, folder)


def _entries(told: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the messages, each with its blocks joined, and what the user typed while the agent worked."""
    joined: dict[str, Any] = {}
    waiting: list[str] = []
    for one in told:
        if one["type"] == "assistant":
            if joined and joined["message"]["id"] == one["message"]["id"]:
                joined["message"]["content"] += one["message"]["content"]
                continue
            if joined:
                yield joined
            joined = one
        elif one["type"] in ("user", "queue-operation"):
            if joined:
                yield joined
            joined = {}
            yield from [one] if one["type"] == "user" else _delivered(one, waiting)
    if joined:
        yield joined


def _delivered(operation: Mapping[str, Any], waiting: list[str]) -> Iterator[dict[str, Any]]:
    """Yields a message that the user typed while the agent worked, at the place where the agent got it."""
    match operation["operation"]:
        case "enqueue":
            waiting.append(operation.get("content", ""))
        case "popAll":  # taken back by the user
            waiting.clear()
        case "remove" | "dequeue" if waiting:
            content = waiting.pop(0)
            if operation["operation"] == "remove":  # what is dequeued comes as a row of its own
                yield {"type": "user", "message": {"content": content}}


def _rows(entry: Mapping[str, Any], results: dict[str, str]) -> Iterator[Row]:
    """Yields the rows of one entry, without calls that have no result; results come right behind their calls."""
    text = "\n".join(block["text"] for block in _blocks(entry, "text")).strip()
    if entry["type"] == "user":
        if text:
            yield {"role": "user", "content": text}
        return
    told = [(one["id"], one["name"], one["input"], results.pop(one["id"], None)) for one in _blocks(entry, "tool_use")]
    calls = [(id_, name, given) for id_, name, given, result in told if result is not None]
    if (text or calls) and not entry.get("isApiErrorMessage") and entry["message"].get("model") != "<synthetic>":
        yield assistant(text, calls)
        for id_, name, _, result in told:
            if result is not None:
                yield {"role": "tool", "tool_call_id": id_, "name": name, "content": result}


def _blocks(entry: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """Returns the blocks of one kind in an entry's message, without what the host put into the user's texts."""
    content = entry.get("message", {}).get("content", [])
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    found = [block for block in blocks if block["type"] == kind]
    if kind == "text" and entry["type"] == "user":
        texts = [_REMINDER.sub("", block["text"]) for block in found if not _INJECTED.match(block["text"])]
        return [{"type": "text", "text": text} for text in texts]
    return found


def _text(holder: Mapping[str, Any]) -> str:
    """Returns the text of a result or a message."""
    content = holder.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")
