"""User directives: sentences that apply to the rest of a conversation, kept in the user's own words. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from context_summarize.background import Steps, finished
from context_summarize.facts.own_voice import own_voice, parts_read
from context_summarize.facts.patterns import holds, one_line
from context_summarize.facts.quotations import ENDS, QUOTATION, shield
from context_summarize.transcript.calls import ORPHAN
from context_summarize.transcript.rows import RenderedRow

DIRECTIVES_LINE = "Standing rules, in the user's own words:"
MAX_DIRECTIVE = 200
"""Most characters of a directive; of a longer sentence the part around the directive's word is kept."""

_CUT = "[…]"
_BULLET = re.compile(r"^\s*(?:[-*+•–—]|\(?\d{1,3}[.)])\s+")
_OPENS = re.compile(r"\s*(?:[-*+•–—#>|]\s|\(?\d{1,3}[.)]\s)")
_END = re.compile(rf"(?<![.!?…\[])[.!?…]+[\"'”’)\]]*\s+|{ENDS}[\"'”’)\]]*\s+|[。\uff01\uff1f]+")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|mr|mrs|ms|dr|st|[A-Za-z])\.$", re.I)
_REQUEST = re.compile(
    r"(?i)\W*(?:(?:and|so|but|also|please|then|ok(?:ay)?|yes|no)\W+)*(?:can|could|will|would|please)\b"
)

# English only: the words of a prompt set in another language match none of these.
_TOLD_BEFORE = re.compile(
    r"(?i)(?:\bi(?:'(?:ve|d|m|ll))?|\bi (?:have|had|do|did|am|was|will|would)"
    r"|\b(?:have|has|had|was|were|as|not|almost|nearly)|'ve)(?:\s+(?:really|actually|just|still|also|simply|certainly|honestly))*\s*$"
)
"""Words before a statement about the speaker or the past: "I don't", "we've always", "as always"."""
_REPORTED_BEFORE = re.compile(r"(?i)\b(?:he|she|it|they|this|that|there|which|who|people)\s*$")
_TOLD_AFTER = {
    "do": re.compile(
        r"(?i)\s*(?:(?:actually|really)\s+)?(?:mind|have|know|remember|recall|need|see|think|understand|want|wish|care|"
        r"believe|mean|worry)\b"
    ),
    "never": re.compile(r"(?i)\s*mind\b"),
    "must": re.compile(
        r"(?i)\s*(?:have been|be (?:sorry|some\w*|a (?:mistake|way|misunderstanding)|an (?:error|issue)))\b"
    ),
    "whenever": re.compile(r"(?i)\s*(?:you(?:'re| are| can| like| want| wish)|possible|convenient)\b"),
}
_WANTED = re.compile(r"(?i)\s*(?:ever\s+)?(?:want|wish|need|expect|like)\s+(?:you|your)\b")
_WANTED_ALWAYS = re.compile(r"(?i)\s*(?:want|wish|expect)\b")


def directive_pattern(words: Sequence[str]) -> re.Pattern[str] | None:
    """A pattern for the words of a prompt set as whole words, in any case and with any apostrophe; None if no words."""
    alternatives = [_word_pattern(word) for word in sorted(words, key=len, reverse=True) if word.strip()]
    return re.compile("|".join(alternatives), re.I) if alternatives else None


def _word_pattern(word: str) -> str:
    inner = r"\s+".join(re.escape(part).replace("'", "['’]") for part in word.split())
    # Scripts that write without spaces have no word boundaries.
    before = r"(?<!\w)" if word[0].isalnum() and ord(word[0]) < 0x2E80 else ""
    after = r"(?!\w)" if word[-1].isalnum() and ord(word[-1]) < 0x2E80 else ""
    return f"{before}{inner}{after}"


def find_directives(runs: Sequence[Sequence[RenderedRow]], words: Sequence[str]) -> tuple[str, ...]:
    """The directives in the user messages of a segment, oldest first, each on one line. A repeated one appears last.

    `runs` are the groups of the segment. Only the user's own words count (`RenderedRow.own`): tools, attachments and
    what the user quotes or pastes between marks give no directives.
    """
    return finished(directive_steps(runs, words))


def directive_steps(runs: Sequence[Sequence[RenderedRow]], words: Sequence[str]) -> Steps[tuple[str, ...]]:
    """The same as `find_directives`, a user row a step."""
    pattern = directive_pattern(words)
    found: list[str] = []
    for run in runs if pattern else ():
        for row in run:
            if pattern and row.role == "user":
                found += _directives_of(_said(row, len(run) == 1), pattern)
                yield
    return _latest(found)


def _said(row: RenderedRow, alone: bool) -> str:
    """What the user says in a row; a row that does not tell is a result if it stands in a group of calls."""
    if row.own is not None:
        return row.own
    return row.text if alone and ORPHAN not in row.text else ""


def merge_directives(children: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The directives of neighbours, oldest first, as one list; a later one replaces an older one that it repeats."""
    return _latest([directive for child in children for directive in child])


def newest_directives(directives: Sequence[str], max_tokens: int, count: Callable[[str], int]) -> tuple[str, ...]:
    """The newest directives that fit into `max_tokens` when formatted, oldest first."""
    first = len(directives)
    while first and count(format_directives(directives[first - 1 :])) <= max_tokens:
        first -= 1
    return tuple(directives[first:])


def share_out(
    nodes: Sequence[Sequence[str]], max_tokens: int, count: Callable[[str], int]
) -> tuple[tuple[str, ...], ...]:
    """The directives of the nodes of one view, reduced so that all together fit `max_tokens`. The newest are kept.

    If a later node repeats a directive, the older node leaves it out. Deterministic and monotone: if a list of nodes
    leaves a directive out of a node, no longer list adds it again.
    """
    room = max_tokens
    seen: set[str] = set()
    shares: list[tuple[str, ...]] = []
    for directives in reversed(nodes):
        fresh = [directive for directive in directives if _sense(directive) not in seen]
        kept = newest_directives(fresh, room, count)
        room = room - count(format_directives(kept)) if len(kept) == len(fresh) else 0
        seen.update(map(_sense, kept))
        shares.append(kept)
    return tuple(reversed(shares))


def format_directives(directives: Sequence[str], text: str = "") -> str:
    """The directives as shown after a summary's text, one per line, without those that the text holds literally.

    Each stands in quotation marks: in a system row it is what the user has said, not an instruction of the host.
    """
    flat = one_line(text)
    lines = [f"- {_in_quotes(directive)}" for directive in directives if not (flat and holds(flat, directive))]
    return "\n".join([DIRECTIVES_LINE, *lines]) if lines else ""


def _in_quotes(directive: str) -> str:
    """The directive between quotation marks that it does not hold, where there are such."""
    return f"“{directive}”" if '"' in directive else f'"{directive}"'


def directives_room(summary_tokens: int, source_tokens: int | None = None) -> int:
    """Tokens of directives that one node of any level may hold, and also all nodes of a view: about 2 % of the budget.

    A summary of level 0 has a tenth of a segment, and a segment has at least 1/√2 of an eighth of the budget. So 9/8
    of a level-0 summary is at most 2 % of the budget that the sizes are derived from. In a node of level 0, directives
    take at most half of its source (`source_tokens`).
    """
    room = int(summary_tokens * 9 / 8)
    return room if source_tokens is None else min(room, source_tokens // 2)


def _latest(directives: Sequence[str]) -> tuple[str, ...]:
    kept: dict[str, str] = {}
    for directive in directives:
        kept.pop(_sense(directive), None)
        kept[_sense(directive)] = directive
    return tuple(kept.values())


def _sense(directive: str) -> str:
    """Equal for directives that differ only in case, punctuation and white space."""
    return " ".join(re.findall(r"\w+", directive.replace("’", "'").casefold())) or directive


def _directives_of(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    if not any(map(pattern.search, parts_read(text))):
        return
    shielded = shield(own_voice(text))
    for sentence in _sentences(shielded.text):
        at = _directive_at(sentence, pattern)
        if at is not None:
            yield _shortened(*shielded.expand(sentence, at))


def _directive_at(sentence: str, pattern: re.Pattern[str]) -> int | None:
    """Position of the word that makes the sentence a directive; None for a plain statement or question.

    Words in quotation marks are somebody else's. "I don't have it", "it never works" and "as always" are statements;
    "I don't want you to push" is a directive.
    """
    if sentence.endswith("?") and not _REQUEST.match(sentence):
        return None
    bare = QUOTATION.sub(lambda match: "\x00" * len(match[0]), sentence).replace("’", "'")
    for match in pattern.finditer(bare):
        word, before, after = match[0].lower(), bare[max(match.start() - 80, 0) : match.start()], bare[match.end() :]
        after = after[:80]
        if _WANTED.match(after) or (word in ("always", "never") and _WANTED_ALWAYS.match(after)):
            return match.start()
        told = next((found for start, found in _TOLD_AFTER.items() if word.startswith(start)), None)
        if _TOLD_BEFORE.search(before) or (told is not None and told.match(after)):
            continue
        if not word.startswith("must") and _REPORTED_BEFORE.search(before):
            continue
        return match.start()
    return None


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a text, each on one line, without bullets; a line that continues in the next one is joined."""
    for paragraph in _paragraphs(text):
        start = 0
        for match in _END.finditer(paragraph):
            mark = paragraph[start : match.end()].rstrip()
            following = paragraph[match.end() : match.end() + 1]
            if match[0].strip() in (".", ENDS) and (following.islower() or _ABBREVIATION.search(mark[-12:])):
                continue
            yield mark
            start = match.end()
        if rest := paragraph[start:].strip():
            yield rest


def _paragraphs(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in text.split("\n"):
        goes_on = lines and line.strip() and not _OPENS.match(line)
        if goes_on and (line.lstrip()[0].islower() or lines[-1].endswith((",", ";"))) and lines[-1][-1] not in ".!?:":
            lines.append(one_line(line))
            continue
        if lines:
            yield " ".join(lines)
        bare = one_line(_BULLET.sub("", line))
        lines = [bare] if bare else []
    if lines:
        yield " ".join(lines)


def _shortened(sentence: str, at: int) -> str:
    """The sentence, or at most `MAX_DIRECTIVE` characters of it around position `at`, cut between words if possible."""
    if len(sentence) <= MAX_DIRECTIVE:
        return sentence
    room = MAX_DIRECTIVE - 2 * (len(_CUT) + 1)
    start = 0 if at <= room // 2 else at - room // 4
    end = min(len(sentence), start + room)
    if start:
        start = next((i + 1 for i in range(start, min(start + 30, at)) if sentence[i] == " "), start)
    if end < len(sentence):
        end = next((i for i in range(end, end - 30, -1) if sentence[i] == " "), end)
    head, tail = f"{_CUT} " if start else "", f" {_CUT}" if end < len(sentence) else ""
    return f"{head}{sentence[start:end].strip()}{tail}"
