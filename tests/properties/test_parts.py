"""Parts, diffs and marks, for every input: nothing is lost in silence, and no number is wrong."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from context_summarize.transcript.escaping import escape_marks
from context_summarize.transcript.groups import diff
from context_summarize.transcript.marks import mark, renumber
from tests.support.inside import text_of
from tests.support.rows import call, result, user

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
