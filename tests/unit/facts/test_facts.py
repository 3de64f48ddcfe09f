"""What code says without a model: facts, ledgers, fallback summaries and the transcript format."""

from __future__ import annotations

import json

import pytest

from context_summarize.facts import commands, patterns
from context_summarize.facts.extraction import coverage, extract_facts, identifiers
from context_summarize.facts.fact import Fact, FactKind
from context_summarize.facts.fallback import FALLBACK_LINE, fallback_text, join_fallbacks
from context_summarize.facts.ledger import build_ledger
from context_summarize.facts.ledger_lines import LEDGER_LINE, format_ledger
from context_summarize.facts.merged import merge_facts
from context_summarize.transcript.rows import RenderedRow, parse_rendered, render_rows
from tests.support.effort import HUGE


def count(text: str) -> int:
    """A token is four characters, begun ones included."""
    return -(-len(text) // 4)


def rows(*texts: tuple[str, str]) -> list[RenderedRow]:
    return [RenderedRow(number, role, None, text) for number, (role, text) in enumerate(texts, start=1)]


def values(kind: FactKind, text: str, role: str = "tool") -> set[str]:
    return {fact.value for fact in extract_facts(rows((role, text))) if fact.kind == kind}


def bash(command: str) -> str:
    return f"call bash({json.dumps({'command': command})})"


def fact_values(facts: tuple[Fact, ...]) -> list[str]:
    return [fact.value for fact in facts]


@pytest.mark.parametrize(
    "identifier",
    [
        "4WQ150",
        "JG7FMM",
        "HAT136",
        "AA12",
        "mia_li_3668",
        "credit_card_4421486",
        "gift_card_7",
        "call_00001",
        "PROJ-7",
        "7f3a2b9c",
        "3739671ad08541e759230997bf0e50dcb8059d05ef4c64c23bbb9a37a0829f24",
        "123e4567-e89b-12d3-a456-426614174000",
        "#123",
        "octo/repo#42",
        "2024-05-20",
        "2024-05-14T10:44:24",
        "2024-05-14T10:44:24.125+02:00",
        "mia.li3818@example.com",
        "10.0.0.1:8080",
        "fields.py:1474",
        "555-123-4567",
        "9523456873",
        "order4821",
        "cus4f8Xk2",
    ],
)
@pytest.mark.parametrize("frame", ["Take {} now.", '{{"key":"{}"}}', "**{}**,", "({})", "is it {}?", "id:{}"])
def test_an_identifier_is_found_whole_in_prose_and_json(identifier: str, frame: str) -> None:
    """Codes, numbers with a name, hashes, dates and call sites come out exactly as written."""
    assert identifier in values("id", frame.format(identifier))


@pytest.mark.parametrize(
    "text",
    [
        "Plain English words, and/or others; he/she said yes/no/maybe on 24/7.",
        "We count 1 2 33 4,500 78750 and 3.14 or 1e-05.",
        "From JFK to SEA at 11AM, 06:00:00, or 03:00:00+1 with 500MB on the 20TH.",
        "UTF-8, utf8, SHA256, sha-512, x86_64, base64, ISO-8859-1, covid-19 and python3 on win32.",
        "A 24-hour, 18-month-old one-way trip, step-2 of gpt-4.",
        "PLEASE CANCEL THE FLIGHT NOW",
        "node.js, console.log and process.env, example.com e.g. this.",
        "2019-2020 and 05/20/2024",
    ],
)
def test_plain_words_and_numbers_are_no_identifiers(text: str) -> None:
    """What prose can say again without loss is not carried."""
    assert not values("id", text)
    assert not values("path", text)


def test_six_capitals_are_an_id_only_where_a_code_stands() -> None:
    """A word in capitals needs a JSON value or "reservation" before it; then it counts everywhere."""
    assert values("id", 'Is JMPLLP there? {"reservation_id": "JMPLLP"}') == {"JMPLLP"}
    assert values("id", "My reservation code is QWERTZ.") == {"QWERTZ"}
    assert not values("id", 'PLEASE, {"ORIGIN": 1, "status": "FAILED"}')


@pytest.mark.parametrize(
    "path",
    [
        "/testbed/src/marshmallow/fields.py",
        "/usr/bin",
        "src/marshmallow",
        "src/marshmallow/",
        "./run.sh",
        "../other/thing",
        "~/.bashrc",
        "~/notes/todo.txt",
        "setup.cfg",
        "README.md",
        "a1/b/c",
        "C:\\Users\\mia\\notes.txt",
        "\\\\server\\share\\x.doc",
        "app\\main.py",
        "/home/jürgen/datei.txt",
    ],
)
@pytest.mark.parametrize("frame", ["Open {} please.", "`{}`", "see ({}), then"])
def test_a_path_is_found_whole(path: str, frame: str) -> None:
    """Unix, Windows and relative paths come out exactly as written."""
    assert values("path", frame.format(path)) == {path}


def test_json_escapes_do_not_glue_words_or_double_backslashes() -> None:
    """A call's JSON is read as the strings that it holds; unknown and broken escapes do no harm."""
    text = "call write(" + json.dumps({"path": "C:\\new\\a.txt", "text": "import x\nsrc/a.py é \U0001f600"}) + ")"
    assert values("path", "Done.\n" + text, "assistant") == {"C:\\new\\a.txt", "src/a.py"}
    assert values("id", '["a\\u12", "\\nHAT136"]') == {"HAT136"}


def test_relative_backslashes_without_a_known_extension_are_no_path() -> None:
    """A regular expression is not a file."""
    assert not values("path", r"match \d+\w and a\b or \\d+\\w, \\x*")


def test_a_call_site_gives_the_site_and_its_path_and_diff_marks_are_dropped() -> None:
    """`a/` and `b/` of a diff do not make three files of one."""
    assert values("path", "--- a/src/x.py\n+++ b/src/x.py\nsrc/x.py:12: in f") == {"src/x.py"}
    assert values("id", "src/x.py:12:in_f") == {"src/x.py:12"}


def test_an_id_is_found_behind_a_mark() -> None:
    """What follows `@`, `+` or a slash of a token that is no path is looked at by itself."""
    assert values("id", "tool@2024-05-20 and HAT136+AB12CD") == {"2024-05-20", "HAT136", "AB12CD"}


def test_base64_lines_are_no_identifiers() -> None:
    """A long run of mixed characters is a blob, not a name."""
    line = "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1ub3/BxcXN0dXZ3eHl6QUJDREVGR0hJSktM+T1"
    assert extract_facts(rows(("tool", f"{line}\n{'x9' * 400}"))) == ()


def test_urls_lose_the_punctuation_around_them_only() -> None:
    """A URL keeps its own brackets and query; one of thousands of characters is dropped."""
    text = "See https://a.example/x_(y)?q=1#L7, (http://b.example/z). ftp://c.example! https://d.example/" + "x" * 600
    assert values("url", text) == {"https://a.example/x_(y)?q=1#L7", "http://b.example/z", "ftp://c.example"}
    assert not values("path", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is $1,234.50, not $ 5 or €3.", {"$1,234.50", "$ 5", "€3"}),
        ("135 USD, 20 euros, 12.5% and 3 %.", {"135 USD", "20 euros", "12.5%", "3 %"}),
        ('{"amount": 250, "total_price": "12.5", "subtotal":7, "price_usd": -3}', {"250", "12.5", "7", "-3"}),
        ('{"total_baggages": 3, "price_id": 4, "count": 5}', set()),
        ('{"amount": 250} was $250, and {"total": 1250} is $1,250', {"$250", "$1,250"}),
        ("$1.2M or ${x} or 5 of 10", {"$1.2M"}),
    ],
)
def test_amounts_are_money_percentages_and_priced_json_numbers(text: str, expected: set[str]) -> None:
    """A JSON number that somebody also wrote with a currency is the same amount."""
    assert values("amount", text) == expected


def test_the_written_and_the_bare_amount_are_counted_together() -> None:
    """`250` in a call and `$250` in prose are one fact with count 2, placed where it was seen last."""
    facts = extract_facts(rows(("user", "$250"), ("tool", '{"amount": 250}')))
    assert Fact("amount", "$250", 2, label="amount") in facts


def test_short_user_words_are_verbatim_and_long_ones_keep_head_and_tail() -> None:
    """A user's sentence survives in its own words; of a long text both ends do."""
    assert values("user", "  Never deploy on Fridays!  ", "user") == {"Never deploy on Fridays!"}
    (long,) = values("user", "start " + "x" * 1000 + " end", "user")
    assert long.startswith("start")
    assert " […] " in long
    assert long.endswith("end")
    assert len(long) <= 240
    assert not values("user", " ", "user")
    assert not values("user", "words", "tool")


@pytest.mark.parametrize(
    ("result", "fact"),
    [
        ("fine", "pytest -q"),
        ("2 tests\nexit code: 1", "pytest -q → exit 1"),
        ('{"returncode": 0}', "pytest -q → exit 0"),
        ("Traceback (most recent call last):\n  x\nTypeError: no", "pytest -q → TypeError: no"),
    ],
)
def test_a_command_carries_the_outcome_of_its_result(result: str, fact: str) -> None:
    """The exit code, else the last error line, stands behind the command."""
    found = extract_facts(rows(("assistant", "Now:\n" + bash("pytest -q")), ("tool", result)))
    assert fact in [f.value for f in found if f.kind == "command"]


def test_results_are_matched_to_calls_in_order_and_passed_over_calls_have_no_outcome() -> None:
    """Two calls in one row take two results; a call that a user row passed over stays bare."""
    found = extract_facts(
        rows(
            ("assistant", f"{bash('one')}\ncall think({{}})\n{bash('two')}\n{bash('three')}"),
            ("tool", "exit 1"),
            ("tool", "exit 2"),
            ("tool", "exit 3"),
            ("user", "stop it"),
            ("tool", "exit 4"),
            ("assistant", bash("four")),
        )
    )
    assert {f.value for f in found if f.kind == "command"} == {"one → exit 1", "two → exit 3", "three", "four"}


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ('{"command": "ls -F"}', "ls -F"),
        ('{"cmd": ["git", "status"]}', "git status"),
        ('{"command": "view", "path": "/x"}', None),
        ('{"command": 3}', None),
        ('{"command": "  "}', None),
        ('["command"]', None),
        ('{"command": "cut', None),
        ('{"command": ' + "[" * 100_000, None),
        ('{"query": "x"}', None),
        ("", None),
    ],
)
def test_only_shell_commands_are_commands(arguments: str, command: str | None) -> None:
    """An editor's verb, a wrong type and broken JSON are passed over."""
    assert commands.command_of(arguments) == command


def test_error_lines_come_from_results_and_from_prose_only_by_name() -> None:
    """Results report errors; source code, "0 failed" and an apology do not."""
    result = "ok\nError: total is 305\n 12: raise ValueError(x)\nfrom a import BError\n0 failed\nPermission denied\n"
    assert values("error", result) == {"Error: total is 305", "Permission denied"}
    assert values("error", "I am sorry, it failed.\nKeyError: 'x'", "assistant") == {"KeyError: 'x'"}


def test_a_long_error_line_is_cut_around_the_error() -> None:
    """At most 200 characters, and the word that makes it an error is among them."""
    (line,) = values("error", "x" * 500 + " TypeError: bad " + "y" * 500)
    assert len(line) <= 200
    assert "TypeError: bad" in line


def test_facts_are_newest_and_most_repeated_first() -> None:
    """One occurrence in the last row stands before one in the first; sixteen outweigh half of the age."""
    found = extract_facts(rows(("tool", "AAA111 " + "BBB222 " * 16), ("tool", "CCC333"), ("tool", "DDD444")))
    assert fact_values(found) == ["DDD444", "BBB222", "CCC333", "AAA111"]
    assert found[1].count == 16


def test_no_rows_have_no_facts() -> None:
    """Nothing in, nothing out."""
    assert extract_facts([]) == ()
    assert format_ledger(()) == ""
    assert merge_facts([]) == ()


def test_coverage_is_the_share_of_identifiers_that_stand_as_whole_words() -> None:
    """A part of a longer word or number does not count; words of users are not counted at all."""
    facts = [
        Fact("id", "HAT136"),
        Fact("amount", "$5"),
        Fact("path", "a/b.py"),
        Fact("url", "http://x"),
        Fact("user", "hi"),
    ]
    assert coverage(facts, "HAT1366 xHAT136 $5.50 $55") == 0.0
    assert coverage(facts, "HAT136, $5.") == 0.5
    assert coverage(facts, "x/a/b.py HAT1360 HAT136 $5 http://x") == 1.0
    assert coverage([Fact("user", "hi")], "") == 1.0
    assert [fact.kind for fact in identifiers(facts)] == ["id", "amount", "path", "url"]


def test_the_ledger_leaves_out_what_the_text_holds() -> None:
    """Nothing is paid for twice, and a user's lone "yes" is not paid for at all."""
    facts = [Fact("id", "HAT136"), Fact("id", "4WQ150"), Fact("user", "go\non"), Fact("user", "yes")]
    telling = [Fact("user", "42"), Fact("user", "请不要在周五部署")]
    assert build_ledger([*facts, *telling], "HAT136: go on", 100, count) == (Fact("id", "4WQ150"), *telling)


def test_one_long_user_text_does_not_crowd_out_identifiers_nor_they_it() -> None:
    """Codes, amounts and paths have four fifths of the room first, words the rest, kinds take turns."""
    facts = [Fact("user", "word " * 25), *(Fact("id", f"ABC{n:03d}") for n in range(100)), Fact("path", "src/a.py")]
    ledger = build_ledger(facts, "", 200, count)
    assert count(format_ledger(ledger)) <= 200
    assert ledger[0].kind == "user"
    assert ledger[-1].kind == "path"
    assert sum(fact.kind == "id" for fact in ledger) >= 20
    assert list(ledger) == [fact for fact in facts if fact in ledger]


def test_codes_amounts_and_paths_come_before_other_identifiers() -> None:
    """What prose loses most often has the room first, however new the dates and names are."""
    names = [Fact("id", f"some_user_{n:04d}") for n in range(40)]
    prime = [Fact("id", "4WQ150"), Fact("id", "HAT136"), Fact("amount", "$250"), Fact("path", "src/a.py")]
    ledger = build_ledger([*names, *prime], "", 60, count)
    assert set(prime) <= set(ledger)
    assert set(ledger) & set(names), "the rest of their room is not left empty"


def test_what_prose_held_before_comes_first_and_leaves_room_for_the_rest() -> None:
    """Somebody found it worth writing down: it stands before newer codes, in their share of the room."""
    said = [Fact("id", f"some_user_{n:04d}", said=True) for n in range(40)]
    prime = [Fact("id", f"ABC{n:03d}") for n in range(40)]
    ledger = build_ledger([*prime, *said], "some_user_0000 was seen", 120, count)
    kept = [fact for fact in ledger if fact.said]
    assert kept == said[1 : len(kept) + 1]
    assert 0.15 * 120 < count(format_ledger(kept)) <= 0.65 * 120 + count(LEDGER_LINE)
    assert len(ledger) > len(kept)


@pytest.mark.parametrize("value", ["4WQ150", "HAT136", "PROJ-7", "INV-2031-B7", "SKU-AB-12", "#12", "7f3a2b9c", "AA12"])
def test_short_ids_are_codes(value: str) -> None:
    """The ids that stand first in a ledger."""
    assert patterns.is_code(value)


@pytest.mark.parametrize(
    "value", ["mia_li_3668", "2024-05-20", "WELL-KNOWN-ISSUE", "9523456873", "10.0.0.1:8080", "a@b.example", "x" * 64]
)
def test_names_dates_and_hashes_are_no_codes(value: str) -> None:
    """They are carried too, where there is room."""
    assert not patterns.is_code(value)


def test_a_fact_that_does_not_fit_is_passed_over() -> None:
    """A long value does not keep shorter ones out; no room gives no ledger."""
    facts = [Fact("url", "http://" + "x" * 300), Fact("id", "HAT136")]
    assert build_ledger(facts, "", 30, count) == (Fact("id", "HAT136"),)
    assert build_ledger(facts, "", 3, count) == () == build_ledger(facts, "", -1, count)


def test_a_ledger_stays_within_its_tokens_under_a_counter_that_is_not_additive() -> None:
    """The last facts chosen are given back when the whole costs more than its parts."""
    facts = [Fact("id", f"ABC{n:03d}") for n in range(50)]
    ledger = build_ledger(facts, "", 30, lambda text: len(text) // 20)
    assert ledger
    assert len(format_ledger(ledger)) // 20 <= 30
    squared = build_ledger(facts, "", 60, lambda text: len(text) ** 2 // 40)
    assert len(format_ledger(squared)) ** 2 // 40 <= 60


def test_the_formatted_ledger_has_one_line_a_kind() -> None:
    """Values are on one line, words apart from each other."""
    kinds: tuple[FactKind, ...] = ("user", "path", "url", "id", "amount", "command", "error")
    ledger = [Fact(kind, f"{kind}\n1") for kind in kinds] + [Fact("id", "2"), Fact("user", "b")]
    assert format_ledger(ledger) == (
        f"{LEDGER_LINE}\nids: id 1, 2\namounts: amount 1\npaths: path 1\nurls: url 1\n"
        'user said: "user 1" | "b"\ncommands: command 1\nerrors: error 1'
    )


def test_identifiers_without_blanks_stand_apart_by_blanks() -> None:
    """A blank costs fewer tokens than a comma too; where a value holds a blank itself, commas tell them apart."""
    assert format_ledger([Fact("id", "A1"), Fact("id", "B2"), Fact("amount", "$1"), Fact("amount", "5 USD")]) == (
        f"{LEDGER_LINE}\nids: A1 B2\namounts: $1, 5 USD"
    )


def test_merging_adds_counts_and_puts_the_newest_first() -> None:
    """The place is that in the newest child which has the fact; repetition counts as among rows."""
    old = [Fact("id", "A1", 1), Fact("id", "B2", 16)]
    new = [Fact("id", "C3"), Fact("id", "A1", 2), Fact("id", "D4")]
    merged = merge_facts([old, [], new])
    assert merged == (Fact("id", "A1", 3), Fact("id", "C3"), Fact("id", "D4"), Fact("id", "B2", 16))


def test_what_one_child_has_said_stays_said() -> None:
    """Also where another child has it in its ledger alone."""
    merged = merge_facts([[Fact("id", "A1", said=True), Fact("id", "B2")], [Fact("id", "A1")]])
    assert {fact.value: fact.said for fact in merged} == {"A1": True, "B2": False}


SESSION = rows(
    ("user", "Book HAT136 for mia_li_3668, please."),
    ("assistant", 'call search({"q": 1})\ncall search({"q": 2})'),
    ("tool", '{"price": 152}'),
    ("tool", "Error: no seats"),
    ("assistant", "It costs $152.\n" + bash("ls -F")),
    ("tool", "exit 2"),
    ("user", "Yes, go on."),
)


def test_a_fallback_summary_says_what_it_is_what_was_asked_called_and_found() -> None:
    """Its first line names its origin; user words stand in order, the newest calls first."""
    text = fallback_text(SESSION, 400, count)
    assert text.split("\n") == [
        FALLBACK_LINE,
        "The user said:",
        "- Book HAT136 for mia_li_3668, please.",
        "- Yes, go on.",
        "Calls made: search (2), bash",
        'Newest: bash({"command": "ls -F"})',
        'Before it: search({"q": 2})',
        'Before it: search({"q": 1})',
        LEDGER_LINE,
        "amounts: $152",
        "commands: ls -F → exit 2",
        "errors: Error: no seats",
    ]


@pytest.mark.parametrize("room", [0, 1, 3, 10, 13, 14, 20, 40, 80])
def test_a_fallback_summary_never_exceeds_its_tokens(room: int) -> None:
    """Ten tokens hold a part of the first line, and no more is said."""
    text = fallback_text(SESSION, room, count)
    assert count(text) <= room
    assert text.startswith(FALLBACK_LINE[:20] if room >= 5 else "")


def test_of_many_user_words_a_fallback_summary_keeps_the_newest() -> None:
    """They take two fifths of the room, so that facts have theirs."""
    many = rows(*(("user", f"Please look at thing number {n} of ABC{n:03d}.") for n in range(60)))
    text = fallback_text(many, 150, count)
    assert "thing number 59" in text
    assert "thing number 0 " not in text
    assert "ABC0" in text.partition(LEDGER_LINE)[2]


def test_a_fallback_summary_of_nothing_is_its_first_line() -> None:
    """No user words, no calls, no facts."""
    assert fallback_text([], 100, count) == FALLBACK_LINE == fallback_text(rows(("assistant", "hm")), 100, count)


def test_fallback_summaries_that_fit_are_joined_whole_and_say_once_what_they_are() -> None:
    """The first line is a property of the whole."""
    assert join_fallbacks(["one", f"{FALLBACK_LINE}\ntwo", ""], 100, count) == f"{FALLBACK_LINE}\n\none\n\ntwo"
    assert join_fallbacks(["one", "two"], 100, count) == "one\n\ntwo"
    assert join_fallbacks([], 10, count) == ""


def test_user_words_that_follow_each_other_stand_under_one_heading() -> None:
    """A second heading would say nothing; behind anything else it stands again, and a model's list is no user word."""
    texts = ["The user said:\n- one", "The user said:\n- two\nCalls made: bash", "The user said:\n- three", "- four"]
    joined = "The user said:\n- one\n- two\nCalls made: bash\n\nThe user said:\n- three\n\n- four"
    assert join_fallbacks(texts, 100, count) == joined


@pytest.mark.parametrize("room", range(8, 120, 4))
def test_no_heading_of_a_joined_text_stands_over_nothing(room: int) -> None:
    """However small each text's share is, also where texts are joined a second time."""
    text = f"The user said:\n- Please look at this.\nCalls made: bash\n{LEDGER_LINE}\namounts: $152"
    ledger = f"{LEDGER_LINE}\ncommands: ls"
    once = join_fallbacks([text, ledger, text, text], 2 * room, count)
    for joined in (once, join_fallbacks([once, ledger, text, once], room, count)):
        lines = [*joined.split("\n"), ""]
        headings = [at for at, line in enumerate(lines) if line in ("The user said:", LEDGER_LINE)]
        assert all(lines[at + 1].strip(" -") for at in headings)
        assert count(joined) <= 2 * room


def test_joining_cuts_line_wise_and_favours_the_newest() -> None:
    """The newest keeps half as much again as the oldest; a short one leaves its share to the others."""
    texts = ["\n".join(f"{name} line {n:04d}" for n in range(100)) for name in ("old", "mid", "new")]
    joined = join_fallbacks([*texts, "short"], 300, count)
    kept = [joined.count(name) for name in ("old", "mid", "new", "short")]
    assert count(joined) <= 300
    assert kept[0] < kept[1] < kept[2]
    assert kept[3] == 1
    assert all(line in "\n".join(texts) for line in joined.split("\n")[:-1])
    assert 1.3 < kept[2] / kept[0] < 1.7


@pytest.mark.parametrize("before", ["", "The user said:\n- "])
@pytest.mark.parametrize("room", range(1, 30))
def test_a_line_that_must_be_cut_ends_with_a_word(room: int, before: str) -> None:
    """Half a path or amount would be a wrong one. A line without a whole word keeps what fits of its first."""
    text = before + "please compare src/billing/invoices.py with the amount of 1,250,000 that billing told us yesterday"
    joined = join_fallbacks([text], room, count)
    assert count(joined) <= room
    assert text.startswith(joined)
    assert text[len(joined) :][:1] in ("", " ", "\n") or " " not in joined


def test_joining_cuts_inside_a_line_that_alone_is_too_long() -> None:
    """A text of one line keeps its head rather than nothing."""
    joined = join_fallbacks(["a" * 1000, "b" * 1000], 50, count)
    assert joined.startswith("aaaa")
    assert joined.endswith("bbbb")
    assert 40 <= count(joined) <= 50
    assert join_fallbacks([FALLBACK_LINE + "\n" + "a" * 100], 1, count) == FALLBACK_LINE[:3]
    assert join_fallbacks(["one " + "b" * 1000], 50, count).endswith("bbbb"), "a word that is longer than any"
    assert join_fallbacks(["- " + "漢" * 1000], 10, count).endswith("漢"), "a script without spaces"


def test_a_transcript_is_parsed_back() -> None:
    """Names, empty texts and blank lines survive; what stands before the first block does not."""
    given = [
        RenderedRow(4, "user", None, "hello\n\n#4 user\n"),
        RenderedRow(5, "assistant", None, ""),
        RenderedRow(6, "tool", "get user", "#9 tool x\n#7 system\n# 7 user"),
        RenderedRow(7, "tool", "", "\n"),
    ]
    assert parse_rendered("preface\n" + render_rows(given)) == tuple(given)
    assert render_rows(given[1:3]).startswith("#5 assistant\n\n\n#6 tool get user\n#9 tool x")
    assert parse_rendered("no header") == () == parse_rendered("")


def test_blocks_may_follow_each_other_without_a_blank_line() -> None:
    """A transcript that somebody trimmed is read all the same."""
    parsed = parse_rendered("#1 user\nhi\n#2 assistant\n#3 tool x\nok")
    assert [(row.text, row.name) for row in parsed] == [("hi", None), ("", None), ("ok", "x")]


def test_a_name_with_a_line_end_does_not_break_the_format() -> None:
    """Tool names come from outside."""
    assert parse_rendered(render_rows([RenderedRow(1, "tool", "a\nb", "x")])) == (RenderedRow(1, "tool", "a b", "x"),)


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "1",
        "/",
        "\\",
        "_",
        "-",
        ".",
        " ",
        "\n",
        '"',
        "$",
        "#",
        "[",
        "é",
        "\ud800",
        "1,",
        "a/",
        "_a1",
        "Error ",
        "$1",
    ],
)
@pytest.mark.parametrize("role", ["tool", "user"])
@pytest.mark.usefixtures("no_hang")
def test_a_huge_text_of_one_thing_is_no_hang(unit: str, role: str) -> None:
    """No pattern goes back over what it has read, and no fact is as long as the text."""
    facts = extract_facts(rows((role, unit * (HUGE // len(unit)))))
    assert all(len(fact.value) <= 500 for fact in facts)


def test_a_booking_gives_all_its_codes_and_amounts() -> None:
    """A booking's call and results give every code, payment and price that the next turns need."""
    call = {"user_id": "mia_li_3668", "flights": [{"flight_number": "HAT136", "date": "2024-05-20"}]}
    result = {"reservation_id": "HATHAT", "payment_history": [{"payment_id": "credit_card_4421486", "amount": 55}]}
    given = rows(("assistant", f"call book({json.dumps(call)})"), ("tool", json.dumps(result, separators=(",", ":"))))
    assert set(fact_values(extract_facts(given))) == {
        "mia_li_3668",
        "HAT136",
        "2024-05-20",
        "HATHAT",
        "credit_card_4421486",
        "55",
    }
