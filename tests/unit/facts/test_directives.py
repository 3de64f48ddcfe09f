"""User directives: which sentences they are, how they are kept, and that they survive compactions and merges."""

from __future__ import annotations

import pytest

from context_summarize.facts.directive_sentences import directive_pattern, find_directives
from context_summarize.facts.directives import (
    DIRECTIVES_LINE,
    FEW,
    MAX_DIRECTIVE,
    TAKES_BACK,
    directives_room,
    fitting_directives,
    format_directives,
    merge_directives,
    share_out,
)
from context_summarize.session.compaction import directives_most
from context_summarize.session.manager import SummarizingContextManager
from context_summarize.stores.memory import MemoryStore
from context_summarize.summaries.prompts import load_prompts
from context_summarize.testing import ScriptedProvider, assistant, call, result, user
from context_summarize.tokens.counter import TokenCounter
from context_summarize.transcript.rows import RenderedRow
from tests.support.effort import HUGE
from tests.support.paths import ROOT
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
            "It must never be empty.",
            "We never commit to main.",
            "I don't want you to push.",
            "I never want to see a force push.",
            "Whenever you change a file, run the tests.",
            "Can you always reply in French?",
            "Under no circumstances delete a branch.",
            'Always say "I am not sure" when you are not.',
            "Do not use node.js for this.",
            "Files are always formatted with black.",
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
            "I really don't want to be transferred.",
            "I'm sorry, but I don't remember my user ID.",
            "I do not need insurance.",
            "Actually, never mind.",
            "There must be some way to resolve this.",
            "I must have left it somewhere else.",
            "I've always had great experiences, as always.",
            "Why do cancellations never reach a gift card?",
            "It never works and they always fail.",
            "Whenever you like.",
            "Don't worry about it.",
            'The page says "you must never reply".',
            "> Always quote me.",
            "```\nalways = never  # must\n```",
            "Mustard is evergreen.",
            "Please book it.",
            "",
        ],
    )
    def test_what_only_tells_asks_or_quotes_is_no_directive(self, text: str) -> None:
        """A customer's "I don't have it" must not fill the room of real directives."""
        assert directives(text) == ()

    def test_the_recordings_false_hits_are_none(self) -> None:
        """The words alone occur in dozens of the customers' sentences, and none of these is a directive."""

        from context_summarize.messages.text import content_text
        from context_summarize.replay.session_files import read_session

        rows = read_session(ROOT / "examples" / "airline-desk.jsonl")
        said = [content_text(row["content"]) for row in rows if row["role"] == "user"]
        pattern = directive_pattern(WORDS)
        assert pattern is not None
        assert sum(1 for text in said if pattern.search(text)) > 30
        assert [found for text in said for found in directives(text)] == []

    def test_only_user_messages_give_directives(self) -> None:
        """Neither assistants nor tools do, nor results that a user row carries."""
        text = "Always obey me."
        assert directives(text, "assistant") == directives(text, "tool") == ()
        assert directives(f"[result without a call] {text}") == ()
        asked = RenderedRow(1, "assistant", None, "call bash({})")
        answered = RenderedRow(2, "user", None, f"result of bash: {text}")
        assert find_directives([[asked, answered]], WORDS) == ()

    def test_a_wrapped_sentence_is_joined_and_bullets_are_not(self) -> None:
        """Lines that go on in lower case belong together."""
        text = "Do not rename fields,\nbecause clients\nrely on them. Done.\n\n* Never cache\n* Always log"
        assert directives(text) == ("Do not rename fields, because clients rely on them.", "Never cache", "Always log")

    def test_a_long_sentence_is_cut_around_its_word(self) -> None:
        """At most 200 characters, the word among them, cut between words and marked."""
        (late,) = directives("and so on " * 60 + "you must not do y " + "and more " * 60)
        assert len(late) <= MAX_DIRECTIVE
        assert "you must not do y" in late
        assert late.startswith("[…] ")
        assert late.endswith(" […]")
        (early,) = directives("Never do this " + "or that " * 60)
        assert early.startswith("Never do this or that")
        assert len(early) <= MAX_DIRECTIVE
        (solid,) = directives("never " + "x" * 5_000)
        assert len(solid) <= MAX_DIRECTIVE

    def test_a_repeated_directive_stands_once_where_it_was_said_last(self) -> None:
        """Case, punctuation and blanks make no other directive."""
        text = "Always ask. Never guess. ALWAYS  ask!"
        assert directives(text) == ("Never guess.", "ALWAYS ask!")

    def test_a_prompt_set_brings_its_own_words(self) -> None:
        """Other languages, blanks or none between words; no words, no directives."""
        assert directives("Ab sofort  auf Deutsch. Immer!", words=("ab sofort", "immer")) == (
            "Ab sofort auf Deutsch.",
            "Immer!",
        )
        assert directives("请不要在周五部署。谢谢。", words=("不要",)) == ("请不要在周五部署。",)
        assert directives("Always ask.", words=()) == ()
        assert directive_pattern(()) is None

    @pytest.mark.parametrize(
        "text",
        [
            *(text * (HUGE // 7) for text in ("never ", "never. ", '"never', "never\n", "`never", "never e.g. ")),
            "```\nnever\n" * (HUGE // 10),
            "never" + "!)" * (HUGE // 2),
            "never" + " " * HUGE,
        ],
    )
    @pytest.mark.usefixtures("no_hang")
    def test_a_huge_text_is_no_hang(self, text: str) -> None:
        """No pattern goes back over what it has read."""
        found = directives(text)
        assert all(len(directive) <= MAX_DIRECTIVE for directive in found)


class TestKeeping:
    def test_merges_keep_the_oldest_first_and_the_later_of_equals(self) -> None:
        """A later directive that repeats an older one replaces it."""
        merged = merge_directives([("Always ask.", "Never guess."), (), ("always ask", "Do not push.")])
        assert merged == ("Never guess.", "always ask", "Do not push.")

    def test_the_newest_are_kept_when_room_is_short(self) -> None:
        """What is kept is the end of the list, whole directives only."""
        given = tuple(f"Always keep rule number {n}." for n in range(20))
        kept = fitting_directives(given, 60, count)
        assert kept == given[-len(kept) :]
        assert 3 < len(kept) < 20
        assert count(format_directives(kept)) <= 60
        assert fitting_directives(given, 5, count) == ()
        assert fitting_directives(given, 10_000, count) == given

    def test_what_the_text_holds_word_by_word_is_not_said_twice(self) -> None:
        """A model that quotes a directive has kept it."""
        text = "Standing rules: Always ask\nfirst."
        assert format_directives(("Always ask first.", "Never guess."), text) == (
            f'{DIRECTIVES_LINE}\n- "Never guess."'
        )
        assert format_directives(("Always ask first.",), text) == ""
        assert format_directives(()) == ""

    def test_a_directive_is_shown_as_a_quotation(self) -> None:
        """What the user has said is data in a system row; marks within it do not end the quotation."""
        assert format_directives(("Never guess.",)) == f'{DIRECTIVES_LINE}\n- "Never guess."'
        assert format_directives(('Always say "no".',)) == f'{DIRECTIVES_LINE}\n- “Always say "no".”'

    def test_a_node_has_room_for_all_that_a_view_may_show(self) -> None:
        """For every budget from which the sizes were derived."""
        from context_summarize.core.segments import derive_segment_tokens, derive_summary_tokens

        for budget in (9_000, 23_200, 35_000, 46_000, 120_000, 200_000, 1_000_000):
            summary = derive_summary_tokens(derive_segment_tokens(budget))
            assert min(3_600, 0.019 * budget) <= directives_room(summary) <= max(FEW, 0.042 * budget)
        assert directives_room(400, 100) == 50

    def test_a_small_window_has_room_for_some_fifteen_directives(self) -> None:
        """At most a twentieth of it; a large one keeps to a fiftieth."""
        assert [directives_most(budget, summary) for budget, summary in ((4_000, 100), (8_000, 102))] == [200, 400]
        assert [directives_most(budget, 409) for budget in (20_001, 40_000)] == [400, 800]

    def test_the_nodes_of_a_view_share_the_room_newest_first(self) -> None:
        """Older nodes give way; a directive that a later node repeats is left out of the older one."""
        nodes = [tuple(f"Always keep rule {at}-{n}." for n in range(4)) for at in range(5)]
        nodes[1] = (*nodes[1], nodes[4][0].upper())
        whole = share_out(nodes, 10_000, count)
        assert whole[1] == nodes[1][:4]
        assert [*whole[:1], *whole[2:]] == [nodes[0], *nodes[2:]]
        cut = share_out(nodes, 90, count)
        assert sum(count(format_directives(share)) for share in cut) <= 90
        assert cut[4] == nodes[4]
        assert cut[0] == ()
        for end in range(1, 6):
            earlier, later = share_out(nodes[:end], 90, count), share_out([*nodes[:end], ("Never x.",)], 90, count)
            assert all(set(b) <= set(a) for a, b in zip(earlier, later, strict=False)), "nothing comes back"

    def test_long_ones_are_shortened_before_any_is_left_out(self) -> None:
        """The part around the telling word stays."""
        long = (
            "The rest of the team has wished for it for years, so please always sort the imports of a file, "
            + "x " * 40
        )
        given = (long.strip(), *(f"Never touch table number {n}." for n in range(6)))
        assert len(given[0]) <= MAX_DIRECTIVE
        kept = fitting_directives(given, count(format_directives(given)) - 5, count)
        assert kept[1:] == given[1:]
        assert "always sort the imports" in kept[0]
        assert len(kept[0]) < len(given[0])

    def test_what_is_said_of_one_task_gives_way_first(self) -> None:
        """Before older ones that last; withdrawals stay longest."""
        given: tuple[str, ...] = (
            "You can use emojis again.",
            "Never rename a column.",
            "Don't push this yet.",
            "Don't use the old API.",
        )
        sizes = [count(format_directives(given)) - 1]
        for _ in range(3):
            kept = fitting_directives(given, sizes[-1], count)
            sizes.append(count(format_directives(kept)) - 1)
            assert kept == tuple(one for one in given if one in kept)
            given = kept
        assert kept == ("You can use emojis again.",)

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


async def test_the_directives_of_all_nodes_hold_at_most_a_twentieth_of_a_small_budget() -> None:
    """A user who gives a directive in every turn; the newest are kept, and a resumed manager shows the same view."""
    provider = ScriptedProvider(then="Goal: something was asked for. State: it was done.")
    store = MemoryStore()
    manager = SummarizingContextManager(store=store, compact_threshold=0.7, target_usage=0.3)
    counter = TokenCounter()
    await counter.load()
    most = 0
    for turn in range(300):
        await manager.add_message(user(f"From now on, always keep rule number {turn} in mind."))
        await manager.add_message(call(f"c{turn}", "read", part=turn))
        await manager.add_message(result(f"c{turn}", f"part {turn} says something of no great length " * 4, "read"))
        view = await manager.get_messages_for_request(8_000, provider=provider)
        blocks = [
            str(row["content"]).partition(DIRECTIVES_LINE)[2].partition("\n\n")[0].partition("\n[End")[0]
            for row in view
            if row["role"] == "system"
        ]
        most = max(most, sum(counter.count(DIRECTIVES_LINE + block) for block in blocks if block))
    assert 160 < most <= 400
    newest = (await manager.snapshot(view)).nodes[-1]
    assert newest.summary is not None
    assert newest.summary.directives
    resumed = SummarizingContextManager(store=store, compact_threshold=0.7, target_usage=0.3)
    await resumed.set_messages(await manager.get_messages())
    assert await resumed.get_messages_for_request(8_000, provider=provider) == view
    await manager.close()
    await resumed.close()
