"""The kit from outside: how turns become rows and rows turns, and where the desk gets the kit's turns."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.kit import as_text, rows_of, set_into


class Turn(NamedTuple):
    role: str
    text: str


def test_turns_are_set_before_users_rows_and_a_view_in_one_turn_becomes_its_rows_again() -> None:
    talk = [Turn("user", "Only\nGo."), Turn("assistant", "Noted.")]
    desk = [{"role": role, "content": str(at)} for at in range(3) for role in ("user", "assistant")]
    made = set_into(desk, [Turn("system", "Be brief."), *talk, *talk])
    assert made == (*talk, ("user", "0"), ("assistant", "0"), *talk, *made[6:])
    rows = rows_of([Turn("system", "Be brief."), *made, Turn("tool", "It is blue.")])
    frame = {"role": "system", "content": "[Summary]"}
    assert rows_of([Turn("system", as_text([*rows, frame]))]) == [*rows, {**frame, "role": "user"}]
