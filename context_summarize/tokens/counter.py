"""Counts text in `o200k_base` tokens, by tiktoken on bundled ranks."""

from __future__ import annotations

import asyncio
import base64
import functools
import lzma
import re
import threading
from collections.abc import Iterator
from importlib import resources

import tiktoken

from context_summarize.errors import ContextSummarizeError

RANKS_FILE = "o200k_base.tiktoken.xz"

EXACT_CHARS = 4_000_000
"""Longest text that is counted whole. No window has room for a longer one, so an estimate is enough for it."""
RUN_CHARS = 512
"""Longest piece of a run without a break that is counted at once: at most 2 kB in UTF-8."""

_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Up to tiktoken 0.12 the time to merge one regex match is quadratic (100 kB of one letter: 3 s). In every version a
# megabyte of blanks overflows the stack of the regex engine, which raises a BaseException. Python treats \x1c-\x1f as
# blanks, tiktoken's regex does not. The look-behinds keep the search linear: a match begins only where a run begins.
_LONG_RUN = re.compile(rf"(?<![\S\x1c-\x1f])[\S\x1c-\x1f]{{{RUN_CHARS},}}|(?<!\s)\s{{{RUN_CHARS},}}")
_load_lock = threading.Lock()


@functools.lru_cache(maxsize=1)
def _build_encoding() -> tiktoken.Encoding:
    """Returns `o200k_base` without special tokens. It takes some 90 MB, so a process has only one."""
    try:
        packed = (resources.files("context_summarize.tokens") / "data" / RANKS_FILE).read_bytes()
        table = lzma.decompress(packed)  # which checks the file's own checksum
    except (OSError, lzma.LZMAError) as error:
        raise ContextSummarizeError(f"data/{RANKS_FILE} cannot be read ({error}); reinstall the package") from error
    lines = (line.split() for line in table.splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    return tiktoken.Encoding("o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})


def _shared_encoding() -> tiktoken.Encoding:
    """Returns the encoding of the process. Without the lock, two threads could build it twice."""
    with _load_lock:
        return _build_encoding()


def _pieces(text: str) -> Iterator[str]:
    """Yields the text in pieces that the tokenizer reads quickly; together they are the whole text."""
    start = 0
    for run in _LONG_RUN.finditer(text):
        yield text[start : run.start()]
        for first in range(run.start(), run.end(), RUN_CHARS):
            yield text[first : min(first + RUN_CHARS, run.end())]
        start = run.end()
    yield text[start:]


class TokenCounter:
    """Counts text in `o200k_base` tokens. The first count loads the encoding, once per process."""

    def __init__(self) -> None:
        self._encoding: tiktoken.Encoding | None = None

    async def load(self) -> None:
        """Loads the encoding off the event loop; concurrent callers share the work, and one may be cancelled.

        Raises: ContextSummarizeError when the bundled ranks are missing or damaged; a later call tries again.
        """
        if self._encoding is None:
            # No shared task: it would belong to one event loop, and be cancelled with its first caller.
            self._encoding = await asyncio.to_thread(_shared_encoding)

    def count(self, text: str) -> int:
        """Returns the tokens of the text; special tokens count as plain text. Loads the encoding if necessary.

        Text without blanks is counted in pieces, so it counts about 0.1 % too large. The size of a text of more than
        four million characters is estimated from a hundred samples. Lone surrogates count as replacement characters.
        Raises: as `load`.
        """
        if len(text) <= EXACT_CHARS:
            return self._count(text)
        size = EXACT_CHARS // 100
        starts = (at * (len(text) - size) // 99 for at in range(100))
        return sum(self._count(text[start : start + size]) for start in starts) * len(text) // EXACT_CHARS

    def _count(self, text: str) -> int:
        encoding = self._encoding = self._encoding or _shared_encoding()
        return sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(text))
