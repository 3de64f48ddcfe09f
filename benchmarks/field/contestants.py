"""Who is measured, by name: this module with several settings, keep-last-n, and the peers of `benchmarks/peers/`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers import AS_THEY_COME, TUNED, Contestant, Hermes, KeepLast, Ours, Strands, Terms, ours_with
from context_summarize.config import PROFILES, Config

Ask = Callable[[str, str, int | None], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldTerms(Terms):
    """Terms whose stand-in counts what a contestant sends it beside the text that is to be summarised."""

    reads: Ask = field()
    """(shown, instructions, most tokens of output) → answer."""

    async def ask(self, shown: str, instructions: str = "", max_output: int | None = None) -> str:
        """The stand-in's answer."""
        return await self.reads(shown, instructions, max_output)

    def change_budget(self, budget: int) -> None:
        """Another model answers from now on: who asks for the budget at each request hears of it."""
        object.__setattr__(self, "budget", budget)  # frozen for contestants, not for the one who sets the terms


FRUGAL = "frugal"
SETTINGS: dict[str, Mapping[str, Any]] = {
    **{name: {"profile": name} for name in PROFILES if name != Config().profile},
    "user role": {"summary_role": "user"},
    "late": {"compact_threshold": 0.7, "target_usage": 0.3, "prefetch_threshold": 0.5},
    "short": {"summary_tokens": 200},
    "long segments": {"segment_tokens": 8_192, "summary_tokens": 350},
}
"""Settings of this module beside its defaults, by the name that the report gives them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the report."""

    name: str
    make: type[Contestant]
    kind: str
    """`ours`, `plain`, `peer` (as it comes) or `tuned`."""

    @property
    def is_peer(self) -> bool:
        """True for another library, as it comes or tuned."""
        return self.kind in ("peer", "tuned")

    @property
    def counts(self) -> bool:
        """True for peers that count by themselves; the others go by the provider's figures, and ours needs no cache."""
        return self.is_peer and not issubclass(self.make, Strands | Hermes)


def own(name: str, config: Mapping[str, Any]) -> Entry:
    """This module with these settings."""
    return Entry(f"ours, {name}", ours_with(f"context-summarize, {name}", **config), "ours")


def profiles() -> list[str]:
    """This module's profiles as contestants, the default first."""
    return ["ours", *(own(name, SETTINGS[name]).name for name in PROFILES if name in SETTINGS)]


def entries() -> dict[str, Entry]:
    """Everyone who can be measured, by name; who is not installed fails when made."""
    made = [Entry("ours", Ours, "ours"), *(own(name, config) for name, config in SETTINGS.items())]
    made += [Entry(one.__name__, one, "peer") for one in AS_THEY_COME]
    made += [Entry(one.__name__, one, "tuned") for one in TUNED]
    made.append(Entry(KeepLast.__name__, KeepLast, "plain"))
    return {one.name: one for one in made}


def who_is_who(names: Iterable[str]) -> list[str]:
    """A Markdown table of what these contestants are, and their settings."""
    known = entries()
    made = [(name, known[name].make) for name in names]
    return [
        "## Contestants",
        "",
        "| | what | settings |",
        "| --- | --- | --- |",
        *(f"| {name} | {one.title} | {one.settings} |" for name, one in made),
    ]
