"""Does a user's instruction stay in view because a summariser quotes it, if no sign of the prompt set finds it?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from unittest.mock import patch

from benchmarks.peers import Ours
from benchmarks.run import play
from benchmarks.scores import shown
from benchmarks.sessions import Session
from benchmarks.summarisers import Extracting
from benchmarks.tokens import text_of
from benchmarks.words import significant_words
from context_summarize.summaries.prompts import PromptSet, load_prompts

_END = re.compile(r"(?<=[.!?])\s+|\n+")


class Quoting(Extracting):
    """Quotes those of its sentences that the input holds, under a heading behind what it extracts."""

    heading: str
    sentences: list[str]
    quoted: set[str]

    def text(self, shown: str, room: int) -> str:
        found = [one for one in self.sentences if one in " ".join(shown.split())]
        self.quoted.update(found)
        rules = "\n- ".join([f"\n{self.heading}:", *found]) if found else ""
        return super().text(shown, room - self.count(rules)) + rules


def of_user(session: Session) -> Iterator[str]:
    """Yields, for each question that tests an instruction, the user's sentence with most of its significant words."""
    for one in session.questions:
        asked = significant_words(one.instruction or "")
        said = "\n".join(text_of(session.rows[at]) for at in one.sources if session.rows[at]["role"] == "user")
        if asked and said:
            best = max(_END.split(said), key=lambda part: len(significant_words(part) & asked))
            yield " ".join(best.split())


def kept(session: Session) -> dict[str, int]:
    """Counts the sentences that were quoted, and those of them in the last view outside the summaries."""
    sentences, quoted = list(of_user(session)), set[str]()
    if not sentences:
        return {}
    told = {"heading": load_prompts("default").rules_heading, "sentences": sentences, "quoted": quoted}
    with patch.object(PromptSet, "rule_signs", ()):
        view = play(Ours, session, type("Quotes", (Quoting,), told)).view
    text = " ".join(shown([row for row in view if "key" not in (row.get("metadata") or {})]).split())
    found = [one for one in sentences if one in quoted]
    return {"quoted": len(found), "quoted_kept": sum(one in text for one in found)}
