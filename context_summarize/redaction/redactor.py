"""Removes secrets of well-known formats, and matches of the user's own patterns, from a text. Linear, idempotent.

A format with its own prefix is enough. A value without one (a password, a key of some service) is removed if a word
before it says what it is and the value looks like a secret: long, mixed, not a placeholder, not code. A text
with colour codes, escapes or continued lines is also searched without them.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache, partial

from context_summarize.background import Steps, finished
from context_summarize.redaction.assigned import NAMES, assigned, cookies
from context_summarize.redaction.formats import PLACED, SHORTEST, TOKENS, Format, Span, is_mixed, replaced
from context_summarize.redaction.keys import KIND, STEMS, keys
from context_summarize.redaction.own import OwnPatterns
from context_summarize.redaction.views import view_of

Redact = Callable[[str], str]
Rule = Callable[[str], Iterator[Span]]

_WINDOW = 32_000
"""Characters of a long text that are searched at once."""
_MORE = 16_000
"""Characters after them that are looked at as well: a secret that is no longer is seen whole by one window."""
_TORN = re.compile(
    r"(?<![\w+/=.~:-])(?P<left>[\w+/=.~:-]{3,200}+)(?:\r?\n|\\{1,4}n){1,2}(?=(?P<right>[\w+/=.~:-]{4,400}+))"
)
"""The last word of a line and the first one of the next; between two blocks there may be an empty line."""
_TOKENS = [(word, known) for known in TOKENS for word in known.words]
_PLACED = [(word, known) for known in PLACED for word in known.words]
_THREADS = ThreadPoolExecutor(4, "context-summarize-redact")
_LOOK_SECONDS = 0.003
"""How long a step waits for the user's own patterns."""


def _holds(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)


def _chosen(table: list[tuple[str, Format]], text: str) -> list[Format]:
    """The formats that may match somewhere in the text, in their order."""
    return list(dict.fromkeys([known for word, known in table if word in text])) if text else []


def _rules(text: str) -> Iterator[Rule]:
    """The rules that may find something in the text, in their order."""
    low = text.lower()
    words = [word for word in text.split() if len(word) >= SHORTEST]
    if words and ("PRIVATE KEY-----" in text or max(map(len, words)) >= 64 or _holds(text, STEMS)):
        yield keys
    yield from (known.places for known in [*_chosen(_TOKENS, "\n".join(words)), *_chosen(_PLACED, low)])
    if _holds(low, ("cookie", " -b ")):
        yield cookies
    if _holds(low, NAMES):
        yield assigned


def _blank(text: str, spans: Sequence[Span]) -> str:
    """The text with brackets and blanks in place of each span, as a mark has them; all places stay where they are."""
    for span in spans:
        length = span.end - span.first
        text = text[: span.first] + f"[{' ' * (length - 2)}]"[-length:] + text[span.end :]
    return text


def _as_it_stands(text: str) -> Iterator[Span]:
    """Places of secrets. A rule does not see what earlier ones have found."""
    for rule in _rules(text):
        found = list(rule(text))
        text = _blank(text, found)
        yield from found


def _disguised(text: str, joined: bool) -> Iterator[Span]:
    """Places of secrets that a view of the text shows; in the joined one only those that need it."""
    if view := view_of(text, joined=joined):
        for one in _as_it_stands(view.text):
            # The rows of a key need their line breaks, which the joined view takes for ends of continued lines.
            if not joined or (one.kind != KIND and view.is_joined(one)):
                yield view.back(one)


def _torn(text: str) -> Iterator[Span]:
    """Places of tokens that the end of a line stands within; the first part holds the prefix. Whole ones are gone."""
    end = 0
    for torn in _TORN.finditer(text) if _holds(text, ("\n", "\\n")) else ():
        word, edge = torn["left"] + torn["right"], len(torn["left"])
        if torn.start() < end or not is_mixed(word):
            continue
        for found in (span for known in _chosen(_TOKENS, word) for span in known.places(word)):
            if found.first < edge < found.end and is_mixed(word[found.first : found.end]):
                end = torn.start("right") + found.end - edge
                yield Span(torn.start() + found.first, end, found.kind)
                break


def _known(text: str) -> Iterator[Span]:
    """Places of secrets of known formats. What needs no disguise is found where the words around it are as meant."""
    for rule in (partial(_disguised, joined=True), partial(_disguised, joined=False), _as_it_stands, _torn):
        found = list(rule(text))
        text = _blank(text, found)
        yield from found


def _windows(text: str) -> Steps[list[Span]]:
    """Places of all secrets in order, a window a step. Places that overlap become one, of the kind of the longer."""
    spans: list[Span] = []
    for at in range(0, max(1, len(text) - _MORE), _WINDOW):
        first, end = _between_words(text, at), _between_words(text, at + _WINDOW + _MORE)
        spans += [Span(first + one.first, first + one.end, one.kind) for one in _known(text[first:end])]
        yield
    out: list[Span] = []
    for span in sorted(spans, key=lambda span: span.first):
        if out and span.first < out[-1].end:
            last = out.pop()
            longer = max(last, span, key=lambda one: one.end - one.first)
            span = Span(last.first, max(last.end, span.end), longer.kind)
        out.append(span)
    return out


def _between_words(text: str, at: int) -> int:
    """The place after a blank that stands shortly before this one; this one where there is none."""
    return at if at >= len(text) else max(text.rfind(blank, max(0, at - 500), at) + 1 for blank in " \n") or at


class Redactor:
    """Takes secrets out of texts: those of known formats, and what the user's own patterns match."""

    def __init__(self, own: OwnPatterns) -> None:
        self._own = own

    def __call__(self, text: str) -> str:
        """The text with a mark in place of each secret."""
        return self._own(replaced(text, finished(_windows(text))))

    def steps(self, text: str) -> Steps[str]:
        """The same in short steps; the user's own patterns are searched in a thread."""
        clean = replaced(text, (yield from _windows(text)))
        if not self._own:
            return clean
        work = _THREADS.submit(self._own, clean)
        while not wait([work], _LOOK_SECONDS).done:
            yield
        return work.result()


def redact_steps(text: str, redact: Redact | None) -> Steps[str]:
    """The text without secrets, in steps where the redactor has them; as it is without a redactor."""
    if isinstance(redact, Redactor):
        return (yield from redact.steps(text))
    return redact(text) if redact else text


@lru_cache(maxsize=32)
def _redactor(patterns: tuple[str, ...]) -> Redactor:
    return Redactor(OwnPatterns(patterns))


def build_redactor(setting: bool | Sequence[str]) -> Redactor | None:
    """The redactor for the setting `redact`: None for false; known formats for true; for a list also its patterns.

    Each secret becomes `[redacted: KIND]`. The user's own patterns are Python regular expressions, searched without
    flags (write `(?i)` to ignore case). A text that they take longer than a second for is withheld as a whole.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """
    if isinstance(setting, bool):
        return _redactor(()) if setting else None
    return _redactor(tuple(setting))


def traceback_of(error: BaseException, setting: bool | Sequence[str] = True) -> str:
    """The traceback of an error with its causes, on several lines, without secrets of known formats.

    A provider's or a hook's error may quote a request with its key, and a log is read by others than a session is.

    Args:
        setting: the setting `redact`: the user's own patterns are taken out too, and `False` leaves the known formats.
    """
    told = "".join(traceback.format_exception(error)).rstrip()
    redact = build_redactor(setting or True)
    return redact(told) if redact else told
