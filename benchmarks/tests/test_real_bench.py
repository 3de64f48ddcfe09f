"""The comparison on real conversations: cells are kept while they hold, equal sizes are equal, and the page says it."""

from __future__ import annotations

import json
from concurrent.futures import Executor, Future

import pytest

from benchmarks.field.model import Traits
from benchmarks.field.result import Prices
from benchmarks.real import __main__ as command
from benchmarks.real import figures, lost, pi, readme, recordings, results, sets
from benchmarks.real.chats import Chat, DataMissingError, Message, Question
from benchmarks.real.judge import Held, judged, within
from benchmarks.real.play import HEAD, RECALL, SUMMARY, VERBATIM, Cell, Piece, play
from benchmarks.real.results import Kept, Key


class Inline(Executor):
    """Runs what it is given at once, in this process."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 (the future carries it)
            future.set_exception(error)
        return future


@pytest.fixture
def chat():
    """A chat of about 6,000 tokens: a port and an instruction at its start, talk after them."""
    talk = "The weather over the harbour stayed calm while the committee went on about seating and lunch. "
    rows = [Message("user", "Always answer politely and briefly in lowercase letters. The server port is 8443.")]
    for turn in range(40):
        rows.append(Message("assistant", f"Turn {turn}. {talk * 5}"))
        rows.append(Message("user", f"Go on with turn {turn + 1}, please. {talk * 2}.".replace(". .", ".")))
    asked = Question("one", "Which port does the server use?", "8443", (0,), ("8443",))
    rule = Question("rule", "How?", "", (0,), (), "Always answer politely and briefly in lowercase letters")
    return Chat("made-1", tuple(rows), (asked, rule))


@pytest.fixture
def made(chat, monkeypatch):
    """A data set with that chat, in place of all others."""
    data = sets.DataSet("made", "a made chat", "none", lambda: [chat], 4_000)
    monkeypatch.setitem(sets.SETS, "made", data)
    sets.chats.cache_clear()
    return data


def _played(chat, who="KeepLast"):
    return play(chat, who, 4_000, Traits(), Prices())


def test_ours_is_played_and_its_last_view_is_kept_by_kind(chat):
    cell = _played(chat, "ours")

    assert cell.result is not None
    assert (cell.result.lost_turns, cell.result.over_budget, cell.result.broken_pairs) == (0, 0, 0)
    assert {piece.kind for piece in cell.view} == {SUMMARY, VERBATIM}
    assert sum(piece.size for piece in cell.view) <= 4_000
    assert cell.view[-1].text == chat.messages[-1].content
    assert Cell.from_json(cell.as_json()) == cell


def test_one_recall_is_asked_for_every_question_with_gold_values(chat):
    assert _played(chat, RECALL) == Cell(None, (), (True,))


def test_a_view_is_cut_to_a_size_messages_first_and_the_end_of_a_row_stays():
    view = [Piece("s" * 10, 10, HEAD), Piece("abcdefghij", 10, SUMMARY), Piece("0123456789", 10, VERBATIM)]

    assert within(view, 30) == view
    assert within(view, 24) == [*view[:2], Piece("6789", 4, VERBATIM)]
    assert within(view, 15) == [view[0], Piece("fghij", 5, SUMMARY)]
    assert within(view, 0) == []


def test_a_view_is_judged_beside_the_newest_messages_of_its_size(chat):
    cell = _played(chat)
    summary = Piece("The server port is 8443, it was said.", 12, SUMMARY)
    newest = Piece("Nothing else.", 8, VERBATIM)
    messages = [Piece(message.content, 20, VERBATIM) for message in chat.messages]

    found = judged(chat, messages, Cell(cell.result, (summary, newest), ()), room=5)

    assert (found.size, found.view) == (20, Held(1, 1, 0))
    assert (found.tail, found.cut) == (Held(), Held())


def test_cells_are_kept_until_other_code_measures(tmp_path, chat, monkeypatch):
    kept, key = Kept(tmp_path), Key("made", chat.name, "KeepLast")
    assert kept.get(key) is None
    cell = _played(chat)
    kept.put(key, cell)

    assert kept.get(key) == cell
    monkeypatch.setattr(results, "made_by", lambda contestant: "other code")
    assert kept.get(key) is None


@pytest.mark.usefixtures("made")
def test_a_cut_run_goes_on_and_says_what_lacks(tmp_path, chat):
    kept = Kept(tmp_path)
    wanted = results.keys({"made": [chat]}, ["KeepLast", "Nobody"])
    given = {"at_once": 1, "traits": Traits(), "prices": Prices(), "say": lambda text: None}

    cut = results.run(wanted, kept, Inline(), seconds=0, **given)
    assert not cut.cells
    assert set(cut.missing) == set(wanted)
    done = results.run(wanted, kept, Inline(), seconds=60, **given)
    assert [key.contestant for key in done.cells] == [RECALL, "KeepLast"]
    assert list(done.missing.values()) == ["KeyError: 'Nobody'"]
    again = results.run(wanted[:2], kept, Inline(), seconds=0, **given)
    assert (again.cells, again.missing) == (done.cells, {})


@pytest.mark.usefixtures("made")
def test_the_page_names_data_window_summariser_and_every_figure(tmp_path, chat, monkeypatch):
    monkeypatch.setattr(command, "workers", lambda at_once: Inline())
    monkeypatch.setattr(figures, "PEERS", ("plain",))  # no other library is needed here
    page = tmp_path / "page.md"
    given = ["--sets", "made", "--only", "ours", "KeepLast", "--results", str(tmp_path / "cells"), "--page", str(page)]

    assert command.main(given) == 0

    text = page.read_text("utf-8")
    assert text.startswith("# Measured on real conversations\n\n1. On 1 conversations of made (")
    assert [line[:2] for line in text.splitlines()[2:7]] == ["1.", "2.", "3.", "4.", "5."]
    assert "window 4,000 tokens" in text
    assert "| ours | 1 | 1 | 1 | 1/1 |" in text
    assert "What the figures cannot tell" in text
    assert chat.messages[5].content[:40] not in text


@pytest.mark.usefixtures("made")
def test_the_table_of_the_readme_is_written_between_its_marks(chat, monkeypatch):
    monkeypatch.setattr(figures, "PEERS", ("plain",))
    cells = {Key("made", chat.name, who): _played(chat, who) for who in ("ours", "KeepLast")}
    found = figures.figures({"made": [chat]}, cells)
    other = "| a summariser that raises | 0 | 0 | `make bench-faults` |"
    text = f"before\n{readme.BEGIN}\nthe table before\n{other}\n{readme.END}\nafter\n"

    new = readme.renewed(text, found)

    assert new.startswith(f"before\n{readme.BEGIN}\n1 conversations of made, ")
    assert new.endswith(f"|\n{other}\n{readme.END}\nafter\n")
    assert "| standing instructions kept | 1 of 1 | 0 (KeepLast) | `make bench-real` |" in new
    assert "the table before" not in new
    assert readme.renewed(new, found) == new
    assert readme.renewed("no marks", found) == "no marks"


def test_missing_data_say_what_to_do(capsys, monkeypatch):
    def missing():
        raise DataMissingError("run python -m benchmarks.real.fetch")

    monkeypatch.setitem(sets.SETS, "absent", sets.DataSet("absent", "", "", missing))
    assert command.main(["--sets", "absent"]) == 1
    assert "benchmarks.real.fetch" in capsys.readouterr().err


def test_a_pi_fixture_is_read_with_its_calls_and_the_identifier_of_each_question(tmp_path):
    call = {"type": "toolCall", "id": "c1", "name": "query", "arguments": {"probe": "probe-1-4"}}
    fixture = {
        "id": "s1",
        "messages": [
            {"role": "user", "content": "work-item-1-2:DONE|receipt=receipt-ab1|next=next-cd2; other"},
            {"role": "assistant", "content": [{"type": "text", "text": "I ask."}, call]},
            {"role": "toolResult", "toolCallId": "c1", "toolName": "query", "content": [{"type": "text", "text": "x"}]},
        ],
        "sharedTail": [{"role": "user", "content": "Go on."}],
        "questions": [
            {
                "category": "task_continuation",
                "question": "What is the checkpoint for work-item-1-2? Return it.",
                "expected": "DONE|receipt=receipt-ab1|next=next-cd2",
            }
        ],
    }

    folder = tmp_path / pi.RUN
    folder.mkdir(parents=True)
    (folder / "fixtures.json").write_text(json.dumps([fixture]))
    (folder / "summary.json").write_text(json.dumps({"byArm": {"full_context": {"accuracy": 1}}}))

    (chat,) = pi.load_all(tmp_path)

    assert pi.anchors(tmp_path) == {"full_context": 1}

    assert [row["role"] for row in chat.rows()] == ["user", "assistant", "tool", "user"]
    assert chat.rows()[1]["tool_calls"] == [{"id": "c1", "tool": "query", "arguments": {"probe": "probe-1-4"}}]
    assert chat.rows()[2] == {"role": "tool", "content": "x", "tool_call_id": "c1", "name": "query"}
    asked = chat.questions[0]
    assert (asked.sources, asked.golds, asked.words) == ((0,), ("receipt-ab1", "next-cd2"), {"work-item-1-2"})


def test_the_recording_asks_for_what_the_last_result_about_a_reservation_says():
    (chat,) = recordings.load_all()
    asked = chat.questions[0]

    assert asked.text == f"What is the user id of reservation {asked.subject}?"
    assert asked.answer in chat.messages[asked.sources[0]].content
    assert all(question.words == {question.subject.lower()} for question in chat.questions)


def test_the_densest_context_is_read_without_the_part_that_its_authors_compacted(tmp_path):
    folder = tmp_path / lost.RUN
    folder.mkdir(parents=True)
    rows = [{"role": "user", "content": "A summary."}, {"role": "user", "content": "I paid $420 in Paris."}]
    whole = {"question_type": "user", "message_start": 1, "message_end": 2, "compacted": False}
    facts = [
        {**whole, "question": "What did I pay?", "answer": "$420."},
        {**whole, "question": "Did I pay?", "answer": "Yes."},
        {**whole, "question": "Who am I?", "answer": "Ann", "message_start": 0, "compacted": True},
    ]
    (folder / "d80_C1.json").write_text(json.dumps(rows))
    (folder / "d80_C1_meta.json").write_text(json.dumps({"facts": facts}))

    (chat,) = lost.load_all(tmp_path)

    assert [(one.text, one.golds, one.sources) for one in chat.questions] == [
        ("What did I pay?", ("$420",), (1,)),
        ("Did I pay?", (), ()),
    ]
