"""`python -m benchmarks.floor`: what is left of a user's values if no summary is ever written?

The user gives one value in each of 120 messages, and the agent answers each, in a window of 8,000 tokens. Its answers
are *plain*, or hold *figures* that nobody needs again. The summariser raises, answers nothing, or answers more than the
window holds. *held* are the user's values in the last view, *near* those of them near the words of their sentence.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence

from benchmarks.peers import EVERYONE
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import faults, shown
from benchmarks.sessions import Session
from benchmarks.summarisers import Down, Summariser
from benchmarks.tokens import Row, text_of
from benchmarks.words import is_near, places, significant_words

_FRAMES = (
    "The {what} of {whose} is {value}.",
    "Please note that {whose} has a new {what}, {value}.",
    "{name} called about {whose}: the {what} was changed to {value} last night.",
    "By the way, for {whose} we now use {value} as the {what}, not the old one.",
    "Can you remember that {value} is the {what} of {whose}?",
    "I talked to {name}, and we settled on {value} for the {what} of {whose}.",
    "If anyone asks for the {what} of {whose}, tell them {value}; {name} agrees.",
)
_THINGS = """
the freight lift; bay 17; the Lübeck depot; our night shift; trailer 52; the cold store; the tour to Porto; van 8;
the canteen; the north gate; Verona's customs desk; the crane; the spare forklift; the archive room; the workshop;
the Tuesday convoy; the pallet pool; the harbour office; the visitors' car park; the scale house; the tank farm;
the courier from Leeds; the mail room; the training hall
"""
_PROPERTIES = """
access code; seal number; booking reference; contact; extension; deadline; password hint; radio call sign; floor colour;
budget; insurance number; meter reading; supplier; lock; emergency word; inspection date; account; driver; storage row;
temperature limit
"""
_SYLLABLES = ("ba", "ro", "lin", "mer", "ka", "to", "sel", "vi", "dun", "ga")
_NAMES = ("Rita Maier", "Joost Vink", "Amara Obi", "Lena Fuchs", "Tomás Reyes", "Priya Nair", "Owen Clarke", "Mei Tan")
_ANSWERS = (
    "Noted. I have updated the plan for today and will mention it in the handover.{} What changed since the morning "
    "round is in there too, so that the night shift knows where everything stands and whom to ask.",
    "Done. The sheet for the floor is up to date again.{} The open points from before lunch are still with the "
    "workshop, and I will look at them as soon as the foreman has answered.",
    "Thank you, that is in the list now. I went through the remaining stops of the tour as well.{} None of them needs "
    "another vehicle, although the second one will be tight if the rain does not stop.",
    "I have passed it on. Nobody had asked for it yet, but the drivers will need it.{} Tell me if it changes again: "
    "then I let them know before they leave.",
)
_FIGURES = (
    " Ticket T-{a} is at {b} % and due at {c}:{d}.",
    " Truck {e} carries {f} kg for order ORD-{a}.",
    " The log is logs/run-{f}.txt, and {b} of {e} entries are checked.",
    " ",
)
_TURNS = 120


class Empty(Summariser):
    """Answers nothing."""

    def text(self, shown: str, room: int) -> str:
        del shown, room
        return ""


class TooLong(Summariser):
    """Answers more than the window holds."""

    def text(self, shown: str, room: int) -> str:
        del room
        return f"{shown}\n" * (1 + 2 * self.window // max(1, self.count(shown)))


FAILURES: Mapping[str, type[Summariser]] = {"raises": Down, "empty": Empty, "too-long": TooLong}
ANSWERS = ("plain", "figures")
COLUMNS = ("answers", "summariser", "contestant", "values", "held", "near", "view_last", "calls", "lost", "over_budget")


def session(answers: str, seed: int = 0) -> Session:
    """Returns a session whose facts are the user's values: codes, numbers, amounts and names."""
    chance = random.Random(seed)
    things, properties = ([part.strip() for part in told.split(";")] for told in (_THINGS, _PROPERTIES))
    pairs = chance.sample([(what, whose) for what in properties for whose in things], _TURNS)
    numbers = chance.sample(range(1_000, 10_000), _TURNS)
    rows: list[Row] = []
    values = [_value(turn, number, chance) for turn, number in enumerate(numbers)]
    for turn, (what, whose) in enumerate(pairs):
        told = {"what": what, "whose": whose, "value": values[turn], "name": chance.choice(_NAMES)}
        rows.append({"role": "user", "content": _FRAMES[turn % len(_FRAMES)].format(**told)})
        said = [text.format(_figures(chance) if answers == "figures" else "") for text in chance.choices(_ANSWERS, k=5)]
        rows.append({"role": "assistant", "content": " ".join(said)})
    return Session(name=f"floor-{answers}", rows=tuple(rows), budget=8_000, facts=tuple(values))


def _figures(chance: random.Random) -> str:
    """Returns a sentence with figures of the agent's own, or an empty string."""
    told = {"a": chance.randrange(10_000, 100_000), "b": chance.randrange(100), "c": chance.randrange(10, 24)}
    told |= {"d": chance.randrange(10, 60), "e": chance.randrange(100, 1_000), "f": chance.randrange(10_000, 50_000)}
    return chance.choice(_FIGURES).format(**told).rstrip()


def _value(turn: int, number: int, chance: random.Random) -> str:
    """Returns a code, a number, an amount or a name, in turn."""
    letters = "".join(chance.sample("ABCDEFGHJKLMNPQRSTUVWXYZ", 2))
    name = "".join(_SYLLABLES[int(digit)] for digit in str(number)).capitalize()
    return (f"{letters}-{number}", str(number), f"{number / 100:.2f} euros", name)[turn % 4]


def cell(answers: str, summariser: str, contestant: str) -> Figures:
    """Plays one contestant with one failure."""
    played = session(answers)
    result = play(EVERYONE[contestant], played, FAILURES[summariser])
    text = shown(result.view)
    asked = [significant_words(text_of(row)) for row in played.rows if row["role"] == "user"]
    found = {
        "values": len(played.facts),
        "held": sum(bool(places(text, value)) for value in played.facts),
        "near": sum(is_near(text, value, words) for value, words in zip(played.facts, asked, strict=True)),
        "view_last": result.requests[-1].tokens,
        "calls": len(result.calls),
    }
    return {"answers": answers, "summariser": summariser, "contestant": contestant, **found, **faults(result)}


def measured(answers: Sequence[str], summarisers: Sequence[str], only: Sequence[str], jobs: int) -> list[Figures]:
    return run_all(cell, [(kind, how, who) for kind in answers for how in summarisers for who in only], jobs)


if __name__ == "__main__":
    choices = {
        "answers": (ANSWERS, ANSWERS),
        "summarisers": (FAILURES, list(FAILURES)),
        "only": (EVERYONE, ["Ours"]),
    }
    sys.exit(command("floor", __doc__, choices, measured, COLUMNS))
