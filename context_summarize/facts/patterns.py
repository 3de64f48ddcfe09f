"""Patterns for exact values in a text: ids, paths, URLs, amounts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from context_summarize.facts.fact import FactKind
from context_summarize.transcript.calls import may_be_call

Found = tuple[FactKind, str]

MAX_TOKEN = 300
"""Characters. Longer runs without a space (base64, minified code) are not worth their tokens."""
MAX_URL = 500

URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s\"'<>`|\\^{}\[\]]+")
TOKEN = re.compile(r"[\w#@~/\\.:+-]+")
_INTERESTING = re.compile(r"[\d/\\]|\.[A-Za-z]")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.S)

_CURRENCY = r"(?:USD|EUR|GBP|CHF|JPY|CAD|AUD|CNY|INR|SEK|NOK|DKK|PLN|[Dd]ollars?|[Ee]uros?)"
_AMOUNT = re.compile(
    r"[-\u2212]?[$€£¥]\s?\d[\d,]{0,18}(?<!,)(?:\.\d{1,6})?(?:[kKmMbB](?!\w))?(?![\d}])"
    r"|(?<![\w.,])[-\u2212]?\d[\d,]{0,18}(?<!,)(?:\.\d{1,6})?(?:\s?%(?![\w(%])|\s?" + _CURRENCY + r"(?!\w))"
)
_JSON_AMOUNT = re.compile(
    r"[\"'](?:[A-Za-z-]{1,20}_){0,3}[A-Za-z]{0,16}(?:price|amount|total|cost)(?:_(?:usd|eur|gbp))?[\"']\s{0,4}:\s{0,4}"
    r"[\"']?(-?\d{1,15}(?:\.\d{1,6})?)(?![\d.]\d|[A-Za-z_-])",
    re.I,
)
_QUOTED_CODE = re.compile(
    r"\"([A-Z]{6})\"(?!\s{0,4}:)"
    r"|(?i:reservation)(?:\s(?i:id|code|number|is)){0,3}[\s:#*`'\"]{1,6}([A-Z]{6})(?!\w)"
)
_NO_CODE = frozenset(
    ("ACTIVE", "FAILED", "PASSED", "STRING", "NUMBER", "OBJECT", "CANCEL", "CLOSED", "SYSTEM", "UPDATE", "DELETE")
)

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)?")
_IP = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ISSUE = re.compile(r"(?:[\w.-]+/[\w.-]+)?#\d{1,7}")
_SITE = re.compile(r"([^:]+\.[A-Za-z]\w{0,7}):(\d{1,7})(?::.*)?", re.S)
_WORD = re.compile(r"[A-Za-z0-9]++(?:[-_]++[A-Za-z0-9]++)*+")
_HEX = re.compile(r"(?:[0-9a-f]{7,128}|[0-9A-F]{7,128})")
_QUANTITY = re.compile(r"\d+[A-Za-z]{1,2}|\d+(?:-[a-z]+)+|\d+[eE][+-]?\d+|0x[0-9a-fA-F]{1,6}")
"""`11AM`, `500MB`, `24-hour`, `1e-05`: numbers with a unit."""
_UPPER_CODE = re.compile(r"[A-Z0-9]{4,32}")
_NUMBERED = re.compile(r"[A-Za-z]+\d{4,}")
_CODE = re.compile(
    r"(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9]{2,12}|(?=[A-Z-]*\d)[A-Z][A-Z0-9]{1,9}(?:-[A-Z0-9]{1,8}){1,3}|#\d{1,7}"
)
_KEY = re.compile(r"[A-Z][A-Z0-9]{1,9}-\d+")
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{60,}")
"""A line of base64, unless each of its parts is short or in one case."""
TURN = re.compile(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)")
_NO_ID = re.compile(
    r"(?i:sha[-_]?\d{3}|utf[-_]?\d{1,2}|iso[-_]?8\d{3}(?:-\d{1,2})?|base64|x86[-_]64|rfc3339|ipv[46]|covid-?19|latin-1)"
)

_KNOWN_EXTENSION = re.compile(
    r"[\w@-][\w.@+-]*\.(?:py|pyi|ipynb|js|jsx|mjs|cjs|ts|tsx|vue|svelte|html?|css|scss|json|jsonl|ya?ml|toml|ini|cfg|conf|"
    r"env|lock|md|rst|txt|csv|tsv|xml|sql|sqlite|db|sh|bash|zsh|ps1|bat|c|cc|cpp|h|hpp|go|rs|rb|php|java|kt|swift|cs|"
    r"scala|lua|pl|ex|exs|erl|hs|dart|proto|tf|gradle|diff|patch|log|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|webp|mp[34]|"
    r"wav|zip|tar|gz|tgz|xz|whl|parquet|pem|key|crt|so|dll|exe)"
)
_EXTENSION = re.compile(r"[^.].*\.[A-Za-z][A-Za-z0-9]{0,7}", re.S)
_MARK = re.compile(r"^(?:[ab]/(?=[^/]+/)|[A-Za-z_]{2,24}:(?=[^:]))")
"""A prefix of a value: `a/` in a diff, `file:` as a label."""
_PART = re.compile(r"[\w.@+~-]+")
_WINDOWS = re.compile(
    r"(?:[A-Za-z]:[\\/]{1,2}|\\\\[\w.-]{2,}\\{1,2})[\w.@+~-]+(?:[\\/]{1,2}[\w.@+~-]+)*[\\/]?|\w[\w.-]*(?:\\{1,2}\w[\w.-]*)+"
)
_FOLDER = re.compile(
    r"src|libs?|apps?|tests?|docs?|bin|etc|usr|var|opt|home|tmp|packages|node_modules|scripts|examples|tools|cmd|internal|"
    r"pkg|config|assets|public|static|templates|vendor|build|dist|include|\.github|\.vscode"
)
_NO_FILE = re.compile(
    r"(?i:(?:node|vue|next|react|express|three|nuxt|d3)\.js|(?:console|math|np)\.log|process\.env|(?:response|resp|res|"
    r"request|req)\.json)"
)


def unescape(text: str) -> str:
    """The text without JSON escapes: `a\\nb` becomes two words, `C:\\\\x` a path; control characters spaces."""

    def plain(match: re.Match[str]) -> str:
        mark = match[0][1]
        if len(match[0]) == 6:
            char = chr(int(match[0][2:], 16))
            return char if char.isprintable() else " "
        return " " if mark in "nrtbfu" else mark

    return _ESCAPE.sub(plain, text)


def readable(text: str) -> str:
    """The text of a row without JSON escapes in its JSON parts: a whole result, or the line of a call."""
    if "\\" not in text:
        return text
    if text.lstrip()[:1] in ("{", "["):
        return unescape(text)
    return "\n".join(unescape(line) if may_be_call(line) else line for line in text.split("\n"))


def codes_in(text: str) -> set[str]:
    """Six capital letters in the place of a reservation code: a JSON value, or after "reservation"."""
    return {code for pair in _QUOTED_CODE.findall(text) for code in pair if code} - _NO_CODE


def is_code(identifier: str) -> bool:
    """True for `4WQ150`, `HAT136`, `PROJ-7`, `INV-2031-B7`, `#12`, `7f3a2b9c`; not for dates or user names."""
    return _CODE.fullmatch(identifier) is not None


def is_date(value: str) -> bool:
    """True for `2024-05-20`, with or without a time."""
    return _DATE.fullmatch(value) is not None


def amounts_in(text: str) -> Iterator[str]:
    """Money and percentages as written, and the values of JSON keys for a price, amount, total or cost."""
    for match in _AMOUNT.finditer(text):
        yield match[0]
    for match in _JSON_AMOUNT.finditer(text):
        yield match[1]


def holds(text: str, value: str) -> bool:
    """True if `text` holds `value` as a whole, not as part of a longer word or number."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        before, after = text[max(at - 1, 0) : at], text[end : end + 2]
        joined = value[-1:].isdigit() and after[:1] in (".", ",") and after[1:].isdigit()
        if not joined and not (_wordy(before) and _wordy(value[:1])) and not (_wordy(after[:1]) and _wordy(value[-1:])):
            return True
        at = text.find(value, at + 1)
    return False


def _wordy(char: str) -> bool:
    return char.isalnum() or char == "_"


def one_line(text: str) -> str:
    """The text with every run of spaces and line ends as one space."""
    return " ".join(text.split())


def shortened(text: str, length: int) -> str:
    """The text, or its start and a mark, within `length` characters."""
    return text if len(text) <= length else text[: length - 4] + " […]"


def trimmed_url(url: str) -> str:
    """A URL without the punctuation of the sentence around it; "" if it is too long to keep."""
    url = url.rstrip(".,;:!?*")
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(".,;:!?*")
    return url if len(url) <= MAX_URL else ""


def classify(token: str, codes: frozenset[str] = frozenset()) -> tuple[Found, ...]:
    """The paths and ids in one run of token characters; `codes` are words known to be ids (`codes_in`)."""
    token = _MARK.sub("", token.lstrip(":+-").rstrip(".:+-\\~@#"))
    if token in codes:
        return (("id", token),)
    if len(token) > MAX_TOKEN or not _INTERESTING.search(token):
        return ()
    if _is_whole_id(token):
        return (("id", token),)
    if _BLOB.fullmatch(token) and any(_is_mixed(part) for part in re.split("[+/_-]", token)):
        return ()
    if "\\" in token and _is_windows_path(token):
        return (("path", token),)
    if (site := _SITE.fullmatch(token)) and _is_path(site[1]):
        return (("id", f"{site[1]}:{site[2]}"), ("path", site[1]))
    if _is_path(token):
        return (("path", token),)
    return tuple(("id", word) for word in re.split(r"[#@~/\\.:+]+", token) if _is_id(word))


def _is_whole_id(token: str) -> bool:
    return any(shape.fullmatch(token) for shape in (_DATE, _UUID, _IP, _EMAIL, _ISSUE))


def _is_mixed(part: str) -> bool:
    return len(part) >= 16 and not part.isdigit() and part not in (part.lower(), part.upper())


def _is_windows_path(token: str) -> bool:
    if not _WINDOWS.fullmatch(token):
        return False
    last = token.rstrip("\\").rpartition("\\")[2]
    return token[1:2] == ":" or token.startswith("\\\\") or _KNOWN_EXTENSION.fullmatch(last) is not None


def _is_path(token: str) -> bool:
    parts = [part for part in token.split("/") if part not in ("", ".", "..", "~")]
    if not parts or "//" in token or not all(_PART.fullmatch(part) for part in parts):
        return False
    if "/" not in token:
        return _KNOWN_EXTENSION.fullmatch(token) is not None and _NO_FILE.fullmatch(token) is None
    if all(part.replace("-", "").isdigit() for part in parts):
        return False
    if _EXTENSION.fullmatch(parts[-1]):
        return True
    if token.startswith(("/", "./", "../", "~/")):
        return len(parts) > 1 or parts[0].startswith(".")
    telling = any(not part.isalpha() for part in parts)
    return len(parts) > 1 and (_FOLDER.fullmatch(parts[0]) is not None or (len(parts) > 2 and telling))


def _is_id(word: str) -> bool:
    word = word.strip("_-")
    digits = sum(char.isdigit() for char in word)
    if not digits or not _WORD.fullmatch(word) or _QUANTITY.fullmatch(word) or _NO_ID.fullmatch(word):
        return False
    if _DATE.fullmatch(word):
        return True
    parts = re.split("[-_]+", word)
    if digits == sum(map(len, parts)):
        return digits >= (9 if len(parts) == 1 else 10)
    if len(parts) > 1:
        return digits > 1 or len(parts) > 2 or _KEY.fullmatch(word) is not None
    shaped = _HEX.fullmatch(word) or _UPPER_CODE.fullmatch(word) or _NUMBERED.fullmatch(word)
    return shaped is not None or (len(word) >= 8 and len(TURN.findall(word)) >= 3)
