"""Counting lives here: text by tiktoken on bundled ranks, images by their size, and the meter that corrects both."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import lzma
import re
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import tiktoken

from .errors import ContextSummarizeError

RANKS_FILE = "o200k_base.tiktoken.xz"
RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"  # of the unpacked text
PIECE_CHARS = 25_000  # longest piece handed to tiktoken: at most 100 kB in UTF-8
RUN_CHARS = 512  # longest piece of a run without a break: at most 2 kB in UTF-8
THREAD_CHARS = 50_000  # `count_async` leaves longer texts to a thread
# Anthropic's published rule, without its cap on one image's tokens (some 1,600; newer models allow more).
IMAGE_LONG_SIDE = 1568  # pixels; larger images are scaled down to this
PIXELS_PER_TOKEN = 750
UNKNOWN_IMAGE_TOKENS = 1600  # for an image whose size cannot be told

_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Up to tiktoken 0.12 the merging of one regex match is quadratic (100 kB of one letter: 3 s), and in every version a
# megabyte of blanks overflows the regex engine's stack, which surfaces as a BaseException. Python calls \x1c-\x1f
# blank, tiktoken's regex does not. The look-behinds keep the search linear: a run is tried at its start alone.
_LONG_RUN = re.compile(rf"(?<![\S\x1c-\x1f])[\S\x1c-\x1f]{{{RUN_CHARS + 1},}}|(?<!\s)\s{{{RUN_CHARS + 1},}}")
_load_lock = threading.Lock()


def _ranks_text() -> bytes:
    """The unpacked rank table, verified."""
    try:
        text = lzma.decompress((resources.files("context_summarize") / "data" / RANKS_FILE).read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise ContextSummarizeError(f"data/{RANKS_FILE} cannot be read ({error}); reinstall the package") from error
    if (seen := hashlib.sha256(text).hexdigest()) != RANKS_SHA256:
        raise ContextSummarizeError(f"data/{RANKS_FILE} is damaged (sha256 {seen}, not {RANKS_SHA256}); reinstall")
    return text


@functools.lru_cache(maxsize=1)
def _build_encoding() -> tiktoken.Encoding:
    """`o200k_base`, as tiktoken_ext.openai_public has it; some 90 MB, hence one per process."""
    lines = (line.split() for line in _ranks_text().splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    special = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
    return tiktoken.Encoding("o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens=special)


def _shared_encoding() -> tiktoken.Encoding:
    """The process's encoding. lru_cache alone would build it twice when two threads come at once."""
    with _load_lock:
        return _build_encoding()


def _cut(text: str) -> Iterator[str]:
    """Pieces of at most `PIECE_CHARS`, cut where the tokenizer cuts too: after a newline, else before a blank."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = start + PIECE_CHARS
        newline, blank = (text.rfind(mark, end - RUN_CHARS, end) for mark in "\n ")
        stop = newline + 1 if newline >= 0 else blank if blank >= 0 else end
        yield text[start:stop]
        start = stop
    yield text[start:]


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that the tokenizer takes quickly; together they are the text."""
    if len(text) <= RUN_CHARS:
        yield text
        return
    start = 0
    for run in _LONG_RUN.finditer(text):
        yield from _cut(text[start : run.start()])
        for first in range(run.start(), run.end(), RUN_CHARS):
            yield text[first : min(first + RUN_CHARS, run.end())]
        start = run.end()
    yield from _cut(text[start:])


class TokenCounter:
    """Counts text in `o200k_base` tokens. Making one costs nothing; the encoding is loaded once per process."""

    def __init__(self) -> None:
        self._encoding: tiktoken.Encoding | None = None

    @property
    def loaded(self) -> bool:
        """True when `count` will not have to load first."""
        return self._encoding is not None

    async def load(self) -> None:
        """Load the encoding off the event loop; concurrent callers share the work, and one may be cancelled.

        Raises: ContextSummarizeError when the bundled ranks are missing or damaged; a later call tries again.
        """
        if self._encoding is None:
            # No shared task: it would belong to one event loop, and to the caller that is cancelled.
            self._encoding = await asyncio.to_thread(_shared_encoding)

    def count(self, text: str) -> int:
        """Tokens of the text, special tokens read as plain text; blocks for the load if there was none.

        Counted in pieces: text without blanks comes out some 0.1 % too large. Lone surrogates count as replacement
        characters. Raises: as `load`.
        """
        encoding = self._encoding = self._encoding or _shared_encoding()
        return sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(text))

    async def count_async(self, text: str) -> int:
        """As `count`; loading, and texts of more than `THREAD_CHARS`, are left to a thread."""
        await self.load()
        if len(text) > THREAD_CHARS:
            return await asyncio.to_thread(self.count, text)
        return self.count(text)


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """What an image block tells of its image; None where it does not."""

    media_type: str | None = None
    width: int | None = None  # pixels; known together with height, or neither is
    height: int | None = None
    size_bytes: int | None = None  # from the length of the base64


def image_tokens(block: Mapping[str, Any]) -> int:
    """Tokens of an image block by Anthropic's published rule; `UNKNOWN_IMAGE_TOKENS` when its size is not known."""
    info = image_info(block)
    if info.width is None or info.height is None:
        return UNKNOWN_IMAGE_TOKENS
    long_side = max(info.width, info.height)
    shown = min(long_side, IMAGE_LONG_SIDE)
    return -(-info.width * info.height * shown**2 // (PIXELS_PER_TOKEN * long_side**2))


def image_info(block: Mapping[str, Any]) -> ImageInfo:
    """Type and size of an `image` (base64 or url source) or `image_url` block; never raises, never fetches."""
    declared, data = _image_data(block)
    if data is None:
        return ImageInfo(declared)
    size_bytes = len(data) * 3 // 4 - data[-2:].count("=")
    found = _measure(data)
    return ImageInfo(declared, None, None, size_bytes) if found is None else ImageInfo(*found, size_bytes)


def _image_data(block: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Declared media type and base64 text of a block."""
    source = block.get("source")
    holder = source if isinstance(source, Mapping) else block
    kind, data, url = holder.get("media_type"), holder.get("data"), holder.get("url", holder.get("image_url"))
    kind = kind if isinstance(kind, str) else None
    if isinstance(data, str):
        return kind, data.strip()
    url = url.get("url") if isinstance(url, Mapping) else url
    if not isinstance(url, str) or url[:5].lower() != "data:":
        return kind, None
    head, _, body = url[5:].partition(",")
    declared, *parameters = head.split(";")
    return declared or None, body.strip() if "base64" in parameters else None


def _measure(data: str) -> tuple[str, int, int] | None:
    """Media type, width, height from as much of the base64 as is needed: 48 bytes, more for a jpeg only."""
    for chars in (64, 4096, 262_144, len(data)):
        text = "".join(data[:chars].split())
        try:
            head = base64.b64decode(text[: len(text) // 4 * 4], validate=True)
        except ValueError:
            return None
        is_jpeg = head.startswith(b"\xff\xd8")
        found = _jpeg(head) if is_jpeg else _header(head)
        if found or not is_jpeg:
            return found if found and found[1] * found[2] > 0 else None
    return None


def _header(head: bytes) -> tuple[str, int, int] | None:
    """gif, png, and the three kinds of webp (RFC 9649): lossy `VP8 `, lossless `VP8L`, extended `VP8X`."""
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        return "image/gif", *struct.unpack("<HH", head[6:10])
    if len(head) < 30:
        return None
    if head[:8] == b"\x89PNG\r\n\x1a\n" and head[12:16] == b"IHDR":
        return "image/png", *struct.unpack(">II", head[16:24])
    kind = head[8:16] if head[:4] == b"RIFF" else b""
    if kind == b"WEBPVP8X":
        return "image/webp", int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"WEBPVP8L" and head[20] == 0x2F:
        bits = int.from_bytes(head[21:25], "little")
        return "image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"WEBPVP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", head[26:30])
        return "image/webp", width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(head: bytes) -> tuple[str, int, int] | None:
    """Walks the segments up to the frame header (SOF0 to SOF15; C4, C8 and CC in that range are none)."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF and (marker := head[at + 1]) != 0xDA:
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return "image/jpeg", *reversed(struct.unpack(">HH", head[at + 5 : at + 9]))
        at += 1 if marker == 0xFF else 2 + int.from_bytes(head[at + 2 : at + 4], "big")  # a second FF is filling
    return None


def _clamp(ratio: float) -> float:
    return min(max(ratio, 0.7), 1.6)


def _spread(seen: list[tuple[int, int]]) -> bool:
    """True when the estimates differ by more than 20 %: enough to tell the ratio from the constant."""
    return max(e for e, _ in seen) > 1.2 * min(e for e, _ in seen)


def _fit(seen: list[tuple[int, int]], ratio: float) -> tuple[float, float]:
    """Ratio and constant of the line through the observations; while they are too alike, the newest one's residual."""
    if _spread(seen):
        mean, mean_actual = sum(e for e, _ in seen) / len(seen), sum(a for _, a in seen) / len(seen)
        ratio = _clamp(sum((e - mean) * (a - mean_actual) for e, a in seen) / sum((e - mean) ** 2 for e, _ in seen))
        constant = mean_actual - ratio * mean
        through_origin = sum(e * a for e, a in seen) / sum(e * e for e, _ in seen)
    else:
        estimate, actual = seen[-1]
        constant = actual - ratio * estimate
        through_origin = actual / max(estimate, 1)
    return (ratio, constant) if constant >= 0 else (_clamp(through_origin), 0.0)


def _misses(ratio: float, constant: float, new: tuple[int, int]) -> bool:
    """True when the observation is off by more than a quarter of what the fit predicts."""
    predicted = ratio * new[0] + constant
    return abs(new[1] - predicted) > 0.25 * predicted


class Meter:
    """Corrects estimates with the provider's figures: a ratio for its tokenizer, a constant for tools and wrapping."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: `correct` changes nothing until the next observation."""
        self._ratio, self._constant = 1.0, 0.0
        self._seen: list[tuple[int, int]] = []
        self._served: int | None = None

    def served(self, estimate: int) -> None:
        """A view of that many estimated tokens was handed out; a later one replaces it."""
        self._served = estimate

    def observe(self, usage: Mapping[str, Any]) -> bool:
        """Take the usage of an `llm:response`; True when it was taken for the served view's.

        Only the first plausible one after a served view is: 0.6 * estimate … 1.8 * estimate + 100,000 (tools) tokens;
        less is a small helper's call. Cache reads are not added, since in some hosts `input_tokens` holds them.
        """
        figures = (usage.get("input_tokens"), usage.get("cache_write_tokens"))
        actual = sum(figure for figure in figures if type(figure) is int and figure > 0)
        if (estimate := self._served) is None or not max(0.6 * estimate, 1) <= actual <= 1.8 * estimate + 100_000:
            return False
        self._served = None
        self._learn((estimate, actual))
        return True

    def _learn(self, new: tuple[int, int]) -> None:
        seen = [*self._seen, new][-8:]
        fit = _fit(seen, self._ratio)
        # Far off means that the model was swapped. But before there was a line, the ratio was a guess: then a first
        # observation of another size may be far off too, and it is what gives the line.
        gives_line = self._seen and not _spread(self._seen) and _spread(seen) and not _misses(*fit, new)
        if self._seen and _misses(self._ratio, self._constant, new) and not gives_line:
            seen, fit = [new], _fit([new], self._ratio)
        self._seen, (self._ratio, self._constant) = seen, fit

    def correct(self, estimate: int) -> int:
        """What the provider will most likely count for that estimate (tokens)."""
        return round(self._ratio * estimate + self._constant)

    def invert(self, tokens: int) -> int:
        """The largest estimate whose corrected size is at most `tokens`; 0 when there is none."""
        estimate = max(0, int((tokens - self._constant) / self._ratio) + 2)
        while estimate > 0 and self.correct(estimate) > tokens:
            estimate -= 1
        return estimate
