"""Whether an answer is about its source: words and exact values that both hold, and forms that no summary has. Pure."""

from __future__ import annotations

import re
from collections import Counter

_WORD = re.compile(r"[^\W\d_]{3,}")
_ID = re.compile(r"(?<![\w.-])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[\w-]{5,}(?![\w-])")
_EXACT = re.compile(r"(\w[\w./:-]{2,}\w)[./:-]*+")
_TELLS = re.compile(r"[\d_/]")
"""Makes an exact value of a token, also where it stands right after it: `notes/`."""
_STOP_WORDS = """
about after all also and any are been before being between but can could did does during each for from had has have
her here him his how into its just like may more most much none not now one only other our out over she should show
some such than that the their them then there these they this those through under until was were what when where
which while who why will with would you your
goal standing rules facts state user assistant agent
"""
_STOP = frozenset(_STOP_WORDS.split())
"""Words that say nothing of a subject, and headings that every summary has."""
_ENOUGH = 24
"""Telling words from which on an answer can be judged by its words; a shorter one is too easily right by chance."""
_LEAST_SHARE = 0.08
"""Share of an answer's telling words that its source holds too, at the least."""
_FEW = 2
"""Telling words: an answer that holds fewer, chat and copied lines aside, says nothing."""
_MANY_VALUES = 8
"""Ids that an answer holds: from so many on it is judged by where they come from."""
_MOST_VALUES = 64
"""Ids that are looked for: a search takes as long as its source."""
_LEAST_KNOWN = 0.25
"""Share of them that its source holds too, at the least: the others are invented."""
_MOST_READ = 200_000
"""Characters of a text that are looked at."""

_COPIED = re.compile(
    r"[\s>*_`]*(?:#{1,6}[ \t]*summary \d+ of \d+\b|#\d+ (?:user|assistant|tool)\b|=== transcript [0-9a-f]{20} ===)",
    re.I,
)
"""How an answer opens that goes on with the request. Further down such lines may stand: a frame quotes them."""
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff1f\uff01])\s+|\n+")
_CHAT = re.compile(
    r"^\W*(?:(?:hi|hello|hey|sure|certainly|of course|absolutely|great|okay|ok|thanks?|thank you)\b[^.?!]{0,40}$"
    r"|(?:i['’]?m|i am|i['’]?d be|i would be) (?:so |very |more than )?(?:glad|happy|pleased|here|ready|delighted) to\b"
    r"|(?:how|what) (?:can|may|could|would) (?:i|you)\b"
    r"|(?:can|could|would|will|do|are|is|have) (?:you|there)\b.*\?$"
    r"|(?:if you have|if there is|if you need|feel free|let me know|please (?:provide|share|tell|let|give|specify))\b"
    r"|(?:thank you|thanks) for\b"
    r"|(?:i can|i['’]ll|i will|let['’]?s|let me) (?:help|assist|gladly)\b)",
    re.IGNORECASE,
)

_ADDRESSES = re.compile(
    r"\b(?:you|your|yours|you['’](?:re|ve|ll|d))\b"
    r"|^\W*(?:here (?:is|are)|this is) (?:the |my |an? )?(?:answer|response|reply|(?:final|updated|revised) \w+)\b",
    re.IGNORECASE,
)
"""A sentence that speaks to the reader, as an answer to the user does and a summary does not."""
_TELLS_OF = re.compile(
    r"\b(?:user|agent|assistant|customer|client|human)(?:s|['’]s)?\b|\bsummary\b[^.]{0,40}:|(?:^|[.!?]\s+)you \w+ed\b",
    re.I,
)
"""A text that tells of those who spoke, or calls itself a summary."""
_MOST_OPENING = 1_000
"""Characters in which they are looked for."""
_OPENING = 2
"""Sentences by which an answer to the user is known."""
_LOOPS = 6
"""Sentences of its own from which on an answer is looked at for repetition."""
_MOST_LOOPS = 8
"""Repeated sentences that are looked for in the source."""
_LONG = 5
"""Words of such a sentence, at the least."""
_LEAST_NEW = 0.5
"""Share of them that must differ: a small model that cannot end says the same again and again."""


def telling_words(text: str) -> frozenset[str]:
    """The words of a text that say something of its subject: three letters or more, in lower case, cut to six."""
    words = {word.lower() for word in _WORD.findall(text[:_MOST_READ])}
    return frozenset(word[:6] for word in words - _STOP)


def exact_values(text: str) -> frozenset[str]:
    """Tokens of four characters or more that hold a digit, an underscore or a slash: ids, paths, dates, numbers."""
    found = _EXACT.finditer(text[:_MOST_READ])
    return frozenset(match[1].lower() for match in found if _TELLS.search(match[0]))


def missing_substance(text: str, source: str, instructions: str = "") -> str | None:
    """One word for why a text is no summary of its source; None if it may be one.

    `copied`: it opens with a heading or delimiter of the request, or only repeats its lines.
    `chat`: it greets, offers help or asks back, and says nothing else. `off_topic`: it shares next to none of its words
    and no exact value with its source. A summary in another language than its source passes by exact values. Texts of
    few words are not judged by their words. `invented`: it lists many ids, and next to none of them stands in its
    source. `answer`: it opens by speaking to the user in words that its source does not hold, and tells of nobody.
    """
    if _COPIED.match(text):
        return "copied"
    if _is_invented(text, source):
        return "invented"
    own = _without_lines_of(instructions, text)
    if own != text and _is_empty(own, source):
        return "copied"
    if len(telling_words(own)) < _ENOUGH:
        if _is_chat(own, source):
            return "chat"
    elif _is_off_topic(own, source):
        return "off_topic"
    return "answer" if _is_answer(own, source) else None


def is_loop(text: str, source: str) -> bool:
    """True if a text says the same again and again, and its source does not: a model that could not end."""
    sentences = [part.lower().split() for part in _SENTENCE.split(text[:_MOST_READ])]
    said = Counter(" ".join(part) for part in sentences if len(part) >= _LONG)
    if said.total() < _LOOPS or len(said) >= _LEAST_NEW * said.total():
        return False
    known = " ".join(source[:_MOST_READ].lower().split())
    return any(part not in known for part, times in said.most_common(_MOST_LOOPS) if times > 1)


def _is_chat(text: str, source: str) -> bool:
    sentences = [part.strip() for part in _SENTENCE.split(text)]
    rest = [part for part in sentences if not _CHAT.match(part)]
    return len(rest) < len(sentences) and _is_empty(" ".join(rest), source)


def _is_answer(text: str, source: str) -> bool:
    """True if it opens by speaking to the user. Sentences of its source may do that, so only new ones are looked at."""
    if _TELLS_OF.search(text[:_MOST_READ]):
        return False
    known = " ".join(source[:_MOST_READ].split())
    opening = [part.strip() for part in _SENTENCE.split(text[:_MOST_OPENING].strip())][:_OPENING]
    return any(_ADDRESSES.search(part) and " ".join(part.split()) not in known for part in opening)


def _without_lines_of(instructions: str, text: str) -> str:
    """The text without the lines that stand in the instructions word for word."""
    known = {_plain(line) for line in instructions.splitlines() if len(line) > 20}
    lines = text.splitlines()
    kept = [line for line in lines if _plain(line) not in known]
    return text if len(kept) == len(lines) else "\n".join(kept)


def _plain(line: str) -> str:
    return " ".join(_WORD.findall(line)).lower()


def _is_empty(text: str, source: str) -> bool:
    return len(telling_words(text)) < _FEW and exact_values(text).isdisjoint(exact_values(source))


def _is_invented(text: str, source: str) -> bool:
    ids = list(dict.fromkeys(found.lower() for found in _ID.findall(text[:_MOST_READ])))[:_MOST_VALUES]
    if len(ids) < _MANY_VALUES:
        return False
    known = source.lower()
    return sum(found in known for found in ids) < _LEAST_KNOWN * len(ids)


def _is_off_topic(text: str, source: str) -> bool:
    words = telling_words(text)
    shared = words & telling_words(source)
    if len(shared) > max(1, _LEAST_SHARE * len(words)):
        return False
    return exact_values(text).isdisjoint(exact_values(source))
