"""User directives: which sentences they are, how they are kept, and that they survive compactions and merges."""

from __future__ import annotations

import pytest
from context_summarize.facts.directive_sentences import directive_pattern, find_directives
from context_summarize.facts.directives import (
    TAKES_BACK,
    format_directives,
    merge_directives,
    share_out,
)

from context_summarize.session.manager import SummarizingContextManager
from context_summarize.summaries.prompts import load_prompts
from context_summarize.testing import ScriptedProvider, assistant, call, result, user
from context_summarize.tokens.counter import TokenCounter
from context_summarize.transcript.rows import RenderedRow
from tests.support.views import nodes

WORDS = load_prompts("default").directive_words


def count(text: str) -> int:
    """A token is four characters, begun ones included."""
    return -(-len(text) // 4)


def directives(text: str, role: str = "user", words: tuple[str, ...] = WORDS) -> tuple[str, ...]:
    return find_directives([[RenderedRow(1, role, None, text)]], words)


class TestSentences:
    @pytest.mark.parametrize(
        "sentence",
        [
            "Always answer in German.",
            "Please never deploy on Fridays!",
            "Don’t touch the production database.",
            "From now on, use tabs.",
            "You must not edit `migrations/`.",
            "All functions must have docstrings.",
            "Whenever you change a file, run the tests.",
            "Can you always reply in French?",
            "Under no circumstances delete a branch.",
            'Always say "I am not sure" when you are not.',
            "Do not use node.js for this.",
            "NEVER use e.g. pip directly.",
        ],
    )
    def test_a_sentence_that_binds_the_agent_is_a_directive_in_its_own_words(self, sentence: str) -> None:
        """It comes out whole wherever it stands: alone, among sentences, in a list, in a wrapped paragraph."""
        assert directives(sentence) == (sentence,)
        assert directives(f"Thanks, that is fine. {sentence} Now book it.") == (sentence,)
        assert directives(f"Some notes:\n  - {sentence}\n  2. Second") == (sentence,)
        assert directives(f"> Never quoted.\n\n{sentence}\n") == (sentence,)

    @pytest.mark.parametrize(
        "text",
        [
            "I don't have the reservation ID with me right now.",
            "I do not need insurance.",
            "Actually, never mind.",
            "I've always had great experiences, as always.",
            "Why do cancellations never reach a gift card?",
            "It never works and they always fail.",
            "Don't worry about it.",
            'The page says "you must never reply".',
            "> Always quote me.",
            "```\nalways = never  # must\n```",
        ],
    )
    def test_what_only_tells_asks_or_quotes_is_no_directive(self, text: str) -> None:
        """A customer's "I don't have it" must not fill the room of real directives."""
        assert directives(text) == ()

    def test_only_user_messages_give_directives(self) -> None:
        """Neither assistants nor tools do, nor results that a user row carries."""
        text = "Always obey me."
        assert directives(text, "assistant") == directives(text, "tool") == ()
        assert directives(f"[result without a call] {text}") == ()
        asked = RenderedRow(1, "assistant", None, "call bash({})")
        answered = RenderedRow(2, "user", None, f"result of bash: {text}")
        assert find_directives([[asked, answered]], WORDS) == ()

    def test_a_prompt_set_brings_its_own_words(self) -> None:
        """Other languages, blanks or none between words; no words, no directives."""
        assert directives("Ab sofort  auf Deutsch. Immer!", words=("ab sofort", "immer")) == (
            "Ab sofort auf Deutsch.",
            "Immer!",
        )
        assert directives("请不要在周五部署。谢谢。", words=("不要",)) == ("请不要在周五部署。",)
        assert directives("Always ask.", words=()) == ()
        assert directive_pattern(()) is None


class TestKeeping:
    def test_the_nodes_of_a_view_show_nothing_that_a_later_node_takes_back(self) -> None:
        """A withdrawal is shown and marked; one that names nothing takes the one before it, and is not shown."""
        nodes = [("No emojis.", "Always ask first."), ("You can use emojis again.", "Ignore my earlier rule.")]
        assert share_out(nodes, 1_000, count) == ((), ("You can use emojis again.",))
        assert format_directives(("You can use emojis again.",)).endswith(f'again." {TAKES_BACK}')
        assert share_out([("Never guess.",), ("Forget that rule.",)], 1_000, count) == ((), ())
        assert share_out([(), ("Forget that rule.",)], 1_000, count) == ((), ())


class TestTakenBack:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("Never use emojis.", "You can use emojis again."),
            ("Always answer in German.", "From now on, answer in French."),
            ("Use tabs, not spaces, everywhere.", "Actually, use spaces instead of tabs from now on."),
            ("Always ask before deleting anything.", "Forget what I said about deleting."),
            ("Let's stick to Python 3.11.", "Let's stick to Python 3.12."),
            ("End every reply with a haiku.", "Stop ending replies with a haiku."),
        ],
    )
    def test_a_directive_that_is_taken_back_or_replaced_is_gone(self, first: str, second: str) -> None:
        """In one segment and over a merge; said again later, it is back."""
        assert directives(first) == (first,)
        assert directives(f"{first} {second}") == (second,)
        assert merge_directives([(first,), (second,)]) == (second,)
        assert first in merge_directives([(first,), (second,), (first,)])

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("Never rename a column.", "Never drop a column."),
            ("Never copy prod to staging.", "Never copy staging to prod."),
            ("Keep port 8080 open at all times.", "Keep port 9090 open at all times."),
            ("Never deploy on Fridays.", "Forget what I said about the hotel."),
            ("Always answer in German.", "Never translate names into French."),
            ("Never return a dict.", "Use dataclasses instead of dicts."),
            ("Always write tests.", "Ignore the ESLint rule in this file."),
        ],
    )
    def test_directives_on_other_things_stand_side_by_side(self, first: str, second: str) -> None:
        """Nothing that is in force goes because of a word that it shares with another."""
        assert first in merge_directives([(first,), (second,)])


DIRECTIVES = ("From now on, answer in German.", "Never rename a column.", "Under no circumstances delete a branch.")
CRITICAL = "The customer's contract ends on 2031-03-31."


async def test_directives_and_critical_rows_outlive_ten_compactions_and_two_levels_of_merging() -> None:
    """The summariser drops everything, and all else that was said early is gone from the view."""
    provider = ScriptedProvider(then="Goal: something was asked for. State: it was done.")
    manager = SummarizingContextManager(summary_share=0.15)
    await manager.add_message(user("Hello, let us begin."))
    await manager.add_message(assistant("Yes."))
    compactions = 0
    summarised = 0
    for turn in range(700):
        text = f"Please look at part {turn} of the plan." + (f" {DIRECTIVES[turn // 5]}" if turn in (5, 10) else "")
        await manager.add_message(user(f"{DIRECTIVES[0]} Go." if turn == 2 else text))
        if turn == 3:
            await manager.add_message({**user(CRITICAL), "metadata": {"critical": True}})
        await manager.add_message(call(f"c{turn}", "read", part=turn))
        await manager.add_message(result(f"c{turn}", f"part {turn} says something of no great length " * 6, "read"))
        await manager.add_message(assistant(f"Part {turn} was read."))
        view = await manager.get_messages_for_request(8_000, provider=provider)
        if nodes(view) and nodes(view)[-1]["metadata"]["messages"][1] > summarised:
            compactions, summarised = compactions + 1, nodes(view)[-1]["metadata"]["messages"][1]
            shown = "\n".join(str(row["content"]) for row in view)
            if turn > 100:
                assert all(shown.count(f'\n- "{directive}"\n') == 1 for directive in DIRECTIVES)
                assert [row["content"] for row in view].count(CRITICAL) == 1
                assert "Please look at part 6 of" not in shown
    assert compactions >= 10
    summaries = [node.summary for node in (await manager.snapshot(view)).nodes]
    assert max(node["metadata"]["level"] for node in nodes(view)) >= 2
    assert summaries[0] is not None
    assert summaries[0].directives == DIRECTIVES
    assert all(f'- "{directive}"\n' in nodes(view)[0]["content"] for directive in DIRECTIVES)
    counter = TokenCounter()
    await counter.load()
    held = sum(counter.count(format_directives(summary.directives)) for summary in summaries if summary)
    assert 0 < held <= 0.02 * 8_000
    await manager.close()
