"""A call as a summariser reads it: arguments as JSON, long texts as they are, an old and a new text as a diff."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from context_summarize.messages.rows import Call, compact_json, saved_json
from context_summarize.messages.text import call_line
from context_summarize.redaction import Redact
from context_summarize.transcript.changes import diff

_PAIRS = (("old", "new"), ("search", "replace"), ("find", "replace"), ("before", "after"), ("from", "to"))
"""Words that tell the names of an old and a new text: `old_string` and `new_string`."""
_SHORT = 80
"""Characters of texts on one line that stay in the JSON, and of the argument that names a call."""


@dataclass(frozen=True, slots=True)
class PartText:
    """One text of a row, redacted, without marks."""

    kind: Literal["said", "call", "argument", "diff", "result"]
    text: str
    label: str = ""
    """Our own line before it, such as `content:`."""
    alike: str = ""
    """A result of one line, with a sign in place of what it was called for: acknowledgements are alike."""


def call_texts(call: Call, redact: Redact) -> Iterator[PartText]:
    """Yields the line of a call, then the texts among its arguments that have several lines, and its diffs."""
    data = saved_json(call.arguments)
    clean = redact(data)
    arguments = call.arguments if clean == data else _parsed(clean)
    texts: list[PartText] = []
    left = _taken_out(arguments, "", redact, texts)
    shown = left if isinstance(left, str) else compact_json({} if left is None else left)
    yield PartText("call", call_line(redact(call.name), shown))
    yield from texts


def main_argument(call: Call) -> str:
    """Returns the first text among a call's arguments: agents write the parameter first that says what for."""
    values = call.arguments.values() if isinstance(call.arguments, dict) else [call.arguments]
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def named(call: Call, clean: Redact) -> str:
    """Returns a call's tool and main argument on one line. Of a long path the end is kept, else the beginning."""
    line = clean(" ".join(main_argument(call).strip().split("\n", 1)[0][: 10 * _SHORT].split()))
    if " " not in line and "/" in line[-_SHORT // 2 :]:
        line = line if len(line) <= _SHORT // 2 else f"…/{line[-_SHORT // 2 :].partition('/')[2]}"
    return f"{' '.join(clean(call.name).split())} {line if len(line) <= _SHORT else f'{line[:_SHORT]}…'}".strip()


def _parsed(data: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def _taken_out(value: Any, where: str, redact: Redact, texts: list[PartText]) -> Any:
    """Returns arguments without their long texts, which go to `texts`; None if nothing is left."""
    if isinstance(value, str) and "\n" in value:
        texts.append(PartText("argument", redact(value), where and f"{where}:"))
        return None
    if isinstance(value, Mapping):
        pairs = dict(_pairs(value))
        for old, new in pairs.items():
            shown = diff(redact(value[old]), redact(value[new]))
            texts.append(PartText("diff", "\n".join(shown) or "(no change)", where and f"{where}:"))
        items = [(key, item) for key, item in value.items() if key not in pairs and key not in pairs.values()]
        left = {key: _taken_out(item, f"{where} {key}".strip(), redact, texts) for key, item in items}
        return {key: item for key, item in left.items() if item is not None} or (None if texts else {})
    if isinstance(value, list | tuple):
        kept = [_taken_out(item, f"{where} {at}".strip(), redact, texts) for at, item in enumerate(value, 1)]
        return [item for item in kept if item is not None] or None
    return value


def _pairs(arguments: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Yields the names of an old and of its new text, unless both are short."""
    texts = {key: value for key, value in arguments.items() if isinstance(key, str) and isinstance(value, str)}
    used = set[str]()
    for key, old in texts.items():
        names = {key.replace(word, other, 1) for word, other in _PAIRS if word in key}
        for name in sorted(names & texts.keys() - used):
            both = old + texts[name]
            if key not in used and ("\n" in both or len(both) > _SHORT):
                used |= {key, name}
                yield key, name
