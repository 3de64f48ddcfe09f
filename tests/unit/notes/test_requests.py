"""Requests: what the user asked for, with what the agent said last, so that no finished task is taken up again."""

from __future__ import annotations

from context_summarize.notes.requests import Requests
from context_summarize.transcript.rows import RenderedRow, call_line

CALL = call_line("bash", '{"command": "make"}')
DONE = "Fixed. The login works again."


def told(*said: str, goes_on: bool = False) -> tuple[list[str], list[str]]:
    """The lines about a conversation: "U: …" is the user's, "T: …" a result, anything else the agent's."""
    requests = Requests()
    roles = {"U: ": "user", "T: ": "tool"}
    for at, text in enumerate(said, 1):
        role = roles.get(text[:3], "assistant")
        requests.read(RenderedRow(at, role, None, text[3:] if text[:3] in roles else text))
    (_, waiting), (_, answered) = requests.lines(goes_on=goes_on)
    return waiting, answered


def test_a_request_waits_until_the_agent_has_ended_its_turn_and_the_user_went_on() -> None:
    """Then the agent's last words stand beside it, and whoever reads them sees whether it is done."""
    asked = ("U: Fix the login bug, please. It is urgent.", CALL, "T: ok", DONE)
    first = "Fix the login bug, please. (#1)"

    assert told(*asked) == ([first], [])
    assert told(*asked, goes_on=True) == ([], [f"{first} → {DONE}"])
    assert told(*asked, "U: Now write the changelog.") == (["Now write the changelog. (#5)"], [f"{first} → {DONE}"])


def test_a_message_that_interrupts_a_run_of_tools_does_not_end_it() -> None:
    """Nor does one that came before any answer; the end of a turn answers the newest one."""
    interrupted = ("U: Fix the login bug.", CALL, "T: ok", CALL, "U: Keep the old file for now.")
    both = ["Keep the old file for now. (#5)", "Fix the login bug. (#1)"]

    assert told(*interrupted) == (both, [])
    assert told(*interrupted, DONE, goes_on=True) == ([], [f"{both[0]} → {DONE}", both[1]])


def test_the_first_sentence_that_says_something_stands_for_a_message() -> None:
    """No greeting, nothing that is pasted, one line of moderate length; a message that says nothing is no request."""
    assert told("U: Hi! Thanks. Please read `src/a.py` again. Then go.")[0] == ["Please read `src/a.py` again. (#1)"]
    assert told("U: ```\nDelete all the files.\n```", "U: [Request interrupted by user]", "U: /mode", "U: ok")[0] == []
    assert len(told("U: Please compare " + "every single file " * 100)[0][0]) < 200
    assert told("U: 请修复登录错误。谢谢你。")[0] == ["请修复登录错误。 (#1)"]


def test_long_last_words_are_told_by_their_start_and_their_end() -> None:
    long = f"It is fixed. {'It was a long way. ' * 20}Shall I push it?"
    [line] = told("U: Fix the login bug.", long, goes_on=True)[1]

    assert "→ It is fixed. " in line
    assert line.endswith("Shall I push it?")
    assert len(line) < 200


def test_a_row_that_is_no_users_is_no_request_and_no_going_on() -> None:
    """Such as a reminder, or what a host wrote in the user's name."""
    requests = Requests()
    requests.read(RenderedRow(1, "user", None, "Fix the login bug."))
    requests.read(RenderedRow(2, "assistant", None, DONE))
    requests.read(RenderedRow(3, "user", None, "The build of the branch has ended.", own=""))
    assert next(requests.lines(goes_on=False))[1] == ["Fix the login bug. (#1)"]
