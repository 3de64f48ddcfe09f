"""What counts as a summary: an answer of any language and manner is one, and six forms are none."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock, ThinkingBlock, ToolCall, ToolCallBlock

from context_summarize.testing import ScriptedProvider
from tests.support.managed import Managed
from tests.support.paths import ROOT
from tests.support.rows import assistant, user

GOOD = "Goal: find order HAT136. State: found."
ENGLISH = "Please fix the login bug in auth.py. The tests of src/parse.py run now, and 42 of them passed. "

CORPUS = (ROOT / "tests" / "corpora" / "good_summaries.jsonl").read_text("utf-8").splitlines()
SUMMARIES = [json.loads(line) for line in CORPUS]
"""Name and text of each, and what was said, if that is not in English."""


async def judged(answer: Any, said: str = ENGLISH) -> tuple[list[str], set[str]]:
    """(texts that were stored, kinds of what was refused) of a session whose provider answers so."""
    made = Managed(2_500, provider=lambda: ScriptedProvider(then=answer), keep_recent=2, segment_tokens=512)
    await made.take([make(f"{at} {said * 8}") for at in range(8) for make in (user, assistant)])
    await made.view()
    kinds = {data["kind"] for data in made.host.of("context-summarize:failure")}
    return [summary.text for summary in made.store.summaries], kinds - {"breaker_open"}


@pytest.mark.parametrize("good", SUMMARIES, ids=[good["name"] for good in SUMMARIES])
async def test_an_answer_is_a_summary_whatever_it_says(good):
    """Its words are not judged: good summaries paraphrase, in every language."""
    stored, refused = await judged(good["text"], good.get("of", ENGLISH))
    assert (set(stored), refused) == ({good["text"]}, set())


def told(rows: int) -> str:
    return " ".join(f"Row {at} tells that the tests of part {at} passed." for at in range(rows))


def response(*blocks: Any, finish: str = "stop", calls: list[ToolCall] | None = None) -> ChatResponse:
    return ChatResponse(content=list(blocks), finish_reason=finish, tool_calls=calls)


def ended(finish: str) -> ChatResponse:
    return response(TextBlock(text=GOOD), finish=finish)


def wordy(request: ChatRequest) -> str:
    return str(request.messages[-1].content) * 2


def transcript(request: ChatRequest) -> str:
    return str(request.messages[-1].content)[:400]


TOOL_CALL = ToolCall(id="a", name="f", arguments={})


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("", "empty"),
        (lambda _: None, "empty"),
        (response(ThinkingBlock(thinking="hm")), "empty"),
        (wordy, "not_smaller"),
        (ended("content_filter"), "refusal"),
        ("I'm sorry, but I can't help with that." + " It is private." * 20, "refusal"),
        (ended("error"), "failed"),
        (ended("MAX_TOKENS"), "cut_off"),
        (response(finish="length"), "cut_off"),
        (transcript, "copied"),
        (response(TextBlock(text=GOOD), calls=[TOOL_CALL]), "tool_calls"),
        (response(TextBlock(text=GOOD), ToolCallBlock(id="a", name="f", input={})), "tool_calls"),
    ],
)
async def test_six_forms_are_no_summary(answer, kind):
    """Empty, too long, refused or failed, cut off, the transcript copied back, a call in place of a text."""
    assert await judged(answer) == ([], {kind})


def shaped(content: Any) -> Any:
    return lambda _: SimpleNamespace(content=content, finish_reason="stop")


def cut_off(end: str) -> ChatResponse:
    return response(TextBlock(text=told(15) + end), finish="length")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (shaped([TextBlock(text=f" {GOOD} "), ThinkingBlock(thinking="hm"), TextBlock(text="two\n")]), f"{GOOD} \ntwo"),
        (shaped(f" {GOOD} "), GOOD),
        (cut_off(" And then it w"), told(15)),
        (cut_off("\nAnd a ha"), told(15)),
        (cut_off(' He said "go." Then'), f'{told(15)} He said "go."'),
    ],
)
async def test_of_an_answer_the_texts_of_its_blocks_are_kept_up_to_its_last_whole_sentence(answer, text):
    """What was cut off is asked for a second time with more room before."""
    stored, refused = await judged(answer)
    assert (set(stored), refused) == ({text}, set())
