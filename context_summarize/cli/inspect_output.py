"""What `context-summarize inspect` prints: an inspection as figures, a bar and a tree, or as the `--json` object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from context_summarize.cli.terminal import WIDTH, facts, heading, one_line, plain, sentence, table
from context_summarize.replay.inspected import Inspection, Original, RowLine, SegmentLine, WindowUse, told_when
from context_summarize.session.snapshot import SummaryNode
from context_summarize.transcript.wording import counted

_MOST_SEGMENTS = 40
_FIRST_SEGMENTS = 3
_MOST_NODES = 80
"""If a tree holds more, summaries of level 0 are counted below the summary that they were merged into."""
_NAME = 30
"""Characters of a tool's name."""
_PARTS = (
    # (part, mark, mark in ASCII, style, what it is)
    ("system", "█", "S", "cyan", "the host's system rows"),
    ("pins", "▓", "P", "green", "first and newest user message, rows marked critical"),
    ("summaries", "▒", "s", "magenta", "in place of older messages"),
    ("verbatim", "░", "v", "blue", "the newest messages"),
    ("free", "·", ".", "dim", "left in the budget"),
    ("reserved", " ", " ", "dim", "for the answer and the safety margin"),
)


def as_data(name: str, found: Inspection) -> dict[str, Any]:
    """An inspection as the object that `--json` prints."""
    figures = {key: value for key, value in asdict(found).items() if key not in ("tree", "originals")}
    return {"file": name, **figures, "tree": [_node_data(node, found.originals) for node in found.tree]}


def _node_data(node: SummaryNode, originals: Mapping[str, Original]) -> dict[str, Any]:
    made, original = node.summary, originals.get(node.key)
    return {
        "key": node.key,
        "level": node.level,
        "first": node.first,
        "last": node.last,
        "rest": node.rest,
        "source_tokens": made.source_tokens if made else None,
        "tokens": made.tokens if made else None,
        "coverage": round(made.coverage, 4) if made else None,
        "original_tokens": original.tokens if original else None,
        "values": original.values.values if original else None,
        "values_kept": original.values.kept if original else None,
        "digest": made is None or made.fallback,
        "children": [_node_data(child, originals) for child in node.children],
    }


def print_inspection(out: Console, name: str, found: Inspection) -> None:
    """Print an inspection: the window, the next compaction, the recording, segments, the tree, the cost."""
    use = found.use
    out.print()
    sentence(
        out,
        f"{plain(name)}: {counted(found.rows, 'row')}, {found.tokens:,} tokens in total, in a window of "
        f"{use.window:,} tokens. A request may hold {use.budget:,} of them.",
    )
    heading(out, "Window", "What the next request after the recording would hold.")
    _print_window(out, use)
    heading(
        out,
        "Next compaction",
        "What the next compaction will summarise, as far as it is known now.",
    )
    _print_next(out, found)
    heading(out, "Recording", "Messages are the rows that can be summarised. The other rows belong to the host.")
    out.print(facts(_recording(found)))
    heading(out, "Largest rows", "One long tool result can fill a window faster than many turns.")
    out.print(_largest_table(found.largest))
    heading(
        out,
        "Segments",
        "Each segment gets one summary. Tokens are measured here; a segment is cut by its bytes. ~ marks the size that "
        "a summary will be asked to have.",
    )
    _print_segments(out, found)
    heading(
        out,
        "Summaries",
        "Level, messages, their tokens → tokens of the summary, and the share of the exact values (ids, amounts, "
        "paths) of these messages that the summary holds. A merged summary (level 1 and above) is measured against its "
        "messages too, not against the summaries that it was made from. The offline provider wrote the texts; it is "
        "not a model.",
    )
    _print_tree(out, found)
    heading(
        out,
        "Cost",
        "What a provider reads and writes for all summaries of the session, measured with the offline provider. A "
        "model's summaries have other lengths.",
    )
    out.print(facts(_cost(found)))


def _print_window(out: Console, use: WindowUse) -> None:
    ascii_only = out.options.ascii_only
    width = min(out.width, WIDTH) - 2
    sizes = [max(0, getattr(use, part)) for part, *_ in _PARTS]
    bar = Text("[", no_wrap=True, overflow="crop")
    for cells, (_, mark, in_ascii, style, _) in zip(shared_cells(sizes, width), _PARTS, strict=True):
        bar.append((in_ascii if ascii_only else mark) * cells, style)
    out.print(bar.append("]"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("left", "left", "right", "right"):
        grid.add_column(justify=justify, no_wrap=True)
    grid.add_column(style="dim")
    for part, mark, in_ascii, style, about in _PARTS:
        size = getattr(use, part)
        grid.add_row(
            Text(in_ascii if ascii_only else mark, style), part, f"{size:,}", f"{size / use.window:.0%}", about
        )
    out.print(grid)


def shared_cells(sizes: Sequence[int], width: int) -> list[int]:
    """`width` cells, divided in proportion to the sizes; a size above 0 gets at least one, taken from the largest."""
    total = sum(sizes) or 1
    ends = [round(width * sum(sizes[: at + 1]) / total) for at in range(len(sizes))]
    cells = [end - before for before, end in zip([0, *ends], ends, strict=False)]
    for at, size in enumerate(sizes):
        if size and not cells[at]:
            cells[at] = 1
            cells[cells.index(max(cells))] -= 1
    return cells


def _print_next(out: Console, found: Inspection) -> None:
    coming = found.next
    lines = [("When", f"{found.used:,}", told_when(found))]
    if coming.first is not None:
        lines.append(
            ("Summarised", f"{coming.first:,} to {coming.last:,}", f"messages, {counted(coming.segments, 'segment')}")
        )
    if coming.merged:
        lines.append(("Merged", f"{coming.merged:,}", "new summaries, each made from several older ones"))
    if coming.shortened:
        lines.append(("Shortened", f"{coming.shortened:,}", "long rows reduced to head and tail"))
    if len(lines) == 1:
        lines.append(("Summarised", "nothing", "no further segment is closed yet"))
    else:
        lines += [
            ("Freed", f"{coming.freed:,}", "tokens, if the compaction ran now"),
            ("Provider calls", f"{coming.calls:,}", _takes(coming.input_tokens, coming.output_tokens)),
        ]
    out.print(facts(lines))


def _takes(read: int, wrote: int) -> str:
    return f"about {read:,} tokens in and {wrote:,} out" if read else "for summaries"


def _recording(found: Inspection) -> list[tuple[str, str, str]]:
    length = f"of about {found.segment_tokens:,} tokens at 4 bytes each; a summary: about {found.summary_tokens:,}"
    return [
        ("Rows", f"{found.rows:,}", f"{found.tokens:,} tokens"),
        ("Messages", f"{found.messages:,}", f"{found.unsegmented:,} of them too new for a segment"),
        (
            "Groups",
            f"{found.groups:,}",
            f"rows that stay together (a call and its results); {found.largest_group} in the largest",
        ),
        ("Marked", f"{found.pins:,}", "rows that always stay verbatim: system rows, critical rows"),
        ("Segments", f"{len(found.segments):,}", length),
    ]


def _largest_table(rows: Sequence[RowLine]) -> Table:
    made = table()
    made.add_column("Row", justify="right", no_wrap=True)
    made.add_column("Message", justify="right", no_wrap=True)
    made.add_column("Tokens", justify="right", no_wrap=True)
    made.add_column("What", no_wrap=True)
    for row in rows:
        what = one_line(f"{row.role} {row.tool or ''}"[:_NAME])
        made.add_row(f"{row.row:,}", f"{row.message or '':,}" if row.message else "", f"{row.tokens:,}", Text(what))
    return made


def _print_segments(out: Console, found: Inspection) -> None:
    if not found.segments:
        sentence(out, "None: the recording is too short. Use a smaller --window to see some.")
        return
    made = table()
    made.add_column("Index", justify="right", no_wrap=True)
    made.add_column("Messages", justify="right", no_wrap=True)
    made.add_column("Tokens → summary", justify="right", no_wrap=True)
    made.add_column("Shown as", no_wrap=True)
    segments = found.segments
    hidden = len(segments) - _MOST_SEGMENTS
    for at, line in enumerate(segments):
        if hidden > 0 and at == _FIRST_SEGMENTS:
            made.add_row("…", "", f"{hidden:,} more", "")
        if hidden <= 0 or not _FIRST_SEGMENTS <= at < _FIRST_SEGMENTS + hidden:
            made.add_row(*_segment_cells(line))
    out.print(made)


def _segment_cells(line: SegmentLine) -> tuple[str, str, str, str]:
    size = f"{line.summary_tokens:,}" if line.folded else f"~{line.summary_tokens:,}"
    span = f"{line.first:,} to {line.last:,}"
    return str(line.index), span, f"{line.tokens:,} → {size}", "summary" if line.folded else "verbatim"


def _print_tree(out: Console, found: Inspection) -> None:
    if not found.tree:
        sentence(out, "None: no compaction ran in this session.")
        return
    whole = sum(map(_nodes_in, found.tree)) <= _MOST_NODES
    root = Tree(Text(f"messages 1 to {found.tree[-1].last:,}", style="bold"), guide_style="dim")
    for node in found.tree:
        _grow(root, node, found.originals, whole=whole)
    out.print(root)


def _nodes_in(node: SummaryNode) -> int:
    return 1 + sum(map(_nodes_in, node.children))


def _grow(parent: Tree, node: SummaryNode, originals: Mapping[str, Original], *, whole: bool) -> None:
    branch = parent.add(_node_label(node, originals.get(node.key)))
    leaves = sum(child.level == 0 for child in node.children)
    for child in node.children:
        if whole or child.level:
            _grow(branch, child, originals, whole=whole)
    if leaves and not whole:
        branch.add(Text(f"{counted(leaves, 'summary', 'summaries')} of level 0", style="dim"))


def _node_label(node: SummaryNode, original: Original | None) -> Text:
    label = Text(f"level {node.level}", style="magenta", no_wrap=True, overflow="ellipsis")
    label.append(f"  {node.first:,} to {node.last:,}  ", style="default")
    made = node.summary
    if made is None or original is None:
        return label.append("fallback, not stored", style="yellow")
    label.append(f"{original.tokens:,} → {made.tokens:,}", style="bold default")
    label.append(f"  {original.values.share:.0%}", style="default")
    if made.fallback:
        label.append("  fallback", style="yellow")
    return label.append("  rest", style="dim") if node.rest else label


def _cost(found: Inspection) -> list[tuple[str, str, str]]:
    return [
        ("Compactions", f"{found.boundaries:,}", f"in {counted(found.requests, 'request')}"),
        ("Provider calls", f"{found.calls:,}", "for summaries"),
        (
            "Tokens in",
            f"{found.input_tokens:,}",
            f"{found.input_tokens / (found.tokens or 1):.2f} per token of the recording",
        ),
        ("Tokens out", f"{found.output_tokens:,}", "written as summaries"),
    ]
