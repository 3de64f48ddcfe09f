"""What a directive is about, which later one replaces it, and which later sentence takes it back. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_NOUN = (
    r"(?:rules?|instructions?|restrictions?|constraints?|preferences?|directives?|requirements?|ban|thing|stuff|bit)"
)
_FORGET = r"(?:forget|ignore|disregard|scrap|scratch|never ?mind|withdraw|take back|lift|revoke|overrule)"
_BACKS = (
    # English
    rf"\b{_FORGET} (?:about )?(?:what|everything|anything|all) (?:that )?i(?:'ve| have)? (?:said|told you|asked|"
    rf"wrote|requested)",
    rf"\b{_FORGET} (?:about )?(?:that|my|those)(?: [\w'-]{{1,24}}){{0,4}} (?!thing\b|stuff\b|bit\b){_NOUN}\b",
    rf"\b{_FORGET} (?:about )?the(?: [\w'.-]{{1,24}}){{0,4}} {_NOUN} (?:about|on\b|that i|i (?:gave|set|said|"
    rf"mentioned|made|told)|from before)",
    rf"\b{_FORGET} (?:about )?the (?:earlier|previous|last|first|old)(?: [\w'-]{{1,24}}){{0,3}} (?!thing\b|"
    rf"bit\b){_NOUN}\b",
    r"\b(?:drop|cancel|undo|remove) (?:that|my|those) (?:[\w'-]{1,24} ){0,3}(?:rules?|instructions?|restrictions?|"
    r"preferences?)\b",
    r"\bi (?:hereby )?(?:take (?:it |that |this )?back\b|withdraw (?:my|the|that)\b)",
    r"\byou(?:'re| are)? (?:can|may|could|allowed to|free to|welcome to)\b[^.]{1,120}\b(?:again|after all)\b",
    r"\byou(?:'re| are)? (?:may|allowed to|free to)\b[^.]{1,120}\b(?:now|from now on)\b",
    r"\b(?:it's|it is|that's|is|are) (?:fine|ok|okay|all ?right|allowed|permitted|"
    r"welcome) (?:to [^.]{1,100} )?(?:again|now|after all)\b",
    r"\b(?:is|are) (?:back|allowed) again\b",
    r"\b(?:don't|do not|no longer) (?:need|have) to\b[^.]{1,120}\b(?:any ?more|any longer|now)\b",
    r"\byou no longer (?:need|have) to\b|\bno need to\b[^.]{1,120}\b(?:any ?more|any longer|from now on)\b",
    rf"\b{_NOUN}\b[^.]{{0,80}} (?:no longer|(?:doesn't|don't)) (?:apply|applies|hold|holds|count|counts)\b",
    r"\b(?:rule|instruction|restriction|ban|constraint) is (?:off|lifted|gone|withdrawn|over|void|cancell?ed)\b",
    # German, French, Spanish, Portuguese
    r"\bvergiss,? (?:bitte )?(?:was ich|die regel|meine)\b|\bdu (?:darfst|kannst) (?:jetzt |nun )?wieder\b",
    r"\boublie[zs]? (?:ce que j'ai dit|ma|la règle)\b|\b(?:tu peux|vous pouvez) (?:à|de) nouveau\b",
    r"\bolvida (?:lo que (?:te )?dije|la regla|mi)\b|\bpuedes volver a\b",
    r"\besque(?:ce|ça) (?:o que eu disse|a regra|minha)\b|\bpode voltar a\b",
)
_BACK = re.compile("(?i)(?:" + "|".join(_BACKS) + ")")
_RULE_NOUN = re.compile(r"(?i)\b(?:rule|instruction|restriction|constraint|preference|directive|ban)s?\b")
_INSTEAD = re.compile(
    r"(?i)\b(?:instead of|rather than|no longer)\s+(?P<old>[^,.;]{1,80})|\bnot (?P<older>[^,.;]{1,60}) any ?more\b"
)
_CHANGED = re.compile(
    r"(?i)\b(?:actually|on second thoughts?|changed my mind|after all|scratch that|from now on|no longer|any ?more|"
    r"as of now)\b"
)
_NEGATIVE = re.compile(
    r"(?i)^\W*no\b|\b(?:never|do not|don't|no more|stop|avoid|quit|refrain|dislike|hate|cannot|can't|"
    r"(?:should|must|may|are|am|'m)(?:n't| not)|without|under no circumstances)\b"
)
_WORD = re.compile(r"\w[\w./#+-]*\w|\w")
_EMPTY = frozenset([
    "a", "ab", "about", "actually", "again", "ahead", "all", "allow", "allowed", "alright", "also", "always",
    "am", "an", "and", "any", "anymore", "applies", "apply", "are", "as", "at", "avoid", "back", "be", "been",
    "benutzen", "bit", "bitte", "but", "by", "can", "cancel", "circumstances", "could", "count", "counts",
    "current", "d", "darfst", "das", "de", "der", "did", "die", "directive", "disregard", "do", "does", "doing",
    "don", "dont", "drop", "du", "each", "earlier", "either", "el", "ever", "every", "everything", "expect",
    "fine", "first", "for", "forever", "forget", "forward", "free", "from", "further", "generally", "give",
    "go", "going", "had", "has", "hate", "have", "henceforth", "here", "hereby", "hold", "holds", "i", "ich",
    "if", "ignore", "immer", "important", "in", "instead", "instruction", "instructions", "into", "is", "it",
    "its", "jamais", "jetzt", "just", "kannst", "keep", "kein", "keine", "keinen", "kindly", "know", "la",
    "las", "le", "les", "let", "lets", "lift", "like", "ll", "longer", "los", "m", "made", "mais", "make",
    "mas", "matter", "may", "me", "mehr", "mich", "mind", "mir", "more", "must", "my", "más", "ne", "need",
    "never", "nevermind", "nicht", "nie", "niemals", "no", "noch", "not", "now", "nunca", "nutzen", "não", "o",
    "of", "off", "ok", "okay", "old", "olvida", "on", "one", "only", "onwards", "or", "os", "other", "oublie",
    "our", "out", "over", "pas", "peux", "plaît", "please", "pls", "plus", "prefer", "preference", "previous",
    "previously", "puedes", "quit", "rather", "re", "really", "refrain", "remember", "remove", "restriction",
    "rule", "rules", "s", "s'il", "said", "say", "scrap", "scratch", "second", "sempre", "should", "siempre",
    "so", "sofort", "some", "stick", "still", "stop", "stuff", "such", "sure", "t", "take", "talking", "than",
    "that", "the", "their", "them", "then", "there", "these", "they", "thing", "things", "this", "those",
    "thought", "thoughts", "to", "told", "too", "toujours", "tu", "under", "undo", "until", "up", "usar", "use",
    "used", "using", "utiliser", "ve", "vergiss", "verwenden", "very", "volver", "want", "was", "we", "welcome",
    "were", "what", "whatever", "when", "which", "while", "wieder", "will", "with", "withdraw", "would", "you",
    "your",
])  # fmt: skip
_KINDS = {
    **dict.fromkeys(
        [
            "english",
            "german",
            "french",
            "spanish",
            "portuguese",
            "italian",
            "dutch",
            "polish",
            "russian",
            "ukrainian",
            "japanese",
            "chinese",
            "mandarin",
            "korean",
            "arabic",
            "hindi",
            "turkish",
            "swedish",
            "danish",
            "norwegian",
            "finnish",
            "greek",
            "czech",
            "hungarian",
            "deutsch",
            "englisch",
            "français",
            "español",
        ],
        "<language>",
    ),
    **dict.fromkeys(
        [
            "short",
            "brief",
            "concise",
            "terse",
            "long",
            "longer",
            "shorter",
            "detailed",
            "verbose",
            "lengthy",
            "briefly",
        ],
        "<length>",
    ),
    **dict.fromkeys(["formal", "informal", "casual"], "<register>"),
    **dict.fromkeys(["metric", "imperial"], "<units>"),
    **dict.fromkeys(["tabs", "spaces", "tab", "space"], "<indent>"),
    **dict.fromkeys(["british", "american"], "<spelling>"),
}
_SAME = {
    **dict.fromkeys(
        ["reply", "respond", "response", "replies", "responses", "answers", "talk", "speak", "converse"], "answer"
    ),
    **dict.fromkeys(["remove", "erase"], "delet"),
    **dict.fromkeys(["emoticons", "emoticon", "emojis"], "emoji"),
}
_VERSION = re.compile(r"v?\d+(?:\.\d+)+")
_MOST = 400
"""Characters of a sentence that are read."""
_COUNTED = re.compile(
    r"(?i)\b\d+ (?:words|sentences|lines|bullets?|paragraphs|characters|columns|pages|points|steps)\b"
)


def is_withdrawal(sentence: str) -> bool:
    """True for a sentence that takes an earlier directive back: "you can use emojis again"."""
    return _BACK.search(sentence[:_MOST].replace("’", "'")) is not None


def is_bare(sentence: str) -> bool:
    """True for a withdrawal that does not say of what: "forget that rule"."""
    return is_withdrawal(sentence) and not _words(sentence)


def in_force(directives: Sequence[str]) -> list[bool]:
    """For each directive, oldest first: whether it still stands after all that follow. Withdrawals stand themselves.

    A later one replaces one that says the same, the opposite, or another choice of one kind ("answer in German", then
    "answer in French"). A withdrawal removes what it names; one that names nothing removes the one before it, and goes.
    """
    stands = [True] * len(directives)
    latest: dict[object, int] = {}
    for at, directive in enumerate(directives):
        withdraws = is_withdrawal(directive)
        if withdraws:
            _take_back(directives, stands, at)
        elif (old := _replaced(directive)) is not None:
            _drop_positive(directives, stands, at, old)
        for key in _keys(directive, withdraws):
            if (earlier := latest.get(key)) is not None:
                stands[earlier] = False
            latest[key] = at
    return stands


def _take_back(directives: Sequence[str], stands: list[bool], at: int) -> None:
    named = frozenset(_words(directives[at].partition(";")[0]))
    if not named:
        before = (index for index in range(at - 1, -1, -1) if stands[index] and not is_withdrawal(directives[index]))
        if _RULE_NOUN.search(directives[at]) and (target := next(before, None)) is not None:
            stands[target] = stands[at] = False
        return
    for index in range(at):
        if stands[index] and not is_withdrawal(directives[index]):
            about = frozenset(_words(directives[index]))
            if about and (named <= about or (about < named and len(named) - len(about) == 1)):
                stands[index] = False


def _replaced(directive: str) -> frozenset[str] | None:
    """The words of what a directive says shall no longer be: "use tabs instead of spaces from now on"."""
    found = _INSTEAD.search(directive)
    if found is None or not _CHANGED.search(directive):
        return None
    return frozenset(_words(found["old"] or found["older"])) or None


def _drop_positive(directives: Sequence[str], stands: list[bool], at: int, old: frozenset[str]) -> None:
    for index in range(at):
        if stands[index] and old <= frozenset(_words(directives[index])) and not _NEGATIVE.search(directives[index]):
            stands[index] = False


def _keys(directive: str, withdraws: bool) -> tuple[object, ...]:
    """Equal for directives of which the later replaces the earlier."""
    words = _words(directive)
    if not words:
        return (" ".join(_WORD.findall(directive.casefold())) or directive,)
    if withdraws or _NEGATIVE.search(directive):
        return (words,)
    kinds = tuple(_kind(word) for word in words)
    counted = bool(_COUNTED.search(directive))
    plain = tuple("<number>" if counted and word.isdigit() else word for word in kinds)
    # Two choices of one kind in one sentence, save tabs and spaces, are not a choice.
    if plain == words or any(plain.count(kind) > 1 for kind in plain if kind.startswith("<") and kind != "<indent>"):
        return (words,)
    return (words, (True, tuple(dict.fromkeys(plain))))


@lru_cache(maxsize=2048)
def _words(text: str) -> tuple[str, ...]:
    """The telling words of a directive in their order, without endings."""
    plain = text[:_MOST].replace("’", "'").replace("n't", " not").casefold()
    found = (word.strip("./-") for word in _WORD.findall(re.sub(r"'(?:s|d|ll|re|ve|m)\b", "", plain)))
    return tuple(_stem(word) for word in found if word and word not in _EMPTY)


def _stem(word: str) -> str:
    if word in _SAME:
        return _SAME[word]
    if word in _KINDS or not word.isalpha():
        return word
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") else word


def _kind(word: str) -> str:
    return _KINDS.get(word) or ("<version>" if _VERSION.fullmatch(word) else word)
