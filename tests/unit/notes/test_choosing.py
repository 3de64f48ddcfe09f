"""One score says which values and sentences stand in the row."""

from __future__ import annotations

from collections.abc import Sequence

from context_summarize.notes.choosing import chosen, ranked, written
from context_summarize.notes.values import MOST, Candidates
from context_summarize.transcript.rows import RenderedRow


def count(text: str) -> int:
    return len(text) // 4 + 1


def read(rows: Sequence[tuple[str, str]]) -> Candidates:
    found = Candidates()
    for at, (role, text) in enumerate(rows, 1):
        found.read(RenderedRow(at, role, None, text))
    return found


def row(candidates: Candidates, room: int = 40, shown: str = "") -> str:
    return written(chosen(ranked(candidates, shown, count), room), candidates.word_rows)


SKUS = [("tool", f"SKU-{number:05d} SKU-{number + 1:05d} SKU-{number + 2:05d}") for number in range(0, 300, 3)]


def test_what_the_user_said_comes_before_lists_of_tools() -> None:
    assert "INV-4711" in row(read([("user", "Please look at INV-4711."), *SKUS]))


def test_what_later_rows_use_again_comes_before_what_was_seen_once() -> None:
    rows = [
        *SKUS[:50],
        ("tool", "found K-9001"),
        ("assistant", "I take K-9001."),
        ("assistant", "K-9001 it is."),
        *SKUS[50:],
    ]

    assert "K-9001" in row(read(rows))


def test_what_a_summary_told_comes_back_once_the_summary_is_gone() -> None:
    candidates = read([("tool", "found K-9001"), *SKUS])
    before = row(candidates)
    candidates.mention("The agent found K-9001.")

    assert "K-9001" not in before
    assert "K-9001" in row(candidates)
    assert "K-9001" not in row(candidates, shown="The agent found K-9001.")


def test_a_figure_is_told_with_words_of_its_sentence() -> None:
    rows = [
        ("user", f"Pump {name} was checked this morning and it needed {size}ms.")
        for name, size in (("alpha", 4478), ("beta", 4441), ("gamma", 4512))
    ]
    text = row(read(rows), 400)

    assert all(0 <= text.find(size) - text.find(name) < 60 for name, size in (("alpha", "4478"), ("beta", "4441")))


def test_room_is_kept_and_candidates_are_bounded() -> None:
    rows = [("tool", " ".join(f"ID-{number:06d}" for number in range(at, at + 500))) for at in range(0, 30_000, 500)]
    candidates = read(rows)

    assert len(candidates.values) <= MOST * 5 // 4
    for room in (0, 30, 300):
        assert sum(entry.tokens for entry in chosen(ranked(candidates, "", count), room)) <= room


def test_what_a_view_still_holds_of_the_values_of_some_rows_is_counted_and_three_that_are_gone_are_named() -> None:
    """What the user said first; no bare number, no plain word, and nothing of other rows."""
    rows = [
        ("tool", "K-0001 of 1999-01-01"),
        ("user", "Please look at INV-4711 in src/a.py, it took 250ms and 12 runs."),
        ("tool", '{"ticket": "T-1317", "due": "2024-05-01", "count": 3}'),
        ("tool", "later: T-2000"),
    ]
    found = read(rows).kept(2, 3, "The file src/a.py is slow: 250ms. The account is INV-47110.")

    assert (found.kept, found.lost) == (2, 3)
    assert (found.examples[0], {*found.examples}) == ("INV-4711", {"INV-4711", "2024-05-01", "T-1317"})
    assert read(rows).kept(2, 3, "T-1317 INV-4711 src/a.py 250ms 2024-05-01").lost == 0


def test_a_value_that_a_word_of_a_secret_names_is_told_nowhere() -> None:
    told = row(read([("user", "The vault password: orchid77. The case number: A-4711."), *SKUS]), 400)

    assert "A-4711" in told
    assert "orchid77" not in told
