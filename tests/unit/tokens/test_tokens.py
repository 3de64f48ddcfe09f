"""Counting text and images, and the meter that the provider's figures correct."""

from __future__ import annotations

import asyncio
import base64
import lzma
import re
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import tiktoken_ext.openai_public  # type: ignore[import-untyped]

from context_summarize.errors import ContextSummarizeError
from context_summarize.tokens import counter as tokens
from context_summarize.tokens import images
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.images import image_size, image_tokens


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    made = TokenCounter()
    made.count("")
    return made


@pytest.fixture
def unloaded() -> Iterator[None]:
    """The process as it is before anything was counted; what the test leaves behind is dropped."""
    tokens._build_encoding.cache_clear()
    yield
    tokens._build_encoding.cache_clear()


class TestLoading:
    def test_making_a_counter_loads_nothing(self, unloaded: None) -> None:
        """Construction is free; the first count loads."""
        counter = TokenCounter()
        assert not counter.loaded
        assert tokens._build_encoding.cache_info().currsize == 0
        assert counter.count("hello world") == 2
        assert counter.loaded

    def test_the_encoding_is_tiktokens_own(self, counter: TokenCounter, monkeypatch: pytest.MonkeyPatch) -> None:
        """Pattern, special tokens and number of ranks are those of tiktoken_ext.openai_public.o200k_base."""
        monkeypatch.setattr(tiktoken_ext.openai_public, "load_tiktoken_bpe", lambda *_, **__: {})
        theirs: dict[str, Any] = tiktoken_ext.openai_public.o200k_base()
        encoding = counter._encoding
        assert encoding is not None
        assert encoding.name == theirs["name"]
        assert encoding._pat_str == theirs["pat_str"]
        assert encoding._special_tokens == theirs["special_tokens"]
        assert encoding.n_vocab == 200_019

    def test_counters_of_one_process_share_the_encoding(self, counter: TokenCounter) -> None:
        """90 MB are held once."""
        other = TokenCounter()
        other.count("x")
        assert other._encoding is counter._encoding

    @pytest.mark.asyncio
    async def test_a_cancelled_load_does_not_break_the_others(
        self, unloaded: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Concurrent callers unpack once; cancelling one leaves the work to the rest."""
        started, go, calls = threading.Event(), threading.Event(), []
        unpack = tokens._ranks_text

        def gated() -> bytes:
            calls.append(1)
            started.set()
            assert go.wait(30)
            return unpack()

        monkeypatch.setattr(tokens, "_ranks_text", gated)
        counter = TokenCounter()
        first, second = asyncio.create_task(counter.load()), asyncio.create_task(counter.load())
        assert await asyncio.to_thread(started.wait, 30)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert not counter.loaded
        go.set()
        await second
        assert counter.loaded
        await counter.load()
        assert calls == [1]

    def test_damaged_ranks_are_named_and_tried_again(self, unloaded: None, monkeypatch: pytest.MonkeyPatch) -> None:
        """A wrong checksum is a clear error, and a failure is not remembered."""
        counter = TokenCounter()
        with monkeypatch.context() as patch:
            patch.setattr(tokens, "RANKS_SHA256", "0" * 64)
            with pytest.raises(ContextSummarizeError, match=r"o200k_base\.tiktoken\.xz is damaged.*reinstall"):
                counter.count("x")
        assert not counter.loaded
        assert counter.count("x") == 1

    @pytest.mark.parametrize("what", ["missing", "no xz"])
    def test_unreadable_ranks_are_named(self, what: str, unloaded: None, monkeypatch: pytest.MonkeyPatch) -> None:
        """A missing file and one that is no xz give the same clear error."""
        if what == "missing":
            monkeypatch.setattr(tokens, "RANKS_FILE", "none.xz")
        else:

            def fail(_: bytes) -> bytes:
                raise lzma.LZMAError("not xz")

            monkeypatch.setattr(lzma, "decompress", fail)
        with pytest.raises(ContextSummarizeError, match="cannot be read"):
            TokenCounter().count("x")


class TestCounting:
    def test_ordinary_text_counts_as_tiktoken_counts_it(self, counter: TokenCounter) -> None:
        """Short text is one piece: exactly tiktoken's figure, special tokens read as plain text."""
        assert counter.count("") == 0
        assert counter.count("tiktoken is great!") == 6
        assert counter.count("<|endoftext|>") > 1

    @pytest.mark.parametrize("text", ["some words of a line\n" * 4_000, "some words " * 8_000, "e5,2;" * 20_000])
    def test_a_long_text_counts_as_the_whole_would(self, text: str, counter: TokenCounter) -> None:
        """Pieces add up to within half a percent of the uncut text, with newlines, blanks or neither to cut at."""
        assert counter._encoding is not None
        whole = len(counter._encoding.encode_ordinary(text))
        assert counter.count(text) == pytest.approx(whole, rel=0.005)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "short",
            "a" * 512,
            "a" * 513,
            "x " + " " * 5_000 + "y" * 5_000 + "\n\nend",
            "line\n" * 20_000,
            "word " * 20_000,
            "tab\t" * 20_000,
            "a\u0301\x1c" * 20_000,
        ],
    )
    def test_pieces_are_small_and_together_are_the_text(self, text: str) -> None:
        """No piece is over 100 kB, none without a break over 2 kB, and nothing is lost."""
        pieces = list(tokens._pieces(text))
        assert "".join(pieces) == text
        assert all(len(piece.encode()) <= 100_000 for piece in pieces)
        runs = [run for piece in pieces for run in re.findall(r"[\S\x1c-\x1f]+|\s+", piece)]
        assert all(len(run) <= 512 for run in runs)

    @pytest.mark.parametrize(("text", "expected"), [("a" * 1_000_000, 125_000), (" " * 1_000_000, 7_813)])
    def test_a_megabyte_of_one_character_counts(self, text: str, expected: int, counter: TokenCounter) -> None:
        """tiktoken alone overflows its stack on the blanks, and older versions take minutes for the letters."""
        assert counter.count(text) == expected

    def test_lone_surrogates_count(self, counter: TokenCounter) -> None:
        """Half a character, as a cut json string leaves it, is no error."""
        assert counter.count("before \ud83d after") >= 3
        assert counter.count("\udc00" * 2_000) > 0


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x06\0\0\0" + b"\0" * 4


def gif(width: int, height: int, version: bytes = b"GIF89a") -> bytes:
    return version + struct.pack("<HH", width, height) + b"\0\0\0"


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + struct.pack("<I", len(body)) + body + b"\0" * 10


def vp8(width: int, height: int, start: bytes = b"\x9d\x01\x2a") -> bytes:
    # The two highest bits of each figure are a scaling hint.
    return webp(b"VP8 ", b"\0\0\0" + start + struct.pack("<HH", width | 0x4000, height | 0x8000))


def vp8l(width: int, height: int, signature: int = 0x2F) -> bytes:
    return webp(b"VP8L", bytes([signature]) + struct.pack("<I", (width - 1) | (height - 1) << 14 | 1 << 28))


def vp8x(width: int, height: int) -> bytes:
    return webp(b"VP8X", b"\0" * 4 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


def jpeg(width: int, height: int, *before: bytes, marker: int = 0xC0) -> bytes:
    frame = bytes([0xFF, marker]) + struct.pack(">HBHH", 17, 8, height, width) + b"\x03" + b"\0" * 9
    return b"\xff\xd8" + b"".join(before) + frame


def segment(marker: int, size: int) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", size + 2) + b"\0" * size


def block(data: bytes | str) -> dict[str, Any]:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/wrong", "data": text}}


READABLE = [
    png(640, 480),
    gif(640, 480),
    gif(640, 480, b"GIF87a"),
    vp8(640, 480),
    vp8l(640, 480),
    vp8x(640, 480),
    jpeg(640, 480),
    jpeg(640, 480, segment(0xE0, 14), segment(0xC4, 30), b"\xff", marker=0xC2),
    jpeg(640, 480, *[segment(0xE1, 60_000)] * 8),
]

UNREADABLE = [
    b"",
    b"no image at all, but long enough for every header",
    png(640, 480)[:22],
    png(0, 480),
    png(640, 480).replace(b"IHDR", b"IDAT"),
    gif(640, 0),
    gif(640, 480)[:9],
    vp8(640, 480, start=b"abc"),
    vp8l(640, 480, signature=0),
    webp(b"ALPH", b"\0" * 20),
    jpeg(0, 480),
    jpeg(640, 480)[:8],
    jpeg(640, 480, b"\0\0"),
    jpeg(640, 480, segment(0xDA, 10)),
    "iVBORw0KGgo*",
    "ünreadable",
]


class TestImages:
    @pytest.mark.parametrize("data", READABLE)
    def test_the_size_is_read_from_the_header(self, data: bytes) -> None:
        """png, gif, jpeg and the three kinds of webp, whatever type the block declares."""
        assert image_size(block(data)) == (640, 480)
        assert image_tokens(block(data)) == 410  # 640 * 480 / 750 = 409.6

    @pytest.mark.parametrize("data", UNREADABLE)
    def test_malformed_data_count_as_unknown(self, data: bytes | str) -> None:
        """Nothing raises."""
        assert image_size(block(data)) is None
        assert image_tokens(block(data)) == images.UNKNOWN_IMAGE_TOKENS == 1600

    @pytest.mark.parametrize(
        ("size", "expected"),
        [((1, 1), 1), ((30, 25), 1), ((1568, 750), 1568), ((3136, 1500), 1568), ((1500, 3136), 1568), ((1, 10**9), 1)],
    )
    def test_large_images_are_scaled_down_first(self, size: tuple[int, int], expected: int) -> None:
        """Pixels / 750, rounded up, with the long side at most 1568; never less than one token."""
        assert image_tokens(block(png(*size))) == expected

    def test_the_length_of_the_base64_does_not_matter(self) -> None:
        """A header in front of a megabyte counts as the header alone."""
        assert image_tokens(block(png(640, 480) + b"\1" * 1_000_000)) == 410

    def test_wrapped_base64_is_read(self) -> None:
        """Some tools break base64 into lines."""
        assert image_tokens(block(base64.encodebytes(jpeg(640, 480, segment(0xE0, 500))).decode())) == 410


def feed(meter: Meter, *observations: tuple[int, int]) -> None:
    for estimate, actual in observations:
        meter.served(estimate)
        assert meter.observe({"input_tokens": actual})


class TestMeter:
    def test_without_observations_nothing_is_corrected(self) -> None:
        """Ratio one, constant nought."""
        meter = Meter()
        assert [meter.correct(0), meter.correct(5_000), meter.invert(5_000)] == [0, 5_000, 5_000]

    def test_only_the_first_plausible_response_after_a_served_view_counts(self) -> None:
        """Helpers' calls before it are passed over, and whatever follows is not ours."""
        meter = Meter()
        assert not meter.observe({"input_tokens": 10_000})
        meter.served(10_000)
        assert not meter.observe({"input_tokens": 5_999})
        assert not meter.observe({"input_tokens": 118_001})
        assert meter.observe({"input_tokens": 12_000})
        assert not meter.observe({"input_tokens": 15_000})
        assert meter.correct(10_000) == 12_000

    @pytest.mark.parametrize("actual", [6_000, 118_000])
    def test_the_bounds_are_plausible(self, actual: int) -> None:
        """0.6 times the estimate, and 1.8 times and 100,000 for tools."""
        feed(Meter(), (10_000, actual))

    def test_cache_writes_are_added_and_cache_reads_are_not(self) -> None:
        """input_tokens holds the cache reads in some hosts."""
        meter = Meter()
        meter.served(10_000)
        assert meter.observe({"input_tokens": 4_000, "cache_write_tokens": 7_000, "cache_read_tokens": 50_000})
        assert meter.correct(10_000) == 11_000

    @pytest.mark.parametrize("odd", [None, -5_000, True, 12_000.0, "12000"])
    def test_odd_figures_count_as_nought(self, odd: object) -> None:
        """A figure that is no whole number, or negative, is as good as missing."""
        meter = Meter()
        meter.served(1)
        assert not meter.observe({"input_tokens": odd})
        assert meter.observe({"input_tokens": odd, "cache_write_tokens": 1})

    @pytest.mark.parametrize("usage", [{}, {"input_tokens": 0}])
    def test_an_empty_usage_is_never_taken(self, usage: dict[str, Any]) -> None:
        """Not even for an empty view."""
        meter = Meter()
        meter.served(0)
        assert not meter.observe(usage)

    def test_small_views_are_taken_too(self) -> None:
        """A short session's request is mostly tools: a constant."""
        meter = Meter()
        feed(meter, (0, 9_000))
        assert meter.correct(100) == 9_100
        feed(meter, (100, 9_110))
        assert meter.correct(100) == pytest.approx(9_110, abs=5)

    @pytest.mark.parametrize("estimates", [(6_000, 8_000, 11_000), (10_000, 10_500, 14_000), (3_000, 12_000, 30_000)])
    def test_three_growing_views_give_ratio_and_constant(self, estimates: tuple[int, ...]) -> None:
        """1.35 times the estimate and 9,000 of tools are found to within 5 % between 3k and 30k."""
        meter = Meter()
        feed(meter, *[(e, round(1.35 * e + 9_000)) for e in estimates])
        for estimate in range(3_000, 30_001, 1_000):
            assert meter.correct(estimate) == pytest.approx(1.35 * estimate + 9_000, rel=0.05)

    def test_views_of_one_size_change_the_constant_alone(self) -> None:
        """Without a difference there is no telling the ratio: the newest residual is the constant."""
        meter = Meter()
        feed(meter, (10_000, 13_000), (11_000, 14_200))
        assert meter.correct(20_000) == 23_200

    def test_a_figure_below_the_estimate_changes_the_ratio(self) -> None:
        """A negative constant makes no sense, so the ratio gives way, down to 0.7."""
        meter = Meter()
        feed(meter, (10_000, 9_000))
        assert (meter.correct(0), meter.correct(20_000)) == (0, 18_000)
        meter.reset()
        feed(meter, (10_000, 6_100))
        assert meter.correct(10_000) == 7_000

    def test_a_line_below_the_origin_goes_through_it(self) -> None:
        """The same for a fitted line."""
        meter = Meter()
        feed(meter, (10_000, 10_000), (20_000, 24_000))
        assert meter.correct(0) == 0
        assert meter.correct(10_000) == pytest.approx(11_600, abs=1)

    def test_the_ratio_stays_within_its_bounds(self) -> None:
        """Steeper than 1.6 or flatter than 0.7 is noise; the constant takes the rest."""
        meter = Meter()
        feed(meter, (10_000, 20_000), (20_000, 20_500))
        assert meter.correct(20_000) - meter.correct(10_000) == 7_000
        meter.reset()
        feed(meter, (10_000, 30_000), (14_000, 38_000))
        assert meter.correct(20_000) - meter.correct(10_000) == 16_000

    def test_a_swapped_model_drops_what_was_learnt(self) -> None:
        """A figure more than a quarter off a known line is a new beginning."""
        meter = Meter()
        feed(meter, (10_000, 22_500), (20_000, 36_000), (21_000, 21_000))
        assert meter.correct(21_000) == 21_000
        feed(meter, (30_000, 30_000))
        assert meter.correct(40_000) == 40_000

    def test_a_swap_is_seen_between_views_of_one_size(self) -> None:
        """The second figure replaces the first instead of being averaged with it."""
        meter = Meter()
        feed(meter, (10_000, 10_000), (10_000, 15_000))
        assert meter.correct(10_000) == 15_000

    def test_a_swap_is_seen_before_there_was_a_line(self) -> None:
        """A line that would have to be too steep for one model is none."""
        meter = Meter()
        feed(meter, (10_000, 11_000), (15_000, 60_000))
        assert meter.correct(15_000) == 60_000
        assert len(meter._seen) == 1

    def test_only_the_last_eight_observations_are_kept(self) -> None:
        """Old ones leave, so that a slow change is followed."""
        meter = Meter()
        feed(meter, *[(10_000 + n * 1_000, 12_000 + n * 1_000) for n in range(20)])
        assert [estimate for estimate, _ in meter._seen] == list(range(22_000, 30_000, 1_000))

    def test_reset_forgets_everything(self) -> None:
        """The served view as well."""
        meter = Meter()
        feed(meter, (10_000, 15_000))
        meter.served(10_000)
        meter.reset()
        assert meter.correct(10_000) == 10_000
        assert not meter.observe({"input_tokens": 10_000})

    @pytest.mark.parametrize(
        "observations", [[], [(10_000, 15_000)], [(10_000, 7_100)], [(6_000, 17_100), (9_000, 21_150)]]
    )
    def test_invert_is_the_largest_estimate_that_fits(self, observations: list[tuple[int, int]]) -> None:
        """Its corrected size is within the tokens, and that of the next one is not."""
        meter = Meter()
        feed(meter, *observations)
        for size in [*range(meter.correct(0), meter.correct(0) + 50), 20_000, 200_001]:
            estimate = meter.invert(size)
            assert meter.correct(estimate) <= size < meter.correct(estimate + 1)
        assert meter.invert(meter.correct(0) - 1) == meter.invert(-5) == 0
