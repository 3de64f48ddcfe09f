"""docs/benchmarks-real.md from figures; no figure in its text is typed by hand."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import metadata

from benchmarks.field.contestants import entries, who_is_who
from benchmarks.field.model import Traits
from benchmarks.field.report import units
from benchmarks.field.result import Prices
from benchmarks.real.figures import OURS, Figures
from benchmarks.real.judge import Judged
from benchmarks.real.results import Key
from benchmarks.real.scoring import NEAR, TOGETHER
from benchmarks.real.sets import SETS
from benchmarks.real.tables import against_best, chat_by_chat, faults, price, waited, whole_set


@dataclass(frozen=True, slots=True)
class Terms:
    """What a run was made with, beside its figures."""

    command: str
    traits: Traits
    prices: Prices
    recall_limit: int
    anchors: Mapping[str, float]
    missing: Mapping[Key, str]
    pictures: Sequence[str]


READING = """\
## How to read it

* **gold**: questions of which every gold value (a number, a date, a name of the answer that stands in its source
  messages too) stands in the last view. **near**: questions of which one gold value stands within {near} characters
  of at least half of the question's telling words, so that a reader can tell what the value is. For the airline and
  pi data the identifier that the question names must stand there. **instructions**: standing instructions of the
  user of which four fifths of the telling words stand within {together} characters. The last view is that of a
  request after the last message of the chat.
* **one recall**: the question, as it stands, is put to this module's `recall` tool once. The figure counts
  the questions of which an answer of at most {recall:,} tokens holds every gold value. The other libraries have no
  such tool. It does not depend on what the view holds.
* **tail**: the same scores for the newest messages of the chat, as many tokens as the contestant's last view. A view
  that holds less than its tail would have done better without summaries. **cut**: the last view reduced to the size
  of the smallest last view of any summarising contestant in that chat; its oldest messages go first, then its oldest
  summaries.
* **price** of the whole session, in uncached input tokens for each token of the session: the requests (cache read
  {read}, cache write {write}) and the summariser (input 1, output {output}). **waiting** in virtual time, as a share
  of the model's own latency ({start:g} s an answer, {read_s:g} s a token read, {write_s:g} s a token written); users
  answer at once. **over budget**, **broken pairs**: number of requests; a chat without tools has no pairs to break.
* One summariser for everyone: the sentences with the most frequent words (Luhn 1958), no model. It writes as much
  as the prompt asks for, or {share:.0%} of what it reads, at most {max_output:,} tokens. Other libraries compact at
  70 % of the window, this module where its settings say; the newest 10 rows are kept, if the library can set that.
  Summariser, contestants and clock are deterministic, so each cell is run once: seeds would change nothing.
"""

CANNOT = """\
What the figures cannot tell: whether a model would answer the questions from these views, how well a language model
would have summarised (it may keep less of the wording, or choose better), and how agents do after a compaction. BEAM's
conversations are written by models, LoCoMo's by models and people, pi's fixtures are synthetic, and our own recording
is of one airline's desk; only the open chats were used (BEAM 100K 1 to 10 and 500K 1 to 4), and this module was tuned
on them. Windows are 40,000 tokens (LoCoMo 8,000). An absolute figure hangs on the data, the summariser and the window
together; the distance between two contestants hangs on them too. Gold values are mostly numbers, dates and
identifiers, which is what this module's ledger of exact values collects; answers in plain words are scored on LoCoMo
and d80 only. A last view is one moment between two compactions.
"""

ANCHORS = """\
Published for the pi fixtures, with a model that answers (gpt-5.6-sol; [its
repository](https://github.com/angribot/pi-openai-server-compaction) before it removed the benchmark): full context
{full_context:.0%}, native compaction {native_extension:.0%}, pi's text summary {pi_default:.0%}. Those are shares of
answers; the figures here say what a view holds, which is the most that an answer can take from it, at a smaller window.
"""


def markdown(found: Figures, terms: Terms) -> str:
    """The whole page."""
    lines = ["# Measured on real conversations", ""]
    for name in found.sets()[:1]:
        lines += ["\n".join(_conclusions(found, name, terms)), ""]
    lines += [CANNOT, _made(terms), ""]
    if "real-near.svg" in terms.pictures:
        lines += ["![questions with a gold value near the question's words](benchmarks/real-near.svg)", ""]
    for at, name in enumerate(found.sets()):
        data = SETS[name]
        lines += [f"## {name}", "", f"{data.title} (licence: {data.licence}); window {data.budget:,} tokens.", ""]
        lines += [*against_best(found, name), *whole_set(found, name)]
        if name == "pi" and terms.anchors:
            lines += [ANCHORS.format(**terms.anchors)]
        if at == 0 and "real-price.svg" in terms.pictures:
            lines += ["![questions near against the price](benchmarks/real-price.svg)", ""]
        lines += ["Chat by chat:", "", *chat_by_chat(found, name)]
    lines += [_reading(terms), *_missing(terms), *_contestants(found)]
    return "\n".join(lines).rstrip() + "\n"


def _conclusions(found: Figures, name: str, terms: Terms) -> list[str]:
    """Five sentences."""
    if OURS not in found.complete(name) or found.best_peer(name, price) is None:
        return ["This module or all other libraries did not play every chat here, so there is nothing to conclude."]
    ours, (golds, rules), data = found.of(name, OURS), found.asked(name), SETS[name]

    def best(value: str) -> tuple[str, int]:
        def of(one: Judged) -> float:
            return float(getattr(one.view, value))

        peer = found.best_peer(name, of)
        return (peer, int(of(found.of(name, peer)))) if peer else ("none", 0)

    held, near, kept = best("gold"), best("near"), best("instructions")
    recall = found.recall(name)
    recalled = f"{recall[0]} of {recall[1]} questions" if recall else "no question, as it was not run"
    cheap, quick = (found.best_peer(name, value, least=True) for value in (price, waited))
    return [
        f"1. On {ours.chats} conversations of {name} ({ours.tokens // max(1, ours.chats):,} tokens each on average),"
        f" with a window of {data.budget:,} tokens and one extractive summariser for all, the last view of this module"
        f" holds the gold values of {ours.view.gold} of {golds} questions; the best other library ({held[0]}) holds"
        f" {held[1]}, and the newest messages of the same size hold {ours.tail.gold}.",
        f"2. For {ours.view.near} questions a gold value stands near the question's own words; the best other library"
        f" ({near[0]}) has {near[1]} of them, and the newest messages of the same size {ours.tail.near}.",
        f"3. Of {rules} standing instructions of the users it keeps {ours.view.instructions}, the best other library"
        f" ({kept[0]}) {kept[1]}; one call of its recall tool, which the other libraries lack, finds the gold values of"
        f" {recalled} in at most {terms.recall_limit:,} tokens.",
        f"4. It costs {price(ours):.2f} input tokens for each token of the session and waits {waited(ours):.1%} of the"
        f" model's own latency, with {faults(ours)} broken, lost or oversized requests; the cheapest other library"
        f" ({cheap}) costs {_of(found, name, cheap, price):.2f}, and the one that waits least ({quick}) waits"
        f" {_of(found, name, quick, waited):.1%}.",
        f"5. {_behind(found)}",
    ]


def _behind(found: Figures) -> str:
    """Where this module would have done better without summaries, or with another library."""
    told = []
    for name in found.sets():
        if OURS not in found.contestants(name):
            continue
        ours = found.of(name, OURS)
        peer = found.best_peer(name, lambda one: one.view.near) if OURS in found.complete(name) else None
        theirs = found.of(name, peer).view.near if peer else 0
        if ours.view.near < max(ours.tail.near, theirs):
            also = f"; {peer}: {theirs}" if peer else ""
            told.append(
                f"{name} (this module: {ours.view.near}; newest messages of the same size: {ours.tail.near}{also})"
            )
    if not told:
        return "On no data set below do the newest messages of the same size, or another library, hold more near."
    who = "The newest messages of the same size, or another library,"
    return f"{who} hold more values near their words on: {', '.join(told)}."


def _of(found: Figures, name: str, peer: str | None, value: object) -> float:
    return float(value(found.of(name, peer))) if peer and callable(value) else 0.0


def _made(terms: Terms) -> str:
    return (
        f"{date.today().isoformat()}, `{terms.command}`, {os.cpu_count()} cores. The data are fetched from pinned"
        " commits (`benchmarks/real/pins.json`) and are not shipped."
    )


def _reading(terms: Terms) -> str:
    given = units(terms.prices, terms.traits)
    return READING.format(near=NEAR, together=TOGETHER, recall=terms.recall_limit, **given)


def _missing(terms: Terms) -> list[str]:
    """A line a reason, since a cut run misses many cells for one."""
    lines = []
    for why in dict.fromkeys(terms.missing.values()):
        which = [key for key, said in terms.missing.items() if said == why]
        names = "; ".join(dict.fromkeys(key.contestant for key in which))
        sets = ", ".join(dict.fromkeys(key.set for key in which))
        lines.append(f"* Not run: {len(which)} cells of {names} in {sets}: {why}.")
    return [*lines, ""] if lines else []


def _contestants(found: Figures) -> list[str]:
    names = [one for one in entries() if any(one in found.contestants(name) for name in found.sets())]
    packages = sorted({package for name in names for package in entries()[name].make.packages})
    told = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
    return [*who_is_who(names), "", f"{told}.", ""]
