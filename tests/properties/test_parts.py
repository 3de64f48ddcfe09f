"""Parts, diffs and marks, for every input: nothing is lost in silence, and no number is wrong."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from context_summarize.transcript.escaping import escape_marks
from context_summarize.transcript.groups import diff
from context_summarize.transcript.marks import mark, renumber
from context_summarize.transcript.part import stable_length
from tests.properties.strategies import texts
from tests.support.parts import SEGMENT, groups_of, log_of, text_of
from tests.support.rows import assistant, call, result, user

LINES = st.lists(st.sampled_from(["a", "b", "", "  c", "def f():", "}", "return 1"]), max_size=14)


@given(LINES, LINES)
def test_a_diff_shows_each_changed_line(old, new):
    """Its lines are the two texts, in order, and what both begin or end with stands once."""
    shown = diff("\n".join(old), "\n".join(new))
    before, after = (text.split("\n") if (text := "\n".join(lines)) else [] for lines in (old, new))
    gone, come = ([line[1:] for line in shown if line[0] in signs] for signs in (" -", " +"))
    assert (gone, come) == (before, after)
    assert any(line[0] in "+-" for line in shown) == (before != after)


FOREIGN = st.sampled_from(
    ["m3.large", "a[m3]", "[b1]", "x[i]", "m1", "[m", "12]", "#3", "[3]", "\uff3bm2]", "[\u200bm4]"]
)


@given(st.lists(st.one_of(st.integers(1, 40), FOREIGN)), st.integers(1, 10_000))
def test_marks_alone_are_renumbered_and_back(said, first):
    """What a writer cites gets its number; what it copied from the rows stays as it is."""

    def written(at: int) -> str:
        return " | ".join(mark(one + at) if isinstance(one, int) else escape_marks(one) for one in said)

    assert renumber(written(0), first, 40) == written(first - 1)
    assert renumber(renumber(written(0), first, 40), 1, first + 39) == written(first - 1)


@given(st.text(max_size=300))
def test_a_text_of_others_has_no_mark(text):
    assert renumber(escape_marks(text), 1_000, 10**9) == escape_marks(text)


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
REPEAT = re.compile(r"\((?:(\d+) lines? )?as in \[m(\d+)\]\)")


def follows(lines, block):
    """Whether these lines stand one after the other in a block."""
    return not lines or any(block[at : at + len(lines)] == lines for at in range(len(block)))


def blocks_of(text):
    """The lines of each row of a part."""
    return [block.split("\n") for block in re.split(r"(?m)(?:\n\n)?^\[m\d+\] .*\n?", text)[1:]]


@given(st.lists(st.lists(PIECES, min_size=1, max_size=6), min_size=1, max_size=6))
def test_each_line_of_a_result_stands_in_the_part_or_in_the_row_that_a_mark_names(results):
    said = [[line for piece in pieces for line in piece] for pieces in results]
    rows = []
    for at, lines in enumerate(said):
        rows += [call(f"c{at}", "Read"), result(f"c{at}", "\n".join(lines), "Read")]
    blocks = blocks_of(text_of(rows, segment=10**6))
    for at, lines in enumerate(said):
        place = 0
        for line in blocks[2 * at + 1] if any(lines) else ():
            if found := REPEAT.fullmatch(line):
                count = int(found[1] or len(lines))
                assert follows(lines[place : place + count], said[int(found[2]) // 2 - 1])
                place += count
            else:
                assert line == lines[place]
                place += 1
        assert place == (len(lines) if any(lines) else 0)


@given(st.lists(st.sampled_from(["ship_order", "save_cart", "a line of words " * 4]), min_size=1, max_size=120))
def test_a_cut_result_says_which_lines_it_leaves_out(words):
    lines = [f"{at}: {word}" for at, word in enumerate(words)]
    rows = [
        call("a", "Read"),
        result("a", "\n".join(lines), "Read"),
        call("b", "Bash", command="ship_order"),
        user("x"),
    ]
    shown = blocks_of(text_of(rows, segment=300))[1]
    cuts = [(at, found) for at, line in enumerate(shown) if (found := CUT.fullmatch(line))]
    if not cuts:
        assert shown == lines
        return
    [(cut, found)] = cuts
    first, last, whole, kept = (int(one or 0) for one in found.groups())
    assert (shown[:cut], whole) == (lines[: first - 1], len(lines))
    names = shown[cut + 1 : cut + 1 + kept]
    assert names == [line for line in lines[first - 1 : last] if "ship_order" in line][:kept]
    behind = shown[cut + 1 + kept :]
    assert behind == [*([f"[from line {last + 1} on:]"] if kept else []), *lines[last:]]


@given(conversations(), st.integers(0, 5))
def test_a_part_is_a_function_of_its_rows(rows, more):
    """Its text is the same when rows follow, and its first rows read alike in a longer one."""
    log = log_of(rows)
    assert text_of(rows) == text_of([dict(row) for row in rows])
    assert len(log.rows) == len(rows)
    longer = text_of([*rows, *[assistant("done") for _ in range(more)]], segment=10**6)
    assert longer.startswith(text_of(rows, segment=10**6))
