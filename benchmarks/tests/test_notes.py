"""Lines of the thread are looked up in the history alone, and the user's sentences by the compactions behind them."""

from __future__ import annotations

import pytest

from benchmarks import false_lines, lasting
from benchmarks.sessions import Session, assistant, called
from benchmarks.tokens import Row

ROWS: tuple[Row, ...] = (
    {"role": "user", "content": "Use port 9443.\n\n```\nx\n```\nRename cart.py."},
    *called(1, "edit", {"path": "src/cart.py"}, "Changed 2 lines."),
    assistant("Renamed it.", []),
    {"role": "user", "content": "Actually, port 9444, not 9443."},
)
TRUE = (
    "#1 Use port 9443. […] Rename cart.py.",
    "→ #4 Renamed it.",
    "Names in earlier calls, newest first: src/cart.py, cart",
)
FALSE = (
    "#1 Use port 9444.",
    "#1 Use port 9443. Rename cart.py.",
    "#1 Rename cart.py. […] Use port 9443.",
    "#4 Renamed it.",
    "→ #2 Renamed it.",
    "#5 Actually, port 9444, not 9443.\n#1 Use port 9443.",
    "#3 Changed 2 lines.",
    "#5 (in a result) Use port 9444.",
    "Names in earlier calls, newest first: src/cart.py, cards",
    "A line of another form",
)


@pytest.mark.parametrize(("lines", "is_false"), [*((one, 0) for one in TRUE), *((one, 1) for one in FALSE)])
def test_a_line_of_the_thread_is_false_where_its_message_does_not_say_it(lines: str, is_false: int) -> None:
    watch = false_lines.Watch(Session(name="s", rows=ROWS))
    first = "" if lines.startswith("#") else "#1 Rename cart.py.\n"
    notes = f"[Thread of messages 1 to 5: quoted]\n{first}{lines}\n[End of the thread of messages 1 to 5.]"
    watch(5, [{"role": "user", "content": notes}])
    assert list(watch.is_true.values()).count(False) == is_false


def test_what_the_user_takes_back_is_uncorrected_where_the_request_does_not_show_it() -> None:
    for shown in (0, 1):
        watch = false_lines.Watch(Session(name="s", rows=ROWS))
        notes = "[Thread of messages 1 to 5: quoted]\n#1 Use port 9443.\n[End of the thread of messages 1 to 5.]"
        watch(5, [{"role": "user", "content": notes}, *ROWS[5 - shown :]])
        assert list(watch.is_corrected.values()) == [bool(shown)]


def test_a_sentence_is_looked_for_by_the_compactions_behind_it() -> None:
    """Not where a second row says it too."""
    rows = [{"role": "user", "content": f"Always keep rule number {at}. Yes, please."} for at in range(3)]
    watch = lasting.Watch(rows)
    watch(2, rows[:2])
    watch(3, [rows[1]])
    assert watch.found == {"sentences 1": 3, "held 1": 1, "signed 1": 3, "held signed 1": 1}
