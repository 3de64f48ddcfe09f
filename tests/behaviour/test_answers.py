"""What counts as a summary: an answer of any language and manner is one, and seven forms are none."""

# ruff: noqa: RUF001 - the punctuation of Chinese and Japanese is what is tested

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock, ThinkingBlock, ToolCall, ToolCallBlock

from context_summarize.testing import ScriptedProvider
from tests.support.managed import Managed
from tests.support.rows import assistant, user

GOOD = "Goal: find order HAT136. State: found."
ENGLISH = "Please fix the login bug in auth.py. The tests of src/parse.py run now, and 42 of them passed. "
CHINESE = "请帮我修复登录模块里的错误，然后运行全部测试，并且把结果写进报告。"

CHINESE_SUMMARY = (
    "用户希望解决账号验证环节的问题，助手先查看了相关代码，找到了会话过期的原因，修改了判断条件，补充了两项检查，"
    "随后重新执行了整套验证，结果均为成功，接着整理了变更说明，更新了文档目录，提交了代码，通知了负责人，等待审核，"
    "期间用户追问了性能影响，助手给出了对比数据，说明差异可以忽略，用户表示认可，要求保留旧接口，助手照做，"
    "并在说明中标注弃用时间，最后用户要求准备发布，助手列出了步骤，确认了时间，安排了回滚方案，留下了联系方式。"
)


async def judged(answer: Any, said: str = ENGLISH) -> tuple[list[str], set[str]]:
    """(texts that were stored, kinds of what was refused) of a session whose provider answers so."""
    made = Managed(2_500, provider=lambda: ScriptedProvider(then=answer), keep_recent=2, segment_tokens=512)
    await made.take([make(f"{at} {said * 8}") for at in range(8) for make in (user, assistant)])
    await made.view()
    kinds = {data["kind"] for data in made.host.of("context-summarize:failure")}
    return [summary.text for summary in made.store.summaries], kinds - {"breaker_open"}


SUMMARIES = {
    "plain": GOOD,
    "Chinese": CHINESE_SUMMARY,
    "another language than its source": CHINESE_SUMMARY,
    "speaks to the user": "Your request: fix the login bug in auth.py. I changed the check, and 42 tests passed.",
    "opens like an error": "Error handling was added to src/parse.py, and the tests of it passed.",
    "a list of ids": "Here are the ids: AB100X, AB200X, AB300X, AB400X, AB500X, AB600X, AB700X, AB800X, AB900X.",
    "long, opens like an excuse": "I cannot say. " + " ".join(f"Test {at} of src/parse.py passed." for at in range(15)),
    "like lines": "\n".join(f"- module_{at}.py\n  Status: passed\n  Owner: the team" for at in range(12)),
    "quotes our headings": "Goal: move it.\nState: moved.\n#3 user\n## Summary 1 of 2",
    "quotes what was said again and again": f"Goal: a repair. {'Please fix the login bug in auth.py. ' * 8}".strip(),
}


@pytest.mark.parametrize("name", SUMMARIES)
async def test_an_answer_is_a_summary_whatever_it_says(name):
    """Its words are not judged: good summaries paraphrase, in every language."""
    stored, refused = await judged(SUMMARIES[name], CHINESE if name == "Chinese" else ENGLISH)
    assert (set(stored), refused) == ({SUMMARIES[name]}, set())


def told(rows: int) -> str:
    return " ".join(f"Row {at} tells that the tests of part {at} passed." for at in range(rows))


async def test_an_answer_that_ends_in_a_loop_stands_up_to_it():
    stored, refused = await judged(f"{told(8)}{' It goes on with the other options.' * 40}")
    assert (set(stored), refused) == ({told(8)}, set())


def response(*blocks: Any, finish: str = "stop", calls: list[ToolCall] | None = None) -> ChatResponse:
    return ChatResponse(content=list(blocks), finish_reason=finish, tool_calls=calls)


def ended(finish: str) -> ChatResponse:
    return response(TextBlock(text=GOOD), finish=finish)


def wordy(request: ChatRequest) -> str:
    return str(request.messages[-1].content) * 2


def instructions(request: ChatRequest) -> str:
    return "\n".join(str(request.messages[0].content).splitlines()[-8:])


def transcript(request: ChatRequest) -> str:
    return str(request.messages[-1].content)[:400]


TOOL_CALL = ToolCall(id="a", name="f", arguments={})


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("", "empty"),
        (lambda _: None, "empty"),
        (SimpleNamespace(content=5), "empty"),
        (response(ThinkingBlock(thinking="hm")), "empty"),
        (wordy, "not_smaller"),
        (f"Goal: a flight. {'The user asked which of the three options works. ' * 8}", "repeats"),
        (CHINESE * 6, "repeats"),
        (ended("content_filter"), "refusal"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        (ended("error"), "failed"),
        (ended("MAX_TOKENS"), "cut_off"),
        (response(finish="length"), "cut_off"),
        ("## Summary 7 of 6\nThe bug was mended.", "copied"),
        ("#3 user\nThank you, that was all.", "copied"),
        (instructions, "copied"),
        (transcript, "copied"),
        (response(TextBlock(text=GOOD), calls=[TOOL_CALL]), "tool_calls"),
        (response(TextBlock(text=GOOD), ToolCallBlock(id="a", name="f", input={})), "tool_calls"),
        (SimpleNamespace(content=[{"type": "tool_use", "id": "a"}], tool_calls=None), "tool_calls"),
    ],
)
async def test_seven_forms_are_no_summary(answer, kind):
    """Empty, too long, a loop, refused or failed, cut off, the request copied back, a call in place of a text."""
    given = (lambda _: answer) if isinstance(answer, SimpleNamespace) else answer
    assert await judged(given) == ([], {kind})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([TextBlock(text=f" {GOOD} "), ThinkingBlock(thinking="hm"), TextBlock(text="two\n")], f"{GOOD} \ntwo"),
        ([{"type": "text", "text": GOOD}, {"type": "text", "text": None}, 5, None], GOOD),
        (f" {GOOD} ", GOOD),
    ],
)
async def test_the_text_blocks_of_an_answer_are_read_whatever_its_shape(content, text):
    stored, refused = await judged(lambda request: SimpleNamespace(content=content, finish_reason="stop"))
    assert (set(stored), refused) == ({text}, set())


@pytest.mark.parametrize(
    ("end", "kept"), [(" And then it w", ""), ("\nAnd a ha", ""), (' He said "go." Then', ' He said "go."')]
)
async def test_a_long_answer_that_was_cut_off_stands_up_to_its_last_whole_sentence(end, kept):
    """Where the second try with more room is cut off as well."""
    stored, refused = await judged(response(TextBlock(text=told(20) + end), finish="length"))
    assert (set(stored), refused) == ({told(20) + kept}, set())
