"""What code says without a model: facts, ledgers and fallback summaries."""

from __future__ import annotations

import json

import pytest
from context_summarize.facts.extraction import coverage, extract_facts, identifiers
from context_summarize.facts.fact import Fact, FactKind
from context_summarize.facts.ledger import build_ledger
from context_summarize.facts.ledger_lines import LEDGER_LINE
from context_summarize.facts.merged import merge_facts

from context_summarize.notes.fallback import FALLBACK_LINE, fallback_text, join_fallbacks
from context_summarize.transcript.rows import RenderedRow
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


IDENTIFIERS = [
    "4WQ150", "HAT136", "mia_li_3668", "credit_card_4421486", "PROJ-7", "7f3a2b9c", "#123", "octo/repo#42",
    "123e4567-e89b-12d3-a456-426614174000", "2024-05-20", "2024-05-14T10:44:24.125+02:00", "mia.li3818@example.com",
    "10.0.0.1:8080", "fields.py:1474", "555-123-4567", "9523456873", "cus4f8Xk2",
]  # fmt: skip
PATHS = [
    "/testbed/src/marshmallow/fields.py", "src/marshmallow/", "./run.sh", "~/notes/todo.txt", "setup.cfg",
    "C:\\Users\\mia\\notes.txt", "\\\\server\\share\\x.doc", "/home/jürgen/datei.txt",
]  # fmt: skip


@pytest.mark.parametrize("frame", ["Take {} now.", '{{"key":"{}"}}', "**{}**,"])
def test_an_identifier_is_found_whole_in_prose_and_json(frame: str) -> None:
    """Codes, numbers with a name, hashes, dates and call sites come out exactly as written."""
    for identifier in IDENTIFIERS:
        assert identifier in values("id", frame.format(identifier))


@pytest.mark.parametrize("frame", ["Open {} please.", "`{}`"])
def test_a_path_is_found_whole(frame: str) -> None:
    """Unix, Windows and relative paths come out exactly as written."""
    for path in PATHS:
        assert values("path", frame.format(path)) == {path}


def test_plain_words_and_numbers_are_no_identifiers() -> None:
    """What prose can say again without loss is not carried."""
    for text in (
        "Plain English words, and/or others; he/she said yes/no/maybe on 24/7.",
        "We count 1 2 33 4,500 78750 and 3.14 or 1e-05.",
        "UTF-8, utf8, SHA256, x86_64, base64, ISO-8859-1, covid-19 and python3 on win32.",
        "PLEASE CANCEL THE FLIGHT NOW, a 24-hour, one-way trip, step-2 of gpt-4.",
        "node.js, console.log and process.env, example.com e.g. this.",
    ):
        assert not values("id", text)
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


def test_error_lines_come_from_results_and_from_prose_only_by_name() -> None:
    """Results report errors; source code, "0 failed" and an apology do not."""
    result = "ok\nError: total is 305\n 12: raise ValueError(x)\nfrom a import BError\n0 failed\nPermission denied\n"
    assert values("error", result) == {"Error: total is 305", "Permission denied"}
    assert values("error", "I am sorry, it failed.\nKeyError: 'x'", "assistant") == {"KeyError: 'x'"}


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


def test_merging_adds_counts_and_puts_the_newest_first() -> None:
    """The place is that in the newest child which has the fact; repetition counts as among rows."""
    old = [Fact("id", "A1", 1), Fact("id", "B2", 16)]
    new = [Fact("id", "C3"), Fact("id", "A1", 2), Fact("id", "D4")]
    merged = merge_facts([old, [], new])
    assert merged == (Fact("id", "A1", 3), Fact("id", "C3"), Fact("id", "D4"), Fact("id", "B2", 16))


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


def test_fallback_summaries_that_fit_are_joined_whole_and_say_once_what_they_are() -> None:
    """The first line is a property of the whole."""
    assert join_fallbacks(["one", f"{FALLBACK_LINE}\ntwo", ""], 100, count) == f"{FALLBACK_LINE}\n\none\n\ntwo"
    assert join_fallbacks(["one", "two"], 100, count) == "one\n\ntwo"
    assert join_fallbacks([], 10, count) == ""


@pytest.mark.parametrize("unit", ["1", "/", "_", '"', "$", "1,", "_a1", "Error "])
@pytest.mark.parametrize("role", ["tool", "user"])
@pytest.mark.usefixtures("no_hang")
def test_a_huge_text_of_one_thing_is_no_hang(unit: str, role: str) -> None:
    """No pattern goes back over what it has read, and no fact is as long as the text."""
    facts = extract_facts(rows((role, unit * (HUGE // len(unit)))))
    assert all(len(fact.value) <= 500 for fact in facts)
