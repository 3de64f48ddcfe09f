"""Substance: answers that are about something else than their source, and summaries that are taken for none."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from context_summarize.facts.fallback import fallback_text
from context_summarize.messages.text import content_text
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.substance import exact_values, is_loop, missing_substance, telling_words
from context_summarize.tokens.counter import TokenCounter
from context_summarize.transcript.rows import RenderedRow, render_rows
from tests.support.recorder import recording

SOURCE = """#1 user
Please move reservation HAT136 of mia_li_3668 to flight HAT271 on May 21.

#2 assistant
The reservation was moved to HAT271; the difference of $250 was paid with the gift card, and the bags are unchanged.
"""
INSTRUCTIONS = load_prompts("default").segment.fill(words="50", fence="=== transcript 0123456789abcdef0123 ===")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I'm glad to assist you with your request. Can you please tell me more?", "chat"),
        ("Hello! How can I help you today?", "chat"),
        ("Sure! Please provide the transcript. Let me know if you need anything else.", "chat"),
        ("## Summary 7 of 6\nThe reservation was moved.", "copied"),
        ("#3 user\nThank you, that was all.", "copied"),
        ("=== transcript 0123456789abcdef0123 ===\nThe reservation was moved.", "copied"),
        ("\n".join(INSTRUCTIONS.splitlines()[-8:-2]), "copied"),
        (
            "Photosynthesis converts sunlight into chemical energy inside chloroplasts. Plants absorb carbon dioxide "
            "through stomata, release oxygen, and build glucose molecules. Chlorophyll pigments capture mostly red "
            "and blue wavelengths, reflecting green, whereas accessory carotenoids widen absorption further.",
            "off_topic",
        ),
        (
            "Here are some options:\n\n1. **Flight HAT057**\n2. **Flight HAT083**\n3. **Flight HAT091**\n"
            "4. **Flight HAT113**\n5. **Flight HAT211**\n6. **Flight HAT268**\n7. **Flight HAT376**\n"
            "8. **Flight HAT412**\n9. **Flight HAT427**\n10. **Flight HAT435**\n11. **Flight HAT440**",
            "invented",
        ),
        (
            "The reservation summary has been updated with the details you requested. Here is the final plan for your "
            "flight:\n\n### Detailed plan\n\n- **Task 1:** Move the reservation to HAT271.\n- **Task 2:** Pay $250.",
            "answer",
        ),
        (
            "No, no one has confirmed any of the later flights you requested. You've got a lot of options but none of "
            "them work. Please let me know what you're looking for.\n\nHere's the option that should work, you can "
            "move to HAT271.",
            "answer",
        ),
        ("Here is the answer: #12 Yes, the reservation HAT136 can be moved to HAT271.", "answer"),
        ("You can move your reservation HAT136 to flight HAT271 on May 21 for $250.", "answer"),
    ],
)
def test_an_answer_without_substance_is_refused(text: str, kind: str) -> None:
    """It greets, asks back, goes on with the request, repeats it, talks of something else or counts up ids."""
    assert missing_substance(text, SOURCE, INSTRUCTIONS) == kind


@pytest.mark.parametrize(
    "text",
    [
        "Goal: done.",
        "Goal: the user asked for something, and it was done.",
        "Sure, here is the summary: the reservation HAT136 was moved to HAT271.",
        "You asked for reservation HAT136 to be moved to HAT271 on May 21, and it was done for $250.",
        "Please move reservation HAT136 of mia_li_3668 to flight HAT271 on May 21.",
        "Here is the summary: reservation HAT136 was moved. Your bags are unchanged.",
        "Goal: move HAT136.\nState: it was moved to HAT271.\n=== transcript 0123456789abcdef0123 ===",
        "Ziel: Die Buchung HAT136 sollte verlegt werden. Stand: Sie wurde auf den neuen Flug umgebucht, der "
        "Aufpreis wurde mit dem Gutschein beglichen, das Gepäck blieb gleich, weitere Wünsche bestanden keine, und der "
        "Kunde bedankte sich freundlich bei der Mitarbeiterin.",
        "目标: 将预订改到另一航班。 状态: 已完成, 差价已用礼品卡支付。",
    ],
    ids=[
        "scripted",
        "scripted, longer",
        "announced",
        "second person",
        "extracted",
        "announced, second person",
        "closed",
        "another language",
        "another script",
    ],
)
def test_a_summary_passes(text: str) -> None:
    """Short ones, and those in the user's language with exact values of the source."""
    assert missing_substance(text, SOURCE, INSTRUCTIONS) is None


def test_a_loop_is_known_by_its_sentences() -> None:
    """A real model's; not what its source repeats, nor lines with values of their own."""
    loop = 'The user asked: "Which of the previous 3 options don\'t work for me?"\n\n' * 6
    assert is_loop(f"The user asked for a flight. {loop}", SOURCE)
    assert not is_loop(loop, f"{SOURCE}{loop}")
    assert not is_loop("\n".join(f"The reservation HAT{at} was moved to May {at}." for at in range(20)), SOURCE)


def extract(text: str, room: int) -> str:
    """The sentences whose words are most frequent, in their order: a summariser that is no model."""
    sentences = [part.strip() for part in re.split(r"(?<=[.!?:])\s+|\n+", text)]
    sentences = [part for part in sentences if len(part) > 20 and not part.startswith("#")]
    words = [re.findall(r"[A-Za-z]{4,}", part.lower()) for part in sentences]
    frequency = Counter(word for found in words for word in set(found))
    rank = sorted(
        range(len(sentences)), key=lambda at: -sum(frequency[w] for w in set(words[at])) / (len(words[at]) + 8)
    )
    chosen: list[int] = []
    for at in rank:
        if len(sentences[at]) <= room and len(sentences[at]) < 500:
            chosen.append(at)
            room -= len(sentences[at])
    return "\n".join(sentences[at] for at in sorted(chosen)) or text[:200]


def test_summaries_of_the_recording_are_not_refused() -> None:
    """At most 0.5 % of extracted sentences and of summaries by code."""
    count = TokenCounter().count
    rows = [
        RenderedRow(at, row["role"], row.get("name"), content_text(row.get("content")))
        for at, row in enumerate(recording(), 1)
        if row["role"] in ("user", "assistant", "tool")
    ]
    refused = total = 0
    for size in (6, 20, 60):
        for start in range(0, len(rows) - size, size):
            part = rows[start : start + size]
            source = render_rows(part)
            for text in (extract(source, max(300, len(source) // 10)), fallback_text(part, 300, count)):
                refused += missing_substance(text, source, INSTRUCTIONS) is not None
                total += 1
    assert total > 400
    assert refused <= 0.005 * total


WORDS = [f"{first}{second}{third}ing" for first in "bdfg" for second in "aeiou" for third in "klm"]
"""Telling words, each different in its first six letters."""


@pytest.mark.parametrize(("count", "kind"), [(23, None), (24, "off_topic")])
def test_from_24_telling_words_on_an_answer_is_judged_by_its_words(count: int, kind: str | None) -> None:
    """A shorter one is too easily right by chance."""
    assert missing_substance(" ".join(WORDS[:count]), "#1 user\nNothing of it.") == kind


@pytest.mark.parametrize(("known", "kind"), [(1, "off_topic"), (2, "off_topic"), (4, "off_topic"), (5, None)])
def test_an_answer_shares_more_than_eight_in_a_hundred_words_with_its_source(known: int, kind: str | None) -> None:
    """Of fifty words, five; never less than two."""
    source = "#1 user\n" + " ".join(WORDS[:known])
    assert missing_substance(" ".join(WORDS[:50]), source) == kind
    few = missing_substance(" ".join(WORDS[:24]), source)
    assert few == ("off_topic" if known < 2 else None)


@pytest.mark.parametrize(
    ("count", "known", "kind"), [(7, 0, None), (8, 0, "invented"), (8, 1, "invented"), (8, 2, None)]
)
def test_of_eight_ids_a_quarter_stands_in_the_source(count: int, known: int, kind: str | None) -> None:
    """Fewer ids are not judged."""
    ids = [f"AB{at}00X" for at in range(1, count + 1)]
    assert missing_substance(" ".join(ids), "#1 user\n" + " ".join(ids[:known])) == kind


def test_the_first_64_ids_of_an_answer_are_looked_for() -> None:
    """Sixteen known ones are a quarter of them; one id more would make them fewer than that."""
    ids = [f"AB{at:03}X" for at in range(65)]
    assert missing_substance(" ".join(ids), "#1 user\n" + " ".join(ids[:16])) is None


def test_words_are_compared_by_their_first_six_letters() -> None:
    """Forms of one word are one word."""
    assert telling_words("Booking bookings BOOKIN the user") == {"bookin"}
    assert exact_values("notes/ a_b1 2024-05-01 word notes.") == {"notes", "a_b1", "2024-05-01"}


@pytest.mark.parametrize(("line", "kind"), [("Say what was asked and.", "copied"), ("Say what was done.", None)])
def test_a_line_of_more_than_twenty_characters_is_known_as_copied(line: str, kind: str | None) -> None:
    """A shorter one may be said by chance."""
    assert missing_substance(line, "#1 user\nGo.", line) == kind


def test_chat_beside_two_telling_words_may_be_a_summary() -> None:
    """One such word says nothing."""
    assert missing_substance("Let me know. Tests passed.", "#1 user\nGo.") is None
    assert missing_substance("Let me know. Passed.", "#1 user\nGo.") == "chat"
