"""Which exact values of summarised messages a request still holds, in whatever row of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from context_summarize.messages.reading import analyse, is_of_user
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import own_texts
from context_summarize.notes.forms import spelled_values
from context_summarize.notes.reading import read
from context_summarize.notes.rules import sign_pattern
from context_summarize.replay.result import Summarised, row_text
from context_summarize.transcript.rendered import RenderedRow


@dataclass(slots=True)
class Values:
    """The exact values of a recording's messages. Each message is read once."""

    rows: Sequence[JsonRow]
    """The rows that have a number, in order."""
    clean: Callable[[str], str]
    """Removes secrets."""
    _known: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def held(self, view: Sequence[JsonRow], ours: Sequence[JsonRow]) -> tuple[Summarised, ...]:
        """Returns for each summary, which is one of our rows of a request, what of its messages the request holds."""
        spans = [row["metadata"]["messages"] for row in ours if "messages" in row["metadata"]]
        shown = spelled_values("\n".join(self.clean(row_text(row)) for row in view)) if spans else set[str]()
        found = []
        for first, last in spans:
            values = dict.fromkeys(value for number in range(first, last + 1) for value in self._of(number))
            held, lost = ([value for value in values if (value in shown) is wanted] for wanted in (True, False))
            found.append(Summarised(first, last, tuple(held), tuple(lost)))
        return tuple(found)

    def _of(self, number: int) -> tuple[str, ...]:
        if number not in self._known:
            row = self.rows[number - 1]
            facts = analyse(row)
            said = own_texts(facts) if is_of_user(row, None) else ()
            own = None if said is None or facts.role != "user" else self.clean("\n".join(said))
            text = self.clean(row_text(row))
            message = RenderedRow(number, facts.role, None, text, own, len(facts.calls))
            self._known[number] = tuple(read([message], sign_pattern(())).values)
        return self._known[number]
