"""Parts, diffs and marks, for every input: nothing is lost in silence, and no number is wrong."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from context_summarize.transcript.changes import changes, diff
from context_summarize.transcript.frames import framed, tag_of
from context_summarize.transcript.marks import mark, renumber, without_marks
from context_summarize.transcript.part import stable_length
from tests.properties.strategies import texts
from tests.support.parts import SEGMENT, groups_of, log_of, text_of
from tests.support.rows import assistant, call, result, user

LINES = st.lists(st.sampled_from(["a", "b", "", "  c", "def f():", "}", "return 1"]), max_size=14)


@given(LINES, LINES)
def test_a_diff_gives_both_texts_back_and_shows_each_changed_line(old, new):
    found = [*changes(old, new)]
    assert [line for sign, line in found if sign != "+"] == old
    assert [line for sign, line in found if sign != "-"] == new
    shown = diff("\n".join(old), "\n".join(new))
    whole = [*changes("\n".join(old).split("\n") if any(old) else [], "\n".join(new).split("\n") if any(new) else [])]
    if any(old) and any(new):
        assert [line for line in shown if line[0] in "-+"] == [sign + line for sign, line in whole if sign != " "]


FOREIGN = st.sampled_from(
    ["m3.large", "a[m3]", "[b1]", "x[i]", "m1", "[m", "12]", "#3", "[3]", "\uff3bm2]", "[\u200bm4]"]
)


@given(st.lists(st.one_of(st.integers(1, 40), FOREIGN)), st.integers(1, 10_000))
def test_marks_alone_are_renumbered_and_back(said, first):
    """What a writer cites gets its number; what it copied from the rows stays as it is."""

    def written(at: int) -> str:
        return " | ".join(mark(one + at) if isinstance(one, int) else without_marks(one) for one in said)

    assert renumber(written(0), first, 40) == written(first - 1)
    assert renumber(renumber(written(0), first, 40), 1, first + 39) == written(first - 1)


@given(st.text(max_size=300))
def test_a_text_of_others_has_no_mark(text):
    assert renumber(without_marks(text), 1_000, 10**9) == without_marks(text)


@given(texts(), st.text())
def test_no_summary_ends_before_its_end(text, more):
    shown = framed(f"{text}{more}", 1, 9, explains=False)
    body = shown.partition("\n")[2].rpartition("\n")[0]
    assert shown.count(f"[End of summary {tag_of(body)}]") == 1


@st.composite
def conversations(draw):
    """Requests, calls with long and with repeated texts, results, answers."""
    rows = []
    for at in range(draw(st.integers(1, 6))):
        said = draw(texts(30))
        match draw(st.integers(0, 3)):
            case 0:
                rows.append(user(said or "?"))
            case 1:
                rows.append(assistant(said or "!"))
            case 2:
                again = draw(texts(30))
                rows += [call(f"c{at}", "Edit", path="a.py", old_string=f"{said}\nx", new_string=f"{again}\ny")]
                rows += [result(f"c{at}", "The file a.py was changed.", "Edit")]
            case _:
                lines = "\n".join(f"{place} {said}" for place in range(draw(st.integers(1, 60))))
                rows += [call(f"c{at}", "Read", content=said), result(f"c{at}", lines, "Read")]
    return rows


@given(conversations(), conversations())
def test_later_rows_change_no_length_and_no_group_that_is_closed(earlier, later):
    later = [{**row, "tool_call_id": f"l{row['tool_call_id']}"} if row["role"] == "tool" else row for row in later]
    before = [stable_length(group, SEGMENT) for group in groups_of(earlier)]
    behind = [stable_length(group, SEGMENT) for group in groups_of([*earlier, user("and then"), *later])]
    assert behind[: len(before)] == before


BLOCKS = [[f"{name} {at} {'of the cart ' * 3}" for at in range(12)] for name in ("load", "save", "ship_order")]
PIECES = st.one_of(st.sampled_from(BLOCKS), LINES, st.just(["3" * 600]))
CUT = re.compile(r"\[… lines ([\d,]+) to ([\d,]+) of ([\d,]+) left out(?: …\]|, but for (\d+) with .*)")
REPEAT = re.compile(r"\((?:(\d+) lines |a line )?as in \[m(\d+)\]\)")


def follows(lines, block):
    """Whether these lines stand one after the other in a block."""
    return any(block[at : at + len(lines)] == lines for at in range(len(block)))


def accounted(said, shown, earlier):
    """Whether what a part shows of a text accounts for each of its lines, in order."""
    at = 0
    shown = iter(shown)
    for line in shown:
        if found := CUT.fullmatch(line):
            first, last, whole = (int(one.replace(",", "")) for one in found.groups()[:3])
            kept = [next(shown) for _ in range(int(found[4] or 0))]
            left_out = iter(said[first - 1 : last])
            assert all(one in left_out or CUT.search(one) or REPEAT.fullmatch(one) for one in kept)
            assert (at + 1, len(said)) == (first, whole)
            assert not kept or next(shown) == f"[from line {last + 1:,} on:]"
            at = last
        elif (found := REPEAT.fullmatch(line)) and line != said[at]:
            count = int(found[1] or 1) if "line" in line else len(said)
            assert follows(said[at : at + count], earlier[int(found[2]) - 1])
            at += count
        elif line.startswith("[…"):
            raise AssertionError("a line was cut that is short")
        else:
            assert line == said[at]
            at += 1
    return at == len(said)


@given(st.lists(st.lists(PIECES, min_size=1, max_size=6), min_size=1, max_size=6))
def test_each_line_of_a_result_stands_in_the_part_or_a_note_says_where_it_is(results):
    said = [[line for piece in pieces for line in piece] or ["-"] for pieces in results]
    rows = []
    for at, lines in enumerate(said):
        rows += [call(f"c{at}", "Read", note=f"ship_order {at}"), result(f"c{at}", "\n".join(lines), "Read")]
    blocks = re.split(r"(?m)(?:\n\n)?^\[m\d+\] .*\n?", text_of(rows))[1:]
    shown = [block.split("\n") for block in blocks]
    for at, lines in enumerate(said):
        if "\n".join(lines):
            assert accounted(lines, shown[2 * at + 1], shown)


@given(conversations(), st.integers(0, 5))
def test_a_part_is_a_function_of_its_rows(rows, more):
    """Its text is the same when rows follow, and its first rows read alike in a longer one."""
    log = log_of(rows)
    assert text_of(rows) == text_of([dict(row) for row in rows])
    assert len(log.rows) == len(rows)
    longer = text_of([*rows, *[assistant("done") for _ in range(more)]], segment=10**6)
    assert longer.startswith(text_of(rows, segment=10**6))
