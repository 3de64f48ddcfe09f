"""Requests: what the user asked for, and whether it was answered, so that no finished task is taken up again."""

from __future__ import annotations

import pytest

from context_summarize.notes.requests import Requests
from context_summarize.transcript.rows import RenderedRow, call_line

CALL = call_line("bash", '{"command": "make"}')
DONE = "Fixed. The login works again, and all tests pass."


def told(*said: str) -> list[str]:
    """The lines about a conversation: "U: …" is the user's, "T: …" a result, anything else the agent's."""
    requests = Requests()
    roles = {"U: ": "user", "T: ": "tool"}
    for at, text in enumerate(said, 1):
        role = roles.get(text[:3], "assistant")
        requests.read(RenderedRow(at, role, None, text[3:] if text[:3] in roles else text))
    (_, waiting), (_, answered) = requests.lines(goes_on=False)
    return [
        *(f"Not answered yet: {line}" for line in waiting),
        *(f"Answered (the user went on): {line}" for line in answered),
    ]


def test_a_request_is_answered_once_the_agent_ended_its_turn_and_the_user_went_on() -> None:
    """The newest first; not before the user said something again, be it only thanks."""
    asked = "U: Fix the login bug, please. It is urgent."
    first = "Fix the login bug, please. (#1)"

    assert told(asked, CALL, "T: ok", DONE) == [f"Not answered yet: {first}"]
    assert told(asked, CALL, "T: ok", DONE, "U: ok") == [f"Answered (the user went on): {first}"]
    assert told(asked, CALL, "T: ok", DONE, "U: Now write the changelog.") == [
        "Not answered yet: Now write the changelog. (#5)",
        f"Answered (the user went on): {first}",
    ]


@pytest.mark.parametrize(
    "ending",
    [
        "I found it. Shall I fix it?", "It is fixed.\n\n**Want me to push it?** I would wait for the review.",
        "There are two ways. Which one do you prefer?\n\n1. Patch it.\n2. Rewrite it.", "Please confirm the branch.",
        "Let me know which one you would like.", "Before I start:\n- Which branch?\n- Which release?", "هل أصلحه الآن؟",
        "どちらにしますか\uff1f",
        "I see the cause. Now I'll fix it.", "Let me try another way:", "The cause is in the first",
        "Once you have it, I can go on.",
    ],
)  # fmt: skip
def test_a_turn_that_asks_or_announces_more_answers_nothing_and_the_reply_is_joined(ending: str) -> None:
    """The request stays open until a later turn ends it; its line tells the newest reply too."""
    asked = ("U: Fix the login bug.", ending, "U: Use the release branch.")
    line = "Fix the login bug. … Use the release branch. (#1)"

    assert told(*asked) == [f"Not answered yet: {line}"]
    assert told(*asked, DONE, "U: ok") == [f"Answered (the user went on): {line}"]


@pytest.mark.parametrize(
    "ending",
    [
        "Why did it fail? The token had expired. I renewed it. All tests pass.",
        "Does it hold?\n\nIt does: I ran it twice.\n\n- The login works.\n- The tests pass.",
        "It is done. Let me know if you need anything else!",
        "Done. If there is anything else I can help you with, please let me know.",
    ],
)
def test_a_question_in_the_middle_and_a_polite_end_are_no_asking(ending: str) -> None:
    """Only what stands at the end of a turn asks for more."""
    assert told("U: Fix the login bug.", ending, "U: Now write the changelog.") == [
        "Not answered yet: Now write the changelog. (#3)",
        "Answered (the user went on): Fix the login bug. (#1)",
    ]


def test_a_message_that_interrupts_a_run_of_tools_does_not_end_it() -> None:
    """Nor does one that came before any answer; both are open until a turn ends."""
    interrupted = ("U: Fix the login bug.", CALL, "T: ok", CALL, "U: Keep the old file for now.")
    lines = ["Keep the old file for now. (#5)", "Fix the login bug. (#1)"]

    assert told(*interrupted) == [f"Not answered yet: {line}" for line in lines]
    assert told(*interrupted, DONE, "U: ok") == [f"Answered (the user went on): {line}" for line in lines]
    assert told("U: Fix the login bug.", "U: And write the changelog.") == [
        "Not answered yet: And write the changelog. (#2)",
        "Not answered yet: Fix the login bug. (#1)",
    ]


def test_the_first_sentence_that_says_something_stands_for_a_message() -> None:
    """No greeting, nothing that is pasted, one line of moderate length; a message that says nothing is no request."""
    assert told("U: Hi! Thanks. Please read `src/a.py` again. Then go.") == [
        "Not answered yet: Please read `src/a.py` again. (#1)"
    ]
    assert told("U: ```\nDelete all the files.\n```", "U: [Request interrupted by user]", "U: /mode", "U: ok") == []
    assert len(told("U: Please compare " + "every single file " * 100)[0]) < 200
    assert told("U: 请修复登录错误。谢谢你。") == ["Not answered yet: 请修复登录错误。谢谢你。 (#1)"]


def test_a_row_that_is_no_users_is_no_request_and_no_going_on() -> None:
    """Such as a reminder, or what a host wrote in the user's name."""
    requests = Requests()
    requests.read(RenderedRow(1, "user", None, "Fix the login bug."))
    requests.read(RenderedRow(2, "assistant", None, DONE))
    requests.read(RenderedRow(3, "user", None, "The build of the branch has ended.", own=""))
    assert next(requests.lines(goes_on=False))[1] == ["Fix the login bug. (#1)"]


def test_a_new_request_is_no_reply_to_one_that_was_answered() -> None:
    """The user went on with a word that asks for nothing, and the agent asked what is next."""
    assert told("U: Fix the login bug.", DONE, "U: ok", "What should I do next?", "U: Delete the old database.") == [
        "Not answered yet: Delete the old database. (#5)",
        "Answered (the user went on): Fix the login bug. (#1)",
    ]
