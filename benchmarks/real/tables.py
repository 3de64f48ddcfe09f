"""The tables of the report, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.field.contestants import entries
from benchmarks.real.figures import OURS, PEERS, Figures
from benchmarks.real.judge import Judged

Value = Callable[[Judged], float]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table whose first column is text and whose other columns are figures."""
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def price(one: Judged) -> float:
    """Uncached input tokens that are paid for each token of the session."""
    return one.price / max(1, one.tokens)


def waited(one: Judged) -> float:
    """Share of the model's own latency."""
    return one.waited / max(1, one.chats)


def faults(one: Judged) -> int:
    """Requests that were lost, longer than the window, or had a broken pair."""
    return one.lost_turns + one.over_budget + one.broken_pairs


def whole_set(found: Figures, name: str) -> list[str]:
    """Everyone on one data set."""
    golds, rules = found.asked(name)
    played = sum(bool(chats) for chats in found.by_chat[name].values())
    recall = found.recall(name)
    head = ["", "gold", "near", "instructions", "one recall", "last view", "tail: gold", "near", "cut: gold", "near"]
    rows = []
    for contestant in found.contestants(name):
        one = found.of(name, contestant)
        title = contestant if one.chats == played else f"{contestant} ({one.chats} of {played} chats)"
        share = f"{recall[0]}/{recall[1]}" if recall and contestant == OURS else "–"
        kept = f"{one.view.instructions}" if rules else "–"
        row = [title, str(one.view.gold), str(one.view.near), kept, share, f"{one.size / max(1, one.chats):,.0f}"]
        row += [str(value) for value in (one.tail.gold, one.tail.near, one.cut.gold, one.cut.near)]
        rows.append([*row, f"{price(one):.2f}", f"{waited(one):.1%}", str(one.over_budget), str(one.broken_pairs)])
        rows[-1].append(str(one.lost_turns))
    head += ["price", "waiting", "over budget", "broken pairs", "turns lost"]
    of = f"of {golds} questions" + (f" and {rules} instructions" if rules else "")
    return [
        f"{played} chats, {_tokens(found, name):,} tokens; *gold*, *near* and *instructions* {of}.",
        "",
        *table(head, rows),
    ]


def _tokens(found: Figures, name: str) -> int:
    return sum(found.tokens[chat] for chat, played in found.by_chat[name].items() if played)


BEST: tuple[tuple[str, Value, bool, Callable[[float], str]], ...] = (
    ("gold in view", lambda one: one.view.gold, False, "{:.0f}".format),
    ("near", lambda one: one.view.near, False, "{:.0f}".format),
    ("near, all views cut to the smallest", lambda one: one.cut.near, False, "{:.0f}".format),
    ("instructions kept", lambda one: one.view.instructions, False, "{:.0f}".format),
    ("price", price, True, "{:.2f}".format),
    ("waiting", waited, True, "{:.1%}".format),
    ("faults", faults, True, "{:.0f}".format),
)


def against_best(found: Figures, name: str) -> list[str]:
    """This module beside the best peer of each row, and beside the newest messages of its own size."""
    if OURS not in found.contestants(name):
        return []
    ours, (golds, rules) = found.of(name, OURS), found.asked(name)
    tails = {"gold in view": f"{ours.tail.gold}", "near": f"{ours.tail.near}"}
    tails["instructions kept"] = f"{ours.tail.instructions}"
    most = {"instructions kept": rules, "gold in view": golds, "near": golds, BEST[2][0]: golds}
    rows = []
    for title, value, least, show in BEST:
        peer = found.best_peer(name, value, least=least)
        if peer is None or (title == "instructions kept" and not rules):
            continue
        of = f" of {most[title]}" if title in most else ""
        theirs = f"{show(value(found.of(name, peer)))} ({peer})"
        rows.append([title, show(value(ours)) + of, theirs, tails.get(title, "–")])
    return table(["", "ours", "best peer", "newest messages, as many tokens as ours"], rows) if rows else []


def chat_by_chat(found: Figures, name: str) -> list[str]:
    """Ours on each chat beside its equal-size tail and the best peer there; a mark where ours holds less near."""
    rows = []
    for chat, played in found.by_chat[name].items():
        if OURS not in played:
            continue
        ours, peers = played[OURS], [one for one in played if entries()[one].kind in PEERS]
        best = max(peers, key=lambda one: (played[one].view.near, played[one].view.gold), default=None)
        theirs = [f"{played[best].view.gold}", f"{played[best].view.near}", best] if best else ["–", "–", "–"]
        behind = ours.view.near < ours.tail.near or ours.view.gold < ours.tail.gold
        behind_peer = best is not None and ours.view.near < played[best].view.near
        mark = ", ".join(name for name, is_so in (("tail", behind), ("peer", behind_peer)) if is_so)
        own = [ours.view.gold, ours.view.near, ours.tail.gold, ours.tail.near]
        rows.append([chat, f"{found.questions[chat][0]}", *map(str, own), *theirs, mark or "–"])
    head = [
        "",
        "questions",
        "ours: gold",
        "near",
        "tail: gold",
        "near",
        "best peer: gold",
        "near",
        "which",
        "ours behind",
    ]
    return table(head, rows) if rows else []
