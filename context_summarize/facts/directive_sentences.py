"""Which sentences of a user message are directives: what applies to the rest of a conversation. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from context_summarize.background import Steps, finished
from context_summarize.facts.demands import demanded, is_imperative, is_narrative, starts_clause
from context_summarize.facts.directives import MOST, latest, shortened
from context_summarize.facts.own_voice import own_voice
from context_summarize.facts.patterns import one_line
from context_summarize.facts.quotations import ENDS, QUOTATION, shield
from context_summarize.facts.withdrawals import is_withdrawal
from context_summarize.transcript.calls import ORPHAN
from context_summarize.transcript.rows import RenderedRow

_BULLET = re.compile(r"^\s*(?:[-*+•–—]|\(?\d{1,3}[.)])\s+")
_OPENS = re.compile(r"\s*(?:[-*+•–—#>|]\s|\(?\d{1,3}[.)]\s)")
_END = re.compile(rf"(?<![.!?…\[])[.!?…]+[\"'”’)\]]*\s+|{ENDS}[\"'”’)\]]*\s+|[。\uff01\uff1f]+")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|mr|mrs|ms|dr|st|[A-Za-z])\.$", re.I)
_REQUEST = re.compile(
    r"(?i)\W*(?:(?:and|so|but|also|please|then|ok(?:ay)?|yes|no)\W+)*(?:can|could|will|would|please)\b"
)

# English only: the words of a prompt set in another language match none of these.
_TOLD_BEFORE = re.compile(
    r"(?i)(?:\bi(?:'(?:ve|d|m|ll))?|\bi (?:have|had|do|did|am|was|will|would|can|could|should|may|might|must|shall|"
    r"tend to)"
    r"|\b(?:have|has|had|was|were|as|not|almost|nearly)|'ve)(?:\s+(?:really|actually|just|still|also|simply|"
    r"certainly|honestly))*\s*$"
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
_ENGLISH = frozenset(
    ["always", "never", "do not", "don't", "every time", "whenever", "in future", "make sure", "avoid"]
)
"""Words of the sets that also occur in reports: "I'm trying to see why it never ends"."""
_OCCASIONS = frozenset(["every time", "whenever"])
_THIRD_PERSON = re.compile(r"(?i)\s*(?:\w{2,}(?<!s)s|seems?|had|was|were|been)\b(?<!focus)(?<!discuss)")
_DOING = re.compile(r"(?i)\s*\w{2,}ing\b")
_TO_AGENT = re.compile(r"(?i)\byou(?:\s+(?:should|must|can|may|will|shall|ought to|need to|have to))?\s*$")
_TAG_QUESTION = re.compile(
    r"(?i)[,;–—-]\s*(?:ok(?:ay)?|right|all ?right|please|yeah|yes|got it|deal|understood|agreed|will you|"
    r"would you)\s*\?+$"
)
_FOR_HELP = re.compile(
    r"(?i)\W*(?:(?:so|and|but|also|ok(?:ay)?|hm+|yes|no|please|hi|hello|hey|well)\W+){0,4}"
    r"(?:can|could|will|would) you (?:please |also |maybe |possibly )*"
    r"(?:help|explain|tell me|walk|suggest|give me (?:a|an|some)|show me (?:how|a|an|some)|review|check if|clarify|"
    r"provide (?:a|an|some)|"
    r"recommend|find|see)\b"
)
"""A request for help with one thing, though it may hold a word such as "always"."""
_MOST_WORDS = 50
"""Words of the prompt set that are looked at in one sentence."""
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
    """The same as `find_directives`, a sentence a step."""
    pattern = directive_pattern(words)
    found: list[str] = []
    for run in runs if pattern else ():
        for row in run:
            if pattern and row.role == "user":
                yield
                for directive in _directives_of(_said(row, len(run) == 1), pattern):
                    found += [directive] if directive else []
                    yield
    return latest(found[-MOST:])


def _said(row: RenderedRow, alone: bool) -> str:
    """What the user says in a row; a row that does not tell is a result if it stands in a group of calls."""
    if row.own is not None:
        return row.own
    return row.text if alone and ORPHAN not in row.text else ""


def _directives_of(text: str, pattern: re.Pattern[str]) -> Iterator[str | None]:
    """For each sentence the directive in it, or None."""
    shielded = shield(own_voice(text))
    for sentence in _sentences(shielded.text):
        at = _directive_at(sentence, pattern)
        yield None if at is None else shortened(*shielded.expand(sentence, at))


def _directive_at(sentence: str, pattern: re.Pattern[str]) -> int | None:
    """Position of the words that make the sentence a directive, or take one back; None for a statement or question.

    Words in quotation marks are somebody else's. "I don't have it", "it never works" and "as always" are statements;
    "I don't want you to push" is a directive.
    """
    if sentence.endswith("?") and not (_REQUEST.match(sentence) or _TAG_QUESTION.search(sentence[-40:])):
        return None
    bare = QUOTATION.sub(lambda match: "\x00" * len(match[0]), sentence).replace("’", "'")
    if is_withdrawal(bare):
        return 0
    found = _word_at(bare, pattern)
    return demanded(bare) if found is None and not _FOR_HELP.match(bare) else found


def _word_at(bare: str, pattern: re.Pattern[str]) -> int | None:
    """Position of the first word of the prompt set that is said to the agent."""
    narrative = is_narrative(bare) or _FOR_HELP.match(bare) is not None
    for match in islice(pattern.finditer(bare), _MOST_WORDS):
        word, before, after = (
            match[0].lower(),
            bare[max(match.start() - 80, 0) : match.start()],
            bare[match.end() :][:80],
        )
        if _WANTED.match(after) or (word in ("always", "never") and _WANTED_ALWAYS.match(after)):
            return match.start()
        told = next((found for start, found in _TOLD_AFTER.items() if word.startswith(start)), None)
        if _TOLD_BEFORE.search(before) or (told is not None and told.match(after)):
            continue
        if not word.startswith("must") and _REPORTED_BEFORE.search(before):
            continue
        if word in _ENGLISH and not starts_clause(bare, match.start()):
            third_person = word in ("always", "never") and _THIRD_PERSON.match(after)
            if third_person or (narrative and not _TO_AGENT.search(before)):
                continue
        if word in ("always", "never") and _DOING.match(after):
            continue
        if word in _OCCASIONS and (narrative or not is_imperative(bare)):
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
